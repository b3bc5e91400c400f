/* Sees how a program's broadcasts are run under the live selector: to preload behind libcolltune.so, whose calls of PMPI_Bcast
 * come here.
 *
 * On MPICH a call is tuned while the control variable of the broadcast is not as it was at first; on Open MPI where it is made on
 * a communicator that the program did not make. In MPI_Finalize rank 0 prints whether all ranks ran the same calls by default on communicators of all of
 * them, and how many. CT_SLOW=default|tuned makes such broadcasts take CT_SLOW_US longer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
static int current;
static uint64_t trace = 1, defaults;
enum { MOST = 4096 };
static MPI_Comm made_beside[MOST]; /* in place of the program's */
static int made_count;

static void find(void *function, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof found);
}

int PMPI_Comm_create(MPI_Comm from, MPI_Group group, MPI_Comm *made)
{
    int (*next)(MPI_Comm, MPI_Group, MPI_Comm *);
    find(&next, "PMPI_Comm_create");
    int code = next(from, group, made);
    made_beside[made_count++ % MOST] = *made;
    return code;
}

/* Handles are used again, those of other communicators as well. */
int PMPI_Comm_free(MPI_Comm *comm)
{
    int (*next)(MPI_Comm *);
    find(&next, "PMPI_Comm_free");
    for (int i = 0; i < MOST; i++)
        if (made_beside[i] == *comm)
            made_beside[i] = MPI_COMM_NULL;
    return next(comm);
}

static int is_tuned(MPI_Comm comm)
{
    int tuned = current != 0;
    for (int i = 0; i < MOST && i < made_count; i++)
        tuned = tuned || made_beside[i] == comm;
    return tuned;
}

int MPI_T_cvar_handle_alloc(int index, void *object, MPI_T_cvar_handle *made, int *count)
{
    int wanted, code = PMPI_T_cvar_handle_alloc(index, object, made, count);
    if (code == MPI_SUCCESS && PMPI_T_cvar_get_index("MPIR_CVAR_BCAST_INTRA_ALGORITHM", &wanted) == MPI_SUCCESS &&
        index == wanted)
        handle = *made;
    return code;
}

int MPI_T_cvar_write(MPI_T_cvar_handle written, const void *value)
{
    if (written == handle)
        current = *(const int *)value;
    return PMPI_T_cvar_write(written, value);
}

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
    int tuned = is_tuned(comm);
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
