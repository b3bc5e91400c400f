/* Threads that call MPI at once, each on communicators of its own: `guest_threads [race]`.
 *
 * Rank 0 prints the results that were wrong on all ranks; -1 where the library has no MPI_THREAD_MULTIPLE. `race` adds a
 * race of the program's own, for the tool that looks for races. */
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 3, ROUNDS = 6, CALLS = 8, MOST = 16 };

static MPI_Comm comms[THREADS];
static int wrong[THREADS], shared;
static bool racing;

static int ct__exchange(MPI_Comm comm, int thread, int call)
{
    int rank, size, bad = 0, word = 0, sum = 0;
    int sent[2 * MOST], got[2 * MOST], counts[MOST], places[MOST];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < size; i++) {
        counts[i] = 2, places[i] = 2 * i;
        sent[2 * i] = rank * 100 + i, sent[2 * i + 1] = thread;
        got[2 * i] = got[2 * i + 1] = -1;
    }
    MPI_Alltoallv(sent, counts, places, MPI_INT, got, counts, places, MPI_INT, comm);
    for (int i = 0; i < size; i++)
        bad += got[2 * i] != i * 100 + rank || got[2 * i + 1] != thread;
    word = rank == 0 ? call : -1;
    MPI_Bcast(&word, 1, MPI_INT, 0, comm);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    return bad + (word != call) + (sum != size * (size - 1) / 2);
}

static void *ct__work(void *argument)
{
    int thread = *(int *)argument;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm comm;
        MPI_Comm_dup(comms[thread], &comm);
        for (int call = 0; call < CALLS; call++)
            wrong[thread] += ct__exchange(comm, thread, call);
        MPI_Comm_free(&comm);
        if (racing)
            shared++;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, rank, numbers[THREADS], bad = 0, all = -1;
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    racing = argc > 1 && strcmp(argv[1], "race") == 0;
    if (provided == MPI_THREAD_MULTIPLE) {
        for (int i = 0; i < THREADS; i++)
            MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        for (int i = 0; i < THREADS; i++) {
            numbers[i] = i;
            pthread_create(&threads[i], NULL, ct__work, &numbers[i]);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
            bad += wrong[i];
            MPI_Comm_free(&comms[i]);
        }
        MPI_Reduce(&bad, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("wrong=%d\n", all);
    MPI_Finalize();
    return 0;
}
