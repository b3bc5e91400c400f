/* What goes on inside the MPI library's own progress: a started exchange must go on in any call of MPI that blocks, not only
 * when it is waited for. MPICH has MPIX_Async_start for it since 4.3; Open MPI's components register with opal_progress. */
#ifndef CT_PROGRESS_H
#define CT_PROGRESS_H

#include <mpi.h>
#include <stdbool.h>

/* Whether this MPI library has a way to do so; the same on all ranks of a job. */
bool ct_progress_has(void);
/* `poll` is called now and then, in any thread that is inside MPI, and may start messages; it returns whether it is to be
 * called on. */
int ct_progress_start(bool (*poll)(void));
/* Whether the message is complete; may be asked inside `poll`. The request stays as it is. */
bool ct_progress_is_complete(MPI_Request request);

#endif
