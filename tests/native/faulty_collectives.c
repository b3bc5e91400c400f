/* A library with a fault, to preload (LD_PRELOAD) under the measuring agent.
 *
 * COLLTUNE_TEST_FAULT=COLLECTIVE:BYTES:WHAT[:CONTROL_VARIABLE=VALUE[:CALL]] strikes rank 1 of the communicator in
 * calls of COLLECTIVE (bcast of MPI_BYTE, allreduce of MPI_FLOAT) with that many bytes (* is any number), from the
 * CALL-th such call on (1), while the control variable has that value. WHAT: wrong (one byte of the result is changed),
 * abort, hang, exit (the process ends in good order),
 * slow (the call takes a tenth of a second more).
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

static void strike(const char *collective, int bytes, unsigned char *result, MPI_Comm comm)
{
    static int calls;
    char copy[256], *rest = NULL;
    const char *fault = getenv("COLLTUNE_TEST_FAULT");
    if (fault == NULL || strlen(fault) >= sizeof copy)
        return;
    strcpy(copy, fault);
    const char *where = strtok_r(copy, ":", &rest), *size = strtok_r(NULL, ":", &rest);
    const char *what = strtok_r(NULL, ":", &rest), *condition = strtok_r(NULL, ":", &rest);
    const char *call = strtok_r(NULL, ":", &rest);
    int rank;
    PMPI_Comm_rank(comm, &rank);
    if (rank != 1 || what == NULL || strcmp(where, collective) != 0 || (*size != '*' && atoi(size) != bytes) ||
        (condition != NULL && !has_value(condition)) || ++calls < (call == NULL ? 1 : atoi(call)))
        return;
    if (strcmp(what, "wrong") == 0)
        result[bytes - 1] ^= 1;
    else if (strcmp(what, "hang") == 0)
        for (;;)
            pause();
    else if (strcmp(what, "slow") == 0)
        usleep(100000);
    else if (strcmp(what, "exit") == 0)
        _exit(0);
    else
        abort();
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int code = PMPI_Bcast(buffer, count, type, root, comm);
    if (type == MPI_BYTE && code == MPI_SUCCESS)
        strike("bcast", count, buffer, comm);
    return code;
}

int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int code = PMPI_Allreduce(send, receive, count, type, op, comm);
    if (type == MPI_FLOAT && code == MPI_SUCCESS)
        strike("allreduce", 4 * count, receive, comm);
    return code;
}
