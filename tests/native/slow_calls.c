/* Makes some of a program's MPI_Allreduce and MPI_Alltoall calls longer by a known time: to preload behind libcolltune.so.
 *
 * CT_SLOW=default|tuned: which, CT_SLOW_US: by how much. After each call the ranks meet; then all wait, where the call is one
 * of these, and meet again. So ranks that share cores leave every call alike, and the program takes longer by what the clock
 * says of this time alone. On MPICH a call is tuned while the control variable CT_SLOW_VARIABLE is not as it was; on Open MPI
 * where it is made on a communicator that the program did not make. In MPI_Finalize the first rank prints how many calls were longer, and by how much on
 * average: the mean of that time less its mean in the other calls. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
static int current, usual;
static bool known, inside;
enum { MOST = 64 };
static MPI_Comm made_beside[MOST]; /* in place of the program's */
static int made_count;
static int64_t meetings[2][2]; /* of the other calls, of those that are longer: how many, nanoseconds */
static int (*allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
static int (*alltoall)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);

__attribute__((constructor)) static void find(void)
{
    void *found = dlsym(RTLD_NEXT, "PMPI_Allreduce");
    memcpy(&allreduce, &found, sizeof found);
    found = dlsym(RTLD_NEXT, "PMPI_Alltoall");
    memcpy(&alltoall, &found, sizeof found);
}

int MPI_T_cvar_handle_alloc(int index, void *object, MPI_T_cvar_handle *made, int *count)
{
    const char *name = getenv("CT_SLOW_VARIABLE");
    int wanted, code = PMPI_T_cvar_handle_alloc(index, object, made, count);
    if (name != NULL && code == MPI_SUCCESS && PMPI_T_cvar_get_index(name, &wanted) == MPI_SUCCESS && index == wanted) {
        handle = *made;
        if (PMPI_T_cvar_read(handle, &usual) == MPI_SUCCESS)
            current = usual;
    }
    return code;
}

int MPI_T_cvar_write(MPI_T_cvar_handle written, const void *value)
{
    if (written == handle && handle != MPI_T_CVAR_HANDLE_NULL)
        current = *(const int *)value;
    return PMPI_T_cvar_write(written, value);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void delay(bool tuned, MPI_Comm comm)
{
    const char *slow = getenv("CT_SLOW"), *us = getenv("CT_SLOW_US");
    known = slow != NULL && us != NULL;
    if (!known)
        return;
    bool longer = strcmp(slow, tuned ? "tuned" : "default") == 0;
    int64_t ns = longer ? (int64_t)(1000.0 * atof(us)) : 0;
    PMPI_Barrier(comm);
    int64_t began_ns = now_ns();
    while (now_ns() - began_ns < ns)
        sched_yield(); /* as a library that waits: a sleep would change the turns of ranks that share a core */
    PMPI_Barrier(comm);
    meetings[longer][0]++;
    meetings[longer][1] += now_ns() - began_ns;
}

/* A library may make one call by another: only the outer one counts. */
#define CALL(REAL, TUNED, COMM)                                                                                        \
    if (inside)                                                                                                        \
        return REAL;                                                                                                   \
    inside = true;                                                                                                     \
    bool tuned = TUNED;                                                                                                \
    int code = REAL;                                                                                                   \
    delay(tuned, COMM);                                                                                                \
    inside = false;                                                                                                    \
    return code

/* libcolltune.so is before us: this comes back as PMPI_, as soon as it has looked at the call. */
int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    return PMPI_Allreduce(in, out, count, type, op, comm);
}

int MPI_Alltoall(const void *in, int sent, MPI_Datatype type, void *out, int got, MPI_Datatype other, MPI_Comm comm)
{
    return PMPI_Alltoall(in, sent, type, out, got, other, comm);
}

int PMPI_Comm_create(MPI_Comm from, MPI_Group group, MPI_Comm *made)
{
    int (*next)(MPI_Comm, MPI_Group, MPI_Comm *);
    void *found = dlsym(RTLD_NEXT, "PMPI_Comm_create");
    memcpy(&next, &found, sizeof found);
    int code = next(from, group, made);
    made_beside[made_count++ % MOST] = *made;
    return code;
}

static bool is_tuned(MPI_Comm comm)
{
    bool tuned = current != usual;
    for (int i = 0; i < MOST && i < made_count; i++)
        tuned = tuned || made_beside[i] == comm;
    return tuned;
}

int PMPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    CALL(allreduce(in, out, count, type, op, comm), is_tuned(comm), comm);
}

int PMPI_Alltoall(const void *in, int sent, MPI_Datatype type, void *out, int got, MPI_Datatype other, MPI_Comm comm)
{
    CALL(alltoall(in, sent, type, out, got, other, comm), is_tuned(comm), comm);
}

int MPI_Finalize(void)
{
    int64_t sums[2][2];
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Reduce(meetings, sums, 4, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    double mean[2];
    for (int i = 0; i < 2; i++)
        mean[i] = sums[i][0] == 0 ? 0.0 : (double)sums[i][1] / (double)sums[i][0];
    if (rank == 0 && known)
        printf("delayed_calls %lld delayed_ns %.0f\n", (long long)sums[1][0], sums[1][0] == 0 ? 0.0 : mean[1] - mean[0]);
    return PMPI_Finalize();
}
