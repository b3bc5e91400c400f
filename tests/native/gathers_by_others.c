/* Preloaded behind the live selector: says once which calls reach the library. Then each MPI_Gatherv and MPI_Scatterv that a
 * program did not make itself is a mock-up's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

static void say_once(const char *name, int *said)
{
    if (!*said)
        fprintf(stderr, "reached %s\n", name);
    *said = 1;
}

int PMPI_Gatherv(const void *send, int sent, MPI_Datatype from, void *recv, const int counts[], const int places[],
                 MPI_Datatype to, int root, MPI_Comm comm)
{
    static int said;
    int (*next)(const void *, int, MPI_Datatype, void *, const int[], const int[], MPI_Datatype, int, MPI_Comm);
    *(void **)&next = dlsym(RTLD_NEXT, "PMPI_Gatherv");
    say_once("gatherv", &said);
    return next(send, sent, from, recv, counts, places, to, root, comm);
}

int PMPI_Scatterv(const void *send, const int counts[], const int places[], MPI_Datatype from, void *recv, int got,
                  MPI_Datatype to, int root, MPI_Comm comm)
{
    static int said;
    int (*next)(const void *, const int[], const int[], MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm);
    *(void **)&next = dlsym(RTLD_NEXT, "PMPI_Scatterv");
    say_once("scatterv", &said);
    return next(send, counts, places, from, recv, got, to, root, comm);
}
