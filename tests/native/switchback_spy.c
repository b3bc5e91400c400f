/* Sees how a program's broadcasts are run under the live selector: to preload behind libcolltune.so, whose calls of PMPI_Bcast
 * come here.
 *
 * In MPI_Finalize rank 0 prints whether all ranks ran the same calls by default on communicators of all of
 * them, and how many. CT_SLOW=default|tuned makes such broadcasts take CT_SLOW_US longer. */
#include "tuned_calls.h"

static uint64_t trace = 1, defaults;

static void delay(const char *which)
{
    const char *slow = getenv("CT_SLOW"), *us = getenv("CT_SLOW_US");
    struct timespec pause = {.tv_nsec = us == NULL ? 0 : 1000L * atol(us)};
    if (slow != NULL && strcmp(slow, which) == 0)
        nanosleep(&pause, NULL);
}

int PMPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    static int (*next)(void *, int, MPI_Datatype, int, MPI_Comm);
    int size, world, *number = dlsym(RTLD_DEFAULT, "call_number");
    if (next == NULL)
        find(&next, "PMPI_Bcast");
    if (type == MPI_UINT64_T) /* of the experiment itself */
        return next(buffer, count, type, root, comm);
    PMPI_Comm_size(comm, &size);
    PMPI_Comm_size(MPI_COMM_WORLD, &world);
    bool tuned = is_tuned(comm);
    delay(tuned ? "tuned" : "default");
    if (!tuned && size == world && number != NULL) {
        trace = (trace ^ (uint64_t)*number) * 0x9e3779b97f4a7c15ULL + 1;
        defaults++;
    }
    return next(buffer, count, type, root, comm);
}

int MPI_Finalize(void)
{
    uint64_t least, most;
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Allreduce(&trace, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    PMPI_Allreduce(&trace, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("same=%d defaults=%llu\n", least == most, (unsigned long long)defaults);
    return PMPI_Finalize();
}
