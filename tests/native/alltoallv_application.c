/* An unchanged program that calls MPI_Alltoallv: counts change at different calls on different ranks, communicators come
 * and go, calls are in place and between groups. Every result is checked. Prints, where libcolltune is loaded, how many
 * calls of each algorithm it ran, the same on all ranks.
 *
 *     alltoallv_application CALLS */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned mix(unsigned v)
{
    v ^= v >> 16, v *= 0x7feb352dU, v ^= v >> 15, v *= 0x846ca68bU;
    return v ^ v >> 16;
}

/* Sizes stay alike for a while, then grow or shrink, at another call for each rank. */
static int bytes(int call, int from, int to)
{
    static const int scale[] = {8, 8, 300, 4000, 8};
    int phase = (call + 3 * (from % 4)) / 40 % 5;
    return (int)(mix((unsigned)(call / 7 * 1000003 + from * 1009 + to)) % (unsigned)(2 * scale[phase] + 1));
}

static int exchange(MPI_Comm comm, int call)
{
    int rank, size, wrong = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int *n = malloc(sizeof(int) * 4 * (size_t)size), *sc = n, *sd = n + size, *rc = n + 2 * size, *rd = n + 3 * size, s = 0, r = 0;
    for (int i = 0; i < size; i++) {
        sc[i] = bytes(call, rank, i), sd[i] = s, s += sc[i];
        rc[i] = bytes(call, i, rank), rd[i] = r, r += rc[i];
    }
    unsigned char *send = malloc((size_t)s + 1), *receive = malloc((size_t)r + 1);
    for (int i = 0; i < size; i++)
        memset(send + sd[i], (rank * 7 + i + call) & 255, (size_t)sc[i]);
    MPI_Alltoallv(send, sc, sd, MPI_BYTE, receive, rc, rd, MPI_BYTE, comm);
    for (int i = 0; i < size; i++)
        for (int k = 0; k < rc[i]; k++)
            wrong += receive[rd[i] + k] != ((i * 7 + rank + call) & 255);
    free(n), free(send), free(receive);
    return wrong;
}

static int in_place(MPI_Comm comm)
{
    int rank, size, wrong = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int *n = malloc(sizeof(int) * 3 * (size_t)size);
    for (int i = 0; i < size; i++)
        n[i] = 1, n[size + i] = i, n[2 * size + i] = rank * 1000 + i;
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, n + 2 * size, n, n + size, MPI_INT, comm);
    for (int i = 0; i < size; i++)
        wrong += n[2 * size + i] != i * 1000 + rank;
    free(n);
    return wrong;
}

int main(int argc, char **argv)
{
    int calls = argc > 1 ? atoi(argv[1]) : 200, rank, wrong = 0, all = 0, counts[16] = {0}, least[16], most[16];
    int (*last)(MPI_Comm, void *);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    *(void **)&last = dlsym(RTLD_DEFAULT, "ct_alltoallv_last");
    for (int call = 0; call < calls; call++) {
        wrong += exchange(MPI_COMM_WORLD, call);
        int choice[4] = {0};
        if (last != NULL && last(MPI_COMM_WORLD, choice) == MPI_SUCCESS)
            counts[choice[0] & 15]++;
    }
    for (int i = 0; i < 10; i++) { /* communicators that come and go, used at different times */
        MPI_Comm half, copy;
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        for (int call = 0; call < 5; call++)
            wrong += exchange(half, call + i) + exchange(copy, call) + in_place(copy);
        MPI_Comm_free(&half);
        MPI_Comm_free(&copy);
    }
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(counts, least, 16, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(counts, most, 16, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("wrong=%d alike=%d ran", all, memcmp(least, most, sizeof least) == 0);
        for (int i = 0; i < 7; i++)
            printf(" %d", counts[i]);
        printf("\n");
    }
    MPI_Finalize();
    return all != 0;
}
