/* An MPICH in which one algorithm of MPI_Bcast is much faster than all others, to preload (LD_PRELOAD): a test knows
 * then what is proven. Fast is what the control variable has as CT_FAST, and any call where a selection file is loaded.
 */
#include "tuned_calls.h"
#include <unistd.h>

#define FILE_VARIABLE "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
#define DELAY_US 3000

/* With libcolltune.so before us this comes back as PMPI_, as soon as it has looked at the call. */
int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    return PMPI_Bcast(buffer, count, type, root, comm);
}

int PMPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int (*next)(void *, int, MPI_Datatype, int, MPI_Comm);
    find(&next, "PMPI_Bcast");
    const char *fast = getenv("CT_FAST");
    if (type != MPI_UINT64_T /* of the experiment itself */ && fast != NULL && current != atoi(fast) && getenv(FILE_VARIABLE) == NULL)
        usleep(DELAY_US);
    return next(buffer, count, type, root, comm);
}
