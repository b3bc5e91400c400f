/* A library with a fault, to preload (LD_PRELOAD) under a program that should find it.
 *
 * COLLTUNE_TEST_FAULT=COLLECTIVE:BYTES:WHAT[:CONTROL_VARIABLE=VALUE[:CALL]] strikes in calls of COLLECTIVE (an element of
 * allreduce counts as four bytes) with that many bytes (* is any number), from the CALL-th such call on (1), while the
 * control variable has that value. WHAT, on all ranks: swap (allreduce: two ranks' operands change places), overrun
 * (allgather: a byte after the receive buffer), gap (bcast: a byte that the type leaves out), leave (barrier: does not
 * wait); on rank 1 of the communicator, for bcast of MPI_BYTE and allreduce: wrong (one byte of the result is changed),
 * abort, hang, exit (the process ends in good order), slow (the call takes a tenth of a second more).
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int has_value(const char *condition)
{
    char name[128];
    int index, count, value, wanted;
    MPI_T_cvar_handle handle;
    if (sscanf(condition, "%127[^=]=%d", name, &wanted) != 2 || MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS ||
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS)
        abort();
    MPI_T_cvar_read(handle, &value);
    MPI_T_cvar_handle_free(&handle);
    return value == wanted;
}

/* What is to go wrong in this call; "" for nothing. */
static const char *fault_of(const char *collective, int bytes)
{
    static int calls;
    static char copy[256];
    char *rest = NULL;
    const char *fault = getenv("COLLTUNE_TEST_FAULT");
    if (fault == NULL || strlen(fault) >= sizeof copy)
        return "";
    strcpy(copy, fault);
    const char *where = strtok_r(copy, ":", &rest), *size = strtok_r(NULL, ":", &rest);
    const char *what = strtok_r(NULL, ":", &rest), *condition = strtok_r(NULL, ":", &rest);
    const char *call = strtok_r(NULL, ":", &rest);
    if (what == NULL || strcmp(where, collective) != 0 || (*size != '*' && atoi(size) != bytes) ||
        (condition != NULL && !has_value(condition)) || ++calls < (call == NULL ? 1 : atoi(call)))
        return "";
    return what;
}

static void strike(const char *what, unsigned char *result, MPI_Comm comm)
{
    int rank;
    PMPI_Comm_rank(comm, &rank);
    if (rank != 1)
        return;
    if (strcmp(what, "wrong") == 0)
        result[0] ^= 1;
    else if (strcmp(what, "hang") == 0)
        for (;;)
            pause();
    else if (strcmp(what, "slow") == 0)
        usleep(100000);
    else if (strcmp(what, "exit") == 0)
        _exit(0);
    else if (strcmp(what, "abort") == 0)
        abort();
}

int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    const char *what = fault_of("allreduce", 4 * count);
    int inter, rank;
    PMPI_Comm_test_inter(comm, &inter);
    PMPI_Comm_rank(comm, &rank);
    if (!inter && strcmp(what, "swap") == 0)
        PMPI_Comm_split(comm, 0, -rank, &comm);
    int code = PMPI_Allreduce(send, receive, count, type, op, comm);
    strike(what, receive, comm);
    return code;
}

int MPI_Allgather(const void *send, int sends, MPI_Datatype sent, void *receive, int count, MPI_Datatype type, MPI_Comm comm)
{
    MPI_Aint lower, extent;
    int size, inter;
    int code = PMPI_Allgather(send, sends, sent, receive, count, type, comm);
    PMPI_Comm_test_inter(comm, &inter);
    (inter ? PMPI_Comm_remote_size : PMPI_Comm_size)(comm, &size);
    PMPI_Type_get_extent(type, &lower, &extent);
    if (strcmp(fault_of("allgather", count), "overrun") == 0)
        ((unsigned char *)receive)[extent * count * size] ^= 1;
    return code;
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    MPI_Aint lower, extent;
    int size;
    int code = PMPI_Bcast(buffer, count, type, root, comm);
    PMPI_Type_get_extent(type, &lower, &extent);
    PMPI_Type_size(type, &size);
    if (type == MPI_BYTE)
        strike(fault_of("bcast", count), buffer, comm);
    else if (count > 0 && extent == 20 && size == 4 && strcmp(fault_of("bcast", count), "gap") == 0)
        ((unsigned char *)buffer)[5] ^= 1;
    return code;
}

int MPI_Barrier(MPI_Comm comm)
{
    return strcmp(fault_of("barrier", 0), "leave") == 0 ? MPI_SUCCESS : PMPI_Barrier(comm);
}
