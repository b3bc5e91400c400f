/* An MPICH in which one algorithm of MPI_Bcast is much faster than all others, to preload (LD_PRELOAD): a test knows
 * then what is proven. Fast is what the control variable has as CT_FAST, and any call where a selection file is loaded.
 */
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

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    const char *fast = getenv("CT_FAST");
    if (fast != NULL && current != atoi(fast) && getenv(FILE_VARIABLE) == NULL)
        usleep(DELAY_US);
    return PMPI_Bcast(buffer, count, type, root, comm);
}
