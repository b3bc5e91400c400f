/* barrier: no rank may leave before the last one has entered. */
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "collectives.h"

#define CT__TAG_LEFT 31005
#define CT__LATE_NS 2000000

/* Time for a rank that should have waited to be caught. */
static void ct__be_late(const struct ct_case_comm *comm, struct ct_verdict *verdict)
{
    const struct timespec nap = {0, CT__LATE_NS / 4};
    MPI_Status status;
    int came = 0;

    for (int naps = 0; naps < 4 && !came; naps++) {
        nanosleep(&nap, NULL);
        MPI_Iprobe(MPI_ANY_SOURCE, CT__TAG_LEFT, comm->handle, &came, &status);
    }
    if (came)
        ct_verdict_fail(verdict, "rank %d of its group left before rank %d had entered", status.MPI_SOURCE,
                        comm->rank);
}

/* One rank (the case's root) enters late, and every peer sends to it as soon as it has left. The standard lets a
 * rank of an inter-communicator leave once all of the other group have entered, so only that group is watched;
 * point-to-point messages on it go there anyway. */
void ct_barrier_run(const struct ct_case *c, struct ct_verdict *verdict)
{
    const struct ct_case_comm *comm = c->comm;
    const struct ct_role role = ct_case_role(c);
    char token = 0;

    if (role.is_root)
        ct__be_late(comm, verdict);
    ct_verdict_check(verdict, MPI_Barrier(comm->handle), "MPI_Barrier");
    if (role.is_leaf && !role.is_root)
        MPI_Send(&token, 1, MPI_BYTE, role.root_rank, CT__TAG_LEFT, comm->handle);
    for (int p = 0; role.is_root && p < comm->peers; p++)
        if (comm->inter || p != comm->rank)
            MPI_Recv(&token, 1, MPI_BYTE, p, CT__TAG_LEFT, comm->handle, MPI_STATUS_IGNORE);
}
