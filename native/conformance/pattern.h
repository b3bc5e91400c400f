/* What every rank contributes: a function of who sends what to whom, so that any rank can compute any other's. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* 64 well mixed bits; equal arguments give equal bits on every rank. */
uint64_t ct_pattern_mix(unsigned a, unsigned b, uint64_t c, unsigned d);

/* Bytes 8 x `word` and following of the data stream that `source` sends to `target` in the case `salt`. */
uint64_t ct_pattern_word(unsigned source, unsigned target, size_t word, unsigned salt);
