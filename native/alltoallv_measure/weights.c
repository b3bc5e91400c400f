#include "weights.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint64_t ct__mix(uint64_t v)
{
    v ^= v >> 33, v *= 0xff51afd7ed558ccdULL, v ^= v >> 33, v *= 0xc4ceb9fe1a85ec53ULL;
    return v ^ v >> 33;
}

bool ct_blocks_parse(const char *collective, ct_blocks *b)
{
    int used = 0;
    return sscanf(collective, "alltoallv[%15[a-z0-9_],%d,%u]%n", b->distribution, &b->peers, &b->seed, &used) == 3 && used > 0 &&
           collective[used] == '\0' && b->peers >= 0;
}

bool ct_weight_is_peer(const ct_blocks *b, int distance, int size)
{
    int before = 0;
    if (b->peers == 0 || b->peers >= size - 1 || distance == 0)
        return true;
    uint64_t mine = ct__mix(b->seed + (uint64_t)distance * 7919);
    for (int other = 1; other < size; other++) {
        uint64_t theirs = ct__mix(b->seed + (uint64_t)other * 7919);
        before += theirs < mine || (theirs == mine && other < distance);
    }
    return before < b->peers;
}

double ct_weight(const ct_blocks *b, int from, int to)
{
    double unit = (double)(ct__mix(b->seed ^ ct__mix((uint64_t)from << 32 | (uint64_t)to)) >> 11) * 0x1p-53;
    if (strcmp(b->distribution, "constant") == 0)
        return 1.0;
    if (strcmp(b->distribution, "power") == 0)
        return 1.0 / sqrt(unit < 1e-4 ? 1e-4 : unit);
    return unit * (strcmp(b->distribution, "skewed") == 0 && from % 8 == 0 ? 9.0 : 1.0);
}
