/* MPI_Alltoallv_init of the program as a plan, behind a request that the library itself starts, completes and frees.
 *
 * The request is a persistent receive of nothing from this rank itself, on the private communicator. Starting it also
 * starts the plan, and the plan's end sends what it waits for. So every function that completes requests works on it. */
#ifndef CT_PERSISTENT_H
#define CT_PERSISTENT_H

#include "call.h"

/* Collective, once for each communicator's state; *ours: the request was made; else the library has to make it, on all
 * ranks alike. */
int ct_persistent_init(const ct_a2av_call *call, MPI_Request *request, bool *ours);
/* Before the library starts, or frees, a request of the program; most are not ours. */
void ct_persistent_started(MPI_Request request);
void ct_persistent_freed(MPI_Request request);

#endif
