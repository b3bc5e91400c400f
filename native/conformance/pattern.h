/* What every rank contributes: a function of who sends what to whom, so that any rank can compute any other's. */
#pragma once

#include <stdint.h>

static inline uint64_t ct_pattern_scramble(uint64_t bits)
{
    bits ^= bits >> 32;
    bits *= 0xd6e8feb86659fd93u;
    bits ^= bits >> 29;
    bits *= 0xa5a3564e27f886d5u;
    return bits ^ bits >> 32;
}

/* 64 well mixed bits; equal arguments give equal bits on every rank. Bytes 8 x `word` and following of the data stream that `a`
 * sends to `b` in the case `salt`. */
static inline uint64_t ct_pattern_mix(unsigned a, unsigned b, uint64_t word, unsigned salt)
{
    return ct_pattern_scramble(ct_pattern_scramble(((uint64_t)a << 32 | b) + 0x51ed27f1u) ^
                               ct_pattern_scramble(word + ((uint64_t)salt << 40)));
}
