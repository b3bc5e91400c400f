/* Communicators over parts of the job: the first nodes, and the first ranks on each. */
#ifndef CT_PART_H
#define CT_PART_H

#include "team.h"

/* The communicator of `nodes` with `ppn` ranks each, kept until another is asked for; MPI_COMM_NULL on the ranks that are not in it.
 * MPI_COMM_WORLD for the whole job. `world`: the nodes of the job. Asked for by all ranks of the job in the same order; an
 * MPI error code, MPI_ERR_ARG if the job has no such part. */
int ct_part_get(const ct_team *world, int nodes, int ppn, MPI_Comm *comm);
/* Frees what is kept. */
int ct_part_forget(void);

#endif
