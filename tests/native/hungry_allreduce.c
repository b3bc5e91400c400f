/* Preloaded: MPI_Allreduce asks for two blocks as large as its data in each call, as algorithms with scratch memory do. Page
 * faults take it 100 ms, so that a busy machine makes no difference. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

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
    if (faults() - before > 16)
        usleep(100000);
    free((void *)first);
    free((void *)second);
    return PMPI_Allreduce(from, to, count, type, op, comm);
}
