/* Threads that call MPI at once, each on communicators of its own: `guest_threads [race]`.
 *
 * Rank 0 prints the results that were wrong on all ranks; -1 where the library has no MPI_THREAD_MULTIPLE. `race` adds a
 * race of the program's own, for the tool that looks for races. */
#include "guest_cases.h"

#include <pthread.h>

enum { THREADS = 3, PASSES = 6, CALLS = 8 };

static MPI_Comm comms[THREADS];
static int wrong[THREADS], shared;
static bool racing;

static void *ct__work(void *argument)
{
    int thread = *(int *)argument;
    for (int round = 0; round < PASSES; round++) {
        MPI_Comm comm;
        MPI_Comm_dup(comms[thread], &comm);
        for (int call = 0; call < CALLS; call++)
            wrong[thread] += wrong_results(comm, CALLS * thread + call);
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
