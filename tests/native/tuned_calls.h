/* Of what is preloaded behind libcolltune.so: whether a call is tuned.
 *
 * On MPICH it is while the control variable CT_SLOW_VARIABLE, else that of the broadcast, is not as it was; on Open MPI where the call is
 * made on a communicator that the program did not make. */
#pragma once
#define _GNU_SOURCE
#include "collectives.h"
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 4096 };
static MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
static int current, usual;
static MPI_Comm made_beside[MOST]; /* in place of the program's */
static int made_count;

static inline void find(void *function, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof found);
}

int MPI_T_cvar_handle_alloc(int index, void *object, MPI_T_cvar_handle *made, int *count)
{
    const char *name = getenv("CT_SLOW_VARIABLE");
    int asked, code = PMPI_T_cvar_handle_alloc(index, object, made, count);
    if (code == MPI_SUCCESS &&
        PMPI_T_cvar_get_index(name == NULL ? "MPIR_CVAR_BCAST_INTRA_ALGORITHM" : name, &asked) == MPI_SUCCESS && index == asked) {
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
    for (int i = 0; i < MOST && i < made_count; i++)
        if (made_beside[i] == *comm)
            made_beside[i] = MPI_COMM_NULL;
    return next(comm);
}

static inline bool is_tuned(MPI_Comm comm)
{
    bool tuned = current != usual;
    for (int i = 0; i < MOST && i < made_count; i++)
        tuned = tuned || made_beside[i] == comm;
    return tuned;
}
