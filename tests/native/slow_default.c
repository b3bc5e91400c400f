/* An MPICH in which one algorithm of MPI_Bcast is much faster than all others, to preload (LD_PRELOAD): a test knows
 * then what is proven. Fast is what the control variable has as CT_FAST, and any call where a selection file is loaded.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VARIABLE "MPIR_CVAR_BCAST_INTRA_ALGORITHM"
#define FILE_VARIABLE "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
#define DELAY_US 3000

static MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
static int current;

int MPI_T_cvar_handle_alloc(int index, void *object, MPI_T_cvar_handle *made, int *count)
{
    int wanted;
    int rc = PMPI_T_cvar_handle_alloc(index, object, made, count);

    if (rc == MPI_SUCCESS && PMPI_T_cvar_get_index(VARIABLE, &wanted) == MPI_SUCCESS && index == wanted)
        handle = *made;
    return rc;
}

int MPI_T_cvar_write(MPI_T_cvar_handle written, const void *value)
{
    if (written == handle)
        current = *(const int *)value;
    return PMPI_T_cvar_write(written, value);
}

/* With libcolltune.so before us this comes back as PMPI_, as soon as it has looked at the call. */
int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    return PMPI_Bcast(buffer, count, type, root, comm);
}

int PMPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int (*next)(void *, int, MPI_Datatype, int, MPI_Comm);
    void *found = dlsym(RTLD_NEXT, "PMPI_Bcast");
    memcpy(&next, &found, sizeof found);
    const char *fast = getenv("CT_FAST");
    if (type != MPI_UINT64_T /* of the experiment itself */ && fast != NULL && current != atoi(fast) && getenv(FILE_VARIABLE) == NULL)
        usleep(DELAY_US);
    return next(buffer, count, type, root, comm);
}
