/* Communicators for colltune's own messages. */
#ifndef CT_PRIVATE_COMM_H
#define CT_PRIVATE_COMM_H

#include <mpi.h>

/* A communicator of the same ranks in the same order, whose errors come back as codes. Not a duplicate: that would call the copy
 * and delete functions of the program's attributes, and take over its info. Collective. */
static inline int ct_private_comm(MPI_Comm comm, MPI_Comm *made)
{
    MPI_Group group;
    *made = MPI_COMM_NULL;
    int code = PMPI_Comm_group(comm, &group);
    if (code != MPI_SUCCESS)
        return code;
    code = PMPI_Comm_create(comm, group, made);
    PMPI_Group_free(&group);
    if (code == MPI_SUCCESS) /* it has the error handler of the communicator that it is made from */
        code = PMPI_Comm_set_errhandler(*made, MPI_ERRORS_RETURN);
    return code;
}

#endif
