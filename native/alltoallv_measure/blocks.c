/* The blocks of a call on a real job: drawn, or of a matrix that was read. */
#include "blocks.h"

#include "exchange.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    int count;
    char **paths;
    int number, size; /* of the matrix that was read last; size 0: none */
    int *counts;      /* [size * size], a row for each sender */
    char why[512];    /* of the last matrix that could not be had, on the rank that read it */
} ct__files;

const char *ct_blocks_why(void) { return ct__files.why; }

void ct_blocks_files(int count, char **paths) { ct__files.count = count, ct__files.paths = paths; }

/* Of a distribution that is a matrix its number, else -1. */
static int ct__file_of(const ct_blocks *b)
{
    return strncmp(b->distribution, "counts", 6) == 0 ? atoi(b->distribution + 6) : -1;
}

static bool ct__scan(const char *path, size_t cells)
{
    size_t read = 0;
    int more;
    FILE *file = fopen(path, "r");
    while (file != NULL && read < cells && fscanf(file, "%d", &ct__files.counts[read]) == 1 && ct__files.counts[read] >= 0)
        read++;
    bool whole = file != NULL && read == cells && fscanf(file, "%d", &more) != 1;
    if (file != NULL)
        fclose(file);
    return whole;
}

/* Has the matrix of that number for all ranks of `comm`. */
static int ct__need(int number, MPI_Comm comm, int rank, int size)
{
    size_t cells = (size_t)size * (size_t)size;
    int whole = 1;
    if (ct__files.size == size && ct__files.number == number)
        return MPI_SUCCESS;
    if (number >= ct__files.count)
        return MPI_ERR_ARG;
    free(ct__files.counts);
    ct__files.counts = malloc(cells * sizeof(int));
    ct__files.number = number, ct__files.size = 0;
    if (ct__files.counts == NULL)
        return MPI_ERR_NO_MEM;
    if (rank == 0 && !(whole = ct__scan(ct__files.paths[number], cells)))
        snprintf(ct__files.why, sizeof ct__files.why, "%s has not %d x %d numbers of bytes", ct__files.paths[number], size, size);
    CT_TRY(PMPI_Bcast(&whole, 1, MPI_INT, 0, comm));
    if (!whole)
        return MPI_ERR_FILE;
    CT_TRY(PMPI_Bcast(ct__files.counts, (int)cells, MPI_INT, 0, comm));
    ct__files.size = size;
    return MPI_SUCCESS;
}

static double ct__weight(const ct_blocks *b, int from, int to, int size)
{
    return ct__file_of(b) >= 0 ? ct__files.counts[(size_t)from * (size_t)size + (size_t)to] : ct_weight(b, from, to);
}

int ct_blocks_draw(const ct_blocks *b, MPI_Comm comm, int *sent, int *received)
{
    int rank, size, file = ct__file_of(b);
    CT_TRY(PMPI_Comm_rank(comm, &rank));
    CT_TRY(PMPI_Comm_size(comm, &size));
    if (file >= 0)
        CT_TRY(ct__need(file, comm, rank, size));
    double *weights = calloc(2 * (size_t)size, sizeof *weights), sums[2] = {0.0}, most[2], busiest;
    bool *peer = calloc((size_t)size, sizeof *peer);
    if (weights == NULL || peer == NULL) {
        free(weights), free(peer);
        return MPI_ERR_NO_MEM;
    }
    for (int distance = 0; distance < size; distance++)
        peer[distance] = file >= 0 || ct_weight_is_peer(b, distance, size);
    for (int other = 0; other < size; other++) {
        weights[other] = peer[(other - rank + size) % size] ? ct__weight(b, rank, other, size) : 0.0;
        weights[size + other] = peer[(rank - other + size) % size] ? ct__weight(b, other, rank, size) : 0.0;
        sums[0] += other != rank ? weights[other] : 0.0, sums[1] += other != rank ? weights[size + other] : 0.0;
    }
    int code = PMPI_Allreduce(sums, most, 2, MPI_DOUBLE, MPI_MAX, comm);
    busiest = most[0] > most[1] ? most[0] : most[1];
    double unit = file >= 0 && b->average == 0 ? 1.0 : busiest > 0.0 ? b->average * (size - 1.0) / busiest : 0.0;
    for (int other = 0; other < size; other++) { /* what is not empty stays so */
        sent[other] = (int)ceil(weights[other] * unit);
        received[other] = (int)ceil(weights[size + other] * unit);
    }
    free(weights), free(peer);
    return code;
}
