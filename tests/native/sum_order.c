/* In how many orders does MPI add up? Sums floats whose total depends on the order of the additions, and counts the
 * different results of one element.
 *
 * Arguments: the collective, then counts of elements per rank. Each count is summed several times, with every rank in
 * turn arriving late. All elements of a rank are equal, so every element of the result has the same sum.
 * Output, the most over all ranks and sets of values:
 *   first N   different bits of element 0, over counts, repetitions and late ranks
 *   any N     the same, over all elements
 *   ranks N   different results of the ranks (1 for the collectives whose result only one rank has)
 */
#define _POSIX_C_SOURCE 200809L
#include "functions.h"
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 512, SETS = 2, REPETITIONS = 7 };
static const struct summed {
    const char *name;
    ct_function function;
    bool begins; /* does not block */
} SUMMED[] = { { "allreduce", CT_ALLREDUCE, false }, { "exscan", CT_EXSCAN, false }, { "iallreduce", CT_ALLREDUCE, true },
               { "reduce", CT_REDUCE, false }, { "reduce_scatter", CT_REDUCE_SCATTER, false },
               { "reduce_scatter_block", CT_REDUCE_SCATTER_BLOCK, false }, { "scan", CT_SCAN, false } };

struct seen {
    uint32_t bits[MOST];
    int n;
};

static void note(struct seen *seen, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < seen->n; i++) {
        if (seen->bits[i] == bits)
            return;
    }
    if (seen->n < MOST)
        seen->bits[seen->n++] = bits;
}

/* Values of both signs and many magnitudes, the same in every run. */
static float value_of(int rank, int set)
{
    uint32_t x = (uint32_t) (rank + 1) * 2654435761u ^ (uint32_t) (set + 1) * 40503u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    float value = 1.0f + (float) (x & 0xffffff) / 16777216.0f;
    value *= (float) (1 << (x >> 28));
    return (x >> 27 & 1) ? -value : value;
}

static void sleep_us(long us)
{
    struct timespec pause = { 0, us * 1000 };
    nanosleep(&pause, NULL);
}

static void sum(const struct summed *how, const float *in, float *out, int count, const int *counts)
{
    const ct_arguments arguments = { .send = in, .recv = out, .recv_count = count, .recv_counts = counts, .recv_type = MPI_FLOAT, .op = MPI_SUM };
    MPI_Request request = MPI_REQUEST_NULL;
    ct_function_call(how->function, &arguments, MPI_COMM_WORLD, how->begins ? &request : NULL);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    const struct summed *how = NULL;
    int rank, size, most[3] = { 0, 0, 0 }, all[3];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; argc > 2 && i < sizeof SUMMED / sizeof *SUMMED; i++)
        if (strcmp(argv[1], SUMMED[i].name) == 0)
            how = &SUMMED[i];
    int *counts = malloc(sizeof(int) * (size_t) size);
    struct seen *first = malloc(sizeof *first), *any = malloc(sizeof *any), *ranks = malloc(sizeof *ranks);
    if (how == NULL || counts == NULL || first == NULL || any == NULL || ranks == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int blocks = how->function == CT_REDUCE_SCATTER || how->function == CT_REDUCE_SCATTER_BLOCK ? size : 1;
    int has_result = how->function == CT_EXSCAN ? rank > 0 : how->function != CT_REDUCE || rank == 0;
    for (int set = 0; set < SETS; set++) {
        first->n = any->n = ranks->n = 0;
        for (int i = 2; i < argc; i++) {
            int count = atoi(argv[i]);
            size_t n = (size_t) count * (size_t) blocks;
            float *in = malloc(sizeof(float) * (n + 1)), *out = malloc(sizeof(float) * (n + 1));
            if (in == NULL || out == NULL || count < 1)
                MPI_Abort(MPI_COMM_WORLD, 2);
            for (size_t j = 0; j < n; j++)
                in[j] = value_of(rank, set);
            for (int r = 0; r < size; r++)
                counts[r] = count;
            for (int repetition = 0; repetition < REPETITIONS + size; repetition++) {
                MPI_Barrier(MPI_COMM_WORLD);
                if (repetition - REPETITIONS == rank)
                    sleep_us(2000);
                sum(how, in, out, count, counts);
                if (!has_result)
                    continue;
                note(first, out[0]);
                for (int j = 0; j < count; j++)
                    note(any, out[j]);
            }
            if (how->function == CT_ALLREDUCE) {
                float *theirs = malloc(sizeof(float) * (size_t) size);
                if (theirs == NULL)
                    MPI_Abort(MPI_COMM_WORLD, 2);
                MPI_Allgather(out, 1, MPI_FLOAT, theirs, 1, MPI_FLOAT, MPI_COMM_WORLD);
                ranks->n = 0;
                for (int r = 0; r < size; r++)
                    note(ranks, theirs[r]);
                free(theirs);
            }
            most[2] = ranks->n > most[2] ? ranks->n : most[2];
            free(in);
            free(out);
        }
        most[0] = first->n > most[0] ? first->n : most[0];
        most[1] = any->n > most[1] ? any->n : most[1];
    }
    /* Gathered, not reduced: what is examined here must not carry its own result. */
    int *gathered = malloc(sizeof most * (size_t) size);
    if (gathered == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Gather(most, 3, MPI_INT, gathered, 3, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        memcpy(all, most, sizeof all);
        for (int i = 0; i < 3 * size; i++)
            all[i % 3] = gathered[i] > all[i % 3] ? gathered[i] : all[i % 3];
        printf("first %d any %d ranks %d\n", all[0], all[1], all[2] > 0 ? all[2] : 1);
    }
    free(gathered);
    free(ranks);
    free(any);
    free(first);
    free(counts);
    MPI_Finalize();
    return 0;
}
