/* Preloaded: MPI_Allreduce asks for two blocks as large as its data in each call, as algorithms with scratch memory do. In
 * MPI_Finalize each rank says how many of its large calls met page faults, and how many did not. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static int calls[2];

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
}

int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int bytes;
    MPI_Type_size(type, &bytes);
    size_t size = (size_t)bytes * (size_t)count + 1;
    long before = faults();
    volatile char *first = malloc(size), *second = malloc(size);
    for (size_t i = 0; i < size; i += 1024)
        first[i] = second[i] = (char)i;
    free((void *)first);
    free((void *)second);
    if (size > 1 << 17)
        calls[faults() - before > 16]++;
    return PMPI_Allreduce(from, to, count, type, op, comm);
}

int MPI_Finalize(void)
{
    fprintf(stderr, "hungry %d %d\n", calls[1], calls[0]);
    return PMPI_Finalize();
}
