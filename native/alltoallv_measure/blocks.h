/* The blocks that are exchanged while settings are measured. */
#ifndef CT_BLOCKS_H
#define CT_BLOCKS_H

/* `distribution`: constant, uniform, power (few large, many small), skewed (one rank of 8 has nine times as much), or counts:
 * the matrix that was read. Every rank sends to `peers` others, and receives from as many; 0: all. Sizes are such that of the
 * rank that sends or receives most the blocks for others have `average` bytes, empty ones included; 0 with counts: as read. */
typedef struct {
    char distribution[16];
    int peers, average;
    unsigned seed;
} ct_blocks;

/* Reads a matrix of bytes for all ranks: a row for each sender, in text. Collective; returns an MPI error code. */
int ct_blocks_read(const char *path, int rank, int size);
/* Bytes that this rank sends to and receives from each. Collective. */
int ct_blocks_draw(const ct_blocks *b, int rank, int size, int *sent, int *received);

#endif
