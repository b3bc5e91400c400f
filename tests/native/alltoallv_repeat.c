/* Calls MPI_Alltoallv again and again, and prints for each call how many messages and collectives libcolltune added to it: the
 * most of any rank, and the algorithm's number.
 *
 *     alltoallv_repeat CALLS BYTES [OTHER]     blocks of BYTES; with OTHER, every second call has blocks of OTHER bytes
 *
 * Linked with count_calls.c. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

long count_messages(void);
long count_collectives(void);

int main(int argc, char **argv)
{
    int calls = atoi(argv[1]), bytes[2] = {atoi(argv[2]), atoi(argv[argc > 3 ? 3 : 2])}, rank, size, choice[4] = {0};
    int (*last)(MPI_Comm, void *);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    *(void **)&last = dlsym(RTLD_DEFAULT, "ct_alltoallv_last");
    int most = bytes[0] > bytes[1] ? bytes[0] : bytes[1], *counts = calloc((size_t)size, sizeof *counts);
    int *displacements = calloc((size_t)size, sizeof *displacements);
    char *send = calloc((size_t)size, (size_t)most + 1), *receive = calloc((size_t)size, (size_t)most + 1);
    for (int call = 0; call < calls; call++) {
        for (int i = 0; i < size; i++)
            counts[i] = bytes[call % 2], displacements[i] = i * most;
        long before[2] = {count_messages(), count_collectives()}, mine[2], all[2];
        MPI_Alltoallv(send, counts, displacements, MPI_BYTE, receive, counts, displacements, MPI_BYTE, MPI_COMM_WORLD);
        mine[0] = count_messages() - before[0], mine[1] = count_collectives() - before[1];
        last(MPI_COMM_WORLD, choice);
        MPI_Reduce(mine, all, 2, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0)
            printf("%ld %ld %d\n", all[0], all[1], choice[0]);
    }
    free(counts), free(displacements), free(send), free(receive);
    MPI_Finalize();
    return 0;
}
