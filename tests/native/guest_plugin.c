/* A part of a program that uses MPI on its own: sums, a shuffle and a persistent sum, each checked. BY_HANDLE: asks its MPI's
 * library itself for each function, as a language with its own linker does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

#ifdef BY_HANDLE
static int ct__initialise(void)
{
    int (*init)(int *, char ***);
    *(void **)&init = dlsym(dlopen(BY_HANDLE, RTLD_LAZY), "MPI_Init");
    return init(NULL, NULL);
}
#else
static int ct__initialise(void) { return MPI_Init(NULL, NULL); }
#endif

void run(void);
void run(void)
{
    int rank, size, wrong = 0, ones[64], places[64], sent[64], got[64];
    double x = 1, y = 0;
    char line[80];
    ct__initialise();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 64; i++)
        ones[i] = 1, places[i] = i, sent[i] = 100 * rank + i;
    for (int i = 0; i < 200; i++) {
        MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        wrong += y != size;
        MPI_Alltoallv(sent, ones, places, MPI_INT, got, ones, places, MPI_INT, MPI_COMM_WORLD);
        wrong += got[size - 1] != 100 * (size - 1) + rank;
        double word = rank == 0 ? i : -1;
        MPI_Bcast(&word, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        wrong += word != i;
    }
#if MPI_VERSION >= 4
    MPI_Request request;
    MPI_Allreduce_init(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    y = 0;
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    wrong += y != size;
#endif
    MPI_Finalize();
    snprintf(line, sizeof line, "rank=%d wrong=%d\n", rank, wrong);
    fputs(line, stdout); /* at once: other ranks write as well */
    fflush(stdout);
}
