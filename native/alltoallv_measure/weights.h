/* Which blocks are exchanged while settings are measured, and how large they are beside each other; without MPI. */
#pragma once

#include <stdbool.h>

/* `distribution`: constant, uniform, power (few large, many small), skewed (one rank of 8 has nine times as much), or counts0,
 * counts1 ...: the matrix in the file of that number. Every rank sends to `peers` others, and receives from as many; 0: all.
 * Sizes are such that of the rank that sends or receives most the blocks for others have so many bytes on average, empty ones
 * included, as was asked for; a matrix is as it is. */
typedef struct {
    char distribution[16];
    int peers;
    unsigned seed;
} ct_blocks;

/* From "alltoallv[DISTRIBUTION,PEERS,SEED]"; false for other text. */
bool ct_blocks_parse(const char *collective, ct_blocks *b);
/* Whether ranks send to the one so much further on: so of the `size - 1` distances exactly `peers`, the same for all. */
bool ct_weight_is_peer(const ct_blocks *b, int distance, int size);
/* How large a block is beside others, of a distribution that is drawn. */
double ct_weight(const ct_blocks *b, int from, int to);
