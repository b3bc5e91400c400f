/* Communicators for colltune's own messages, and error handlers that step aside for them. */
#pragma once

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>

/* What stands against making one on this rank: duplicates that MPI_Comm_idup has begun and that may not be complete. Open MPI hangs
 * where a communicator is made meanwhile, and which ranks have begun is not the same on all of them. */
extern atomic_int ct_private_comm_barred;

/* A communicator of the same ranks in the same order, whose errors come back as codes. Collective; all ranks get one or none, and
 * then the program's error handler hears nothing: a rank was not willing, something stands against it, or the library has no room
 * for one more. */
int ct_private_comm(MPI_Comm comm, bool willing, MPI_Comm *made);
int ct_private_comm_free(MPI_Comm *made);

/* Whether a handler is one of those that MPI has. */
bool ct_errhandler_is_library_s(MPI_Errhandler handler);
/* Lets go of one that MPI_Comm_get_errhandler gave. */
void ct_errhandler_release(MPI_Errhandler handler);
