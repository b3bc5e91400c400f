/* Cases of a program in which a preloaded library is a guest: `PROGRAM all|CASE...` prints a line for each case and rank, with a
 * number that is made of all that the case received. */
#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 8, ROUNDS = 9 };

typedef struct {
    const char *name;
    long (*run)(int rank, int size);
} guest_case;

static inline long digest(long sum, const int *got, int count)
{
    for (int i = 0; i < count; i++)
        sum = (sum * 31 + got[i] + 7) % 1000000007L;
    return sum;
}

/* Blocking collectives of most kinds on a communicator. */
static inline long exchange_blocking(MPI_Comm comm, int round)
{
    int rank, size, sent[2 * MOST_RANKS], got[2 * MOST_RANKS], counts[MOST_RANKS], places[MOST_RANKS];
    long sum = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < 2 * size; i++)
        sent[i] = 100 * rank + 3 * i + round, got[i] = -1;
    for (int i = 0; i < size; i++)
        counts[i] = 2, places[i] = 2 * i;
    int root = round % size;
    MPI_Barrier(comm);
    MPI_Allgather(sent, 1, MPI_INT, got, 1, MPI_INT, comm);
    sum = digest(sum, got, size);
    MPI_Alltoall(sent, 2, MPI_INT, got, 2, MPI_INT, comm);
    sum = digest(sum, got, 2 * size);
    MPI_Alltoallv(sent, counts, places, MPI_INT, got, counts, places, MPI_INT, comm);
    sum = digest(sum, got, 2 * size);
    MPI_Allreduce(sent, got, 2, MPI_INT, MPI_SUM, comm);
    sum = digest(sum, got, 2);
    MPI_Scan(sent, got, 2, MPI_INT, MPI_MAX, comm);
    sum = digest(sum, got, 2);
    MPI_Reduce_scatter_block(sent, got, 1, MPI_INT, MPI_SUM, comm);
    sum = digest(sum, got, 1);
    MPI_Allgatherv(sent, 2, MPI_INT, got, counts, places, MPI_INT, comm);
    sum = digest(sum, got, 2 * size);
    MPI_Reduce(sent, got, 2, MPI_INT, MPI_SUM, root, comm);
    sum = rank == root ? digest(sum, got, 2) : sum;
    MPI_Gather(sent, 1, MPI_INT, got, 1, MPI_INT, root, comm);
    sum = rank == root ? digest(sum, got, size) : sum;
    MPI_Scatter(sent, 1, MPI_INT, got, 1, MPI_INT, root, comm);
    sum = digest(sum, got, 1);
    if (rank == root)
        got[0] = round;
    MPI_Bcast(got, 1, MPI_INT, root, comm);
    return digest(sum, got, 1);
}

/* And one that is not. */
static inline long exchange_once(MPI_Comm comm, int round)
{
    MPI_Request request;
    long sum = exchange_blocking(comm, round);
    int mine = (int)(sum % 1000), all = -1;
    MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return digest(sum, &all, 1);
}

/* Often enough for rules to hold and for experiments to go on. */
static inline long exchange(MPI_Comm comm)
{
    long sum = 0;
    for (int round = 0; round < ROUNDS; round++)
        sum = (sum * 17 + exchange_once(comm, round)) % 1000000007L;
    return sum;
}

/* The results of an all-to-all, a broadcast and a sum that are wrong; `mark` tells the calls of one communicator apart. */
static inline int wrong_results(MPI_Comm comm, int mark)
{
    enum { MOST = 64 };
    int rank, size, wrong = 0, sum = 0, sent[2 * MOST], got[2 * MOST], counts[MOST], places[MOST];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < size; i++) {
        counts[i] = 2, places[i] = 2 * i;
        sent[2 * i] = rank * 100 + i, sent[2 * i + 1] = mark;
        got[2 * i] = got[2 * i + 1] = -1;
    }
    MPI_Alltoallv(sent, counts, places, MPI_INT, got, counts, places, MPI_INT, comm);
    for (int i = 0; i < size; i++)
        wrong += got[2 * i] != i * 100 + rank || got[2 * i + 1] != mark;
    int word = rank == 0 ? mark : -1;
    MPI_Bcast(&word, 1, MPI_INT, 0, comm);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    return wrong + (word != mark) + (sum != size * (size - 1) / 2);
}

/* Those that are named, or all; then MPI ends. */
static inline int run_cases(const guest_case *cases, int count, int argc, char **argv)
{
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < count; i++) {
        int chosen = argc > 1 && strcmp(argv[1], "all") == 0;
        for (int at = 1; at < argc; at++)
            chosen = chosen || strcmp(argv[at], cases[i].name) == 0;
        if (!chosen)
            continue;
        printf("%s rank=%d %ld\n", cases[i].name, rank, cases[i].run(rank, size));
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
