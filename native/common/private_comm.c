#include "private_comm.h"
#include "codes.h"

#include <limits.h>

/* MPICH has 2,048 communicators, which are the program's. */
#ifdef MPICH_VERSION
enum { CT__MOST = 32 };
#else
enum { CT__MOST = INT_MAX };
#endif

atomic_int ct_private_comm_barred;
static atomic_int ct__count;

bool ct_errhandler_is_library_s(MPI_Errhandler handler)
{
#ifdef MPI_ERRORS_ABORT
    if (handler == MPI_ERRORS_ABORT)
        return true;
#endif
    return handler == MPI_ERRORS_ARE_FATAL || handler == MPI_ERRORS_RETURN;
}

void ct_errhandler_release(MPI_Errhandler handler)
{
#ifndef OPEN_MPI /* which counts the uses of its own handlers, too */
    if (ct_errhandler_is_library_s(handler))
        return;
#endif
    PMPI_Errhandler_free(&handler);
}

/* Not a duplicate: that would call the copy and delete functions of the program's attributes, and take over its info. */
static int ct__make(MPI_Comm comm, MPI_Comm *made)
{
    MPI_Group group;
    CT_TRY(PMPI_Comm_group(comm, &group));
    int code = PMPI_Comm_create(comm, group, made);
    PMPI_Group_free(&group);
    /* It has the error handler of the communicator that it is made from. */
    return code == MPI_SUCCESS ? PMPI_Comm_set_errhandler(*made, MPI_ERRORS_RETURN) : code;
}

int ct_private_comm(MPI_Comm comm, bool willing, MPI_Comm *made)
{
    MPI_Errhandler handler;
    *made = MPI_COMM_NULL;
    CT_TRY(PMPI_Comm_get_errhandler(comm, &handler));
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    willing = willing && atomic_load(&ct_private_comm_barred) == 0 && atomic_load(&ct__count) < CT__MOST;
    bool have = ct_all(comm, willing);
    have = have && ct_all(comm, ct__make(comm, made) == MPI_SUCCESS);
    PMPI_Comm_set_errhandler(comm, handler);
    ct_errhandler_release(handler);
    if (have)
        atomic_fetch_add(&ct__count, 1);
    else if (*made != MPI_COMM_NULL)
        PMPI_Comm_free(made);
    return have ? MPI_SUCCESS : MPI_ERR_OTHER;
}

int ct_private_comm_free(MPI_Comm *made)
{
    atomic_fetch_sub(&ct__count, 1);
    return PMPI_Comm_free(made);
}
