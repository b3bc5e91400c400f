/* switchback_calls SEED CALLS: collectives in random order, of random sizes, on communicators that come and go, with ranks that
 * are late at random. Prints on rank 0 how many results were wrong. */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { COMMS = 4, MOST = 4096, LIFE = 700 };

int call_number; /* for switchback_spy.c */

static unsigned long long shared, own;
static int buffer[64 * MOST], mine[MOST];

static unsigned draw(unsigned long long *state, unsigned below)
{
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return (unsigned)(*state % below);
}

static void make(MPI_Comm *comm, int kind, int rank)
{
    if (kind == 0)
        MPI_Comm_dup(MPI_COMM_WORLD, comm);
    else
        MPI_Comm_split(MPI_COMM_WORLD, kind == 1 ? rank % 2 : 0, kind == 3 ? -rank : rank, comm);
}

static int call(MPI_Comm comm, unsigned function, int count)
{
    int rank, size, wrong = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < count; i++)
        mine[i] = call_number + i + rank;
    if (function == 0) {
        int root = call_number % size;
        for (int i = 0; i < count; i++)
            buffer[i] = rank == root ? call_number - i : 0;
        MPI_Bcast(buffer, count, MPI_INT, root, comm);
        for (int i = 0; i < count; i++)
            wrong += buffer[i] != call_number - i;
    } else if (function == 1) {
        MPI_Allreduce(mine, buffer, count, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < count; i++)
            wrong += buffer[i] != size * (call_number + i) + size * (size - 1) / 2;
    } else {
        MPI_Allgather(mine, count, MPI_INT, buffer, count, MPI_INT, comm);
        for (int i = 0; i < size * count; i++)
            wrong += buffer[i] != call_number + i % count + i / count;
    }
    return wrong;
}

int main(int argc, char **argv)
{
    int rank, wrong = 0, all, calls = argc > 2 ? atoi(argv[2]) : 1000;
    MPI_Comm comms[COMMS];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    shared = argc > 1 ? strtoull(argv[1], NULL, 10) * 2 + 1 : 1;
    own = shared + 1000u + (unsigned)rank;
    for (int i = 0; i < COMMS; i++)
        make(&comms[i], i, rank);
    for (call_number = 0; call_number < calls; call_number++) {
        unsigned which = draw(&shared, COMMS + 2), function = draw(&shared, 3), size = draw(&shared, 3);
        which = which < COMMS ? which : 0;
        if (draw(&own, 20) == 0)
            usleep(draw(&own, 400));
        wrong += call(comms[which], function, size == 0 ? 1 : size == 1 ? 100 : MOST);
        if (call_number % LIFE == LIFE - 1) {
            MPI_Comm_free(&comms[which]);
            make(&comms[which], (int)which, rank);
        }
    }
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("wrong=%d\n", all);
    for (int i = 0; i < COMMS; i++)
        MPI_Comm_free(&comms[i]);
    MPI_Finalize();
    return 0;
}
