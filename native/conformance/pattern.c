#include "pattern.h"

static uint64_t ct__scramble(uint64_t bits)
{
    bits ^= bits >> 32;
    bits *= 0xd6e8feb86659fd93u;
    bits ^= bits >> 29;
    bits *= 0xa5a3564e27f886d5u;
    bits ^= bits >> 32;
    return bits;
}

uint64_t ct_pattern_mix(unsigned a, unsigned b, uint64_t c, unsigned d)
{
    return ct__scramble(ct__scramble(((uint64_t)a << 32 | b) + 0x51ed27f1u) ^ ct__scramble(c + ((uint64_t)d << 40)));
}

uint64_t ct_pattern_word(unsigned source, unsigned target, size_t word, unsigned salt)
{
    return ct_pattern_mix(source, target, word, salt);
}
