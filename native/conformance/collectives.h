/* Every collective of the replay. */
#ifndef CT_COLLECTIVES_H
#define CT_COLLECTIVES_H

#include "case.h"

#define CT_COLLECTIVES 12

extern const struct ct_collective ct_collectives[CT_COLLECTIVES];

/* Its number in ct_collectives, -1 for an unknown name. `length`: of the name, which need not end there. */
int ct_collective_find(const char *name, size_t length);

void ct_allgather_run(const struct ct_case *c, struct ct_verdict *verdict);
void ct_allgatherv_run(const struct ct_case *c, struct ct_verdict *verdict);
void ct_allreduce_run(const struct ct_case *c, struct ct_verdict *verdict);
void ct_alltoall_run(const struct ct_case *c, struct ct_verdict *verdict);
void ct_alltoallv_run(const struct ct_case *c, struct ct_verdict *verdict);
void ct_barrier_run(const struct ct_case *c, struct ct_verdict *verdict);
void ct_bcast_run(const struct ct_case *c, struct ct_verdict *verdict);
void ct_gather_run(const struct ct_case *c, struct ct_verdict *verdict);
void ct_reduce_run(const struct ct_case *c, struct ct_verdict *verdict);
void ct_reduce_scatter_run(const struct ct_case *c, struct ct_verdict *verdict);
void ct_reduce_scatter_block_run(const struct ct_case *c, struct ct_verdict *verdict);
void ct_scatter_run(const struct ct_case *c, struct ct_verdict *verdict);

#endif
