/* Block sizes by distribution. */
#include "blocks.h"

#include "exchange.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int *ct__counts; /* [size * size] as read, a row for each sender; NULL: none */

static uint64_t ct__mix(uint64_t v)
{
    v ^= v >> 33, v *= 0xff51afd7ed558ccdULL, v ^= v >> 33, v *= 0xc4ceb9fe1a85ec53ULL;
    return v ^ v >> 33;
}

int ct_blocks_read(const char *path, int rank, int size)
{
    size_t cells = (size_t)size * (size_t)size, read = 0;
    int whole = 1;
    ct__counts = calloc(cells, sizeof(int));
    if (ct__counts == NULL)
        return MPI_ERR_NO_MEM;
    if (rank == 0) {
        FILE *file = fopen(path, "r");
        while (file != NULL && read < cells && fscanf(file, "%d", &ct__counts[read]) == 1 && ct__counts[read] >= 0)
            read++;
        whole = read == cells;
        if (!whole)
            fprintf(stderr, "%s has no %d x %d numbers of bytes\n", path, size, size);
        if (file != NULL)
            fclose(file);
    }
    CT_TRY(PMPI_Bcast(&whole, 1, MPI_INT, 0, MPI_COMM_WORLD));
    return whole ? PMPI_Bcast(ct__counts, (int)cells, MPI_INT, 0, MPI_COMM_WORLD) : MPI_ERR_FILE;
}

/* Whether ranks send to the one so much further on: so of the `size - 1` distances exactly `peers`, the same for all. */
static bool ct__is_peer(const ct_blocks *b, int distance, int size)
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

/* How large a block is beside others. */
static double ct__weight(const ct_blocks *b, int from, int to, int size)
{
    double unit = (double)(ct__mix(b->seed ^ ct__mix((uint64_t)from << 32 | (uint64_t)to)) >> 11) * 0x1p-53;
    if (strcmp(b->distribution, "counts") == 0)
        return ct__counts[(size_t)from * (size_t)size + (size_t)to];
    if (strcmp(b->distribution, "constant") == 0)
        return 1.0;
    if (strcmp(b->distribution, "power") == 0)
        return 1.0 / sqrt(unit < 1e-4 ? 1e-4 : unit);
    return unit * (strcmp(b->distribution, "skewed") == 0 && from % 8 == 0 ? 9.0 : 1.0);
}

int ct_blocks_draw(const ct_blocks *b, int rank, int size, int *sent, int *received)
{
    bool counts = strcmp(b->distribution, "counts") == 0;
    double *weights = calloc(2 * (size_t)size, sizeof *weights), sums[2] = {0.0}, most[2], busiest;
    bool *peer = calloc((size_t)size, sizeof *peer);
    if (weights == NULL || peer == NULL || (counts && ct__counts == NULL)) {
        free(weights), free(peer);
        return weights && peer ? MPI_ERR_ARG : MPI_ERR_NO_MEM;
    }
    for (int distance = 0; distance < size; distance++)
        peer[distance] = counts || ct__is_peer(b, distance, size);
    for (int other = 0; other < size; other++) {
        weights[other] = peer[(other - rank + size) % size] ? ct__weight(b, rank, other, size) : 0.0;
        weights[size + other] = peer[(rank - other + size) % size] ? ct__weight(b, other, rank, size) : 0.0;
        sums[0] += other != rank ? weights[other] : 0.0, sums[1] += other != rank ? weights[size + other] : 0.0;
    }
    int code = PMPI_Allreduce(sums, most, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    busiest = most[0] > most[1] ? most[0] : most[1];
    double unit = counts && b->average == 0 ? 1.0 : busiest > 0.0 ? b->average * (size - 1.0) / busiest : 0.0;
    for (int other = 0; other < size; other++) { /* what is not empty stays so */
        sent[other] = (int)ceil(weights[other] * unit);
        received[other] = (int)ceil(weights[size + other] * unit);
    }
    free(weights), free(peer);
    return code;
}
