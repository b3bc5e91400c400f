/* Calls on data with and without gaps, in turns of 100. Prints, where libcolltune is loaded, how many of the last 20 calls of
 * each turn were not the library's, and whether all data came right. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUMBERS, DENSE, GAPS_OF_ONE, GAPS_IN_W, NUMBERS_AGAIN, TURNS, CALLS = 100, COUNTED = 20, PIECES = 4 };

/* Where number i of the block of a peer lies, in pieces of so many numbers. */
static int place(int peer, int i, int width) { return (peer * PIECES + i / 2) * width + i % 2; }

/* PIECES pieces of two numbers to and from each rank, at every third number where there are gaps. Returns wrong ones. */
static int exchange(int turn, MPI_Datatype dense, MPI_Datatype gaps)
{
    int rank, size, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bool by_w = turn == GAPS_IN_W, numbers = turn == NUMBERS || turn == NUMBERS_AGAIN;
    int from_width = by_w ? 3 : 2, to_width = by_w || (turn == GAPS_OF_ONE && rank == 1) ? 3 : 2;
    int *send = calloc((size_t)(size * PIECES * 3), sizeof(int)), *receive = calloc((size_t)(size * PIECES * 3), sizeof(int));
    int *counts = malloc(sizeof(int) * 2 * (size_t)size), *displacements = counts + size;
    MPI_Datatype *types = malloc(sizeof(MPI_Datatype) * (size_t)size);
    for (int peer = 0; peer < size; peer++) {
        counts[peer] = numbers ? 2 * PIECES : PIECES;
        displacements[peer] = by_w ? place(peer, 0, 3) * (int)sizeof(int) : peer * counts[peer];
        types[peer] = gaps;
        for (int i = 0; i < 2 * PIECES; i++)
            send[place(peer, i, from_width)] = 100000 * rank + 100 * peer + i;
    }
    if (by_w)
        MPI_Alltoallw(send, counts, displacements, types, receive, counts, displacements, types, MPI_COMM_WORLD);
    else
        MPI_Alltoallv(send, counts, displacements, numbers ? MPI_INT : dense, receive, counts, displacements,
                      numbers ? MPI_INT : to_width == 3 ? gaps : dense, MPI_COMM_WORLD);
    for (int peer = 0; peer < size; peer++)
        for (int i = 0; i < 2 * PIECES; i++)
            wrong += receive[place(peer, i, to_width)] != 100000 * peer + 100 * rank + i;
    free(send), free(receive), free(counts), free(types);
    return wrong;
}

int main(int argc, char **argv)
{
    int wrong = 0, all = 0, rank, tuned[TURNS] = {0}, most[TURNS];
    int (*last)(MPI_Comm, void *);
    MPI_Datatype dense, gaps;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_contiguous(2, MPI_INT, &dense);
    MPI_Type_create_resized(dense, 0, 3 * (MPI_Aint)sizeof(int), &gaps);
    MPI_Type_commit(&dense);
    MPI_Type_commit(&gaps);
    *(void **)&last = dlsym(RTLD_DEFAULT, "ct_alltoallv_last");
    for (int turn = 0; turn < TURNS; turn++)
        for (int call = 0; call < CALLS; call++) {
            int choice[4] = {0};
            wrong += exchange(turn, dense, gaps);
            if (call >= CALLS - COUNTED && last != NULL && last(MPI_COMM_WORLD, choice) == MPI_SUCCESS)
                tuned[turn] += choice[0] != 0;
        }
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(tuned, most, TURNS, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("wrong=%d tuned %d %d %d %d %d\n", all, most[0], most[1], most[2], most[3], most[4]);
    MPI_Type_free(&dense);
    MPI_Type_free(&gaps);
    MPI_Finalize();
    return all != 0;
}
