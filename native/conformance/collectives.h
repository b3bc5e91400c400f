/* Every collective of the replay. */
#ifndef CT_COLLECTIVES_H
#define CT_COLLECTIVES_H

#include "case.h"

#define CT_COLLECTIVES 18

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
void ct_exscan_run(const struct ct_case *c, struct ct_verdict *verdict);
void ct_gather_run(const struct ct_case *c, struct ct_verdict *verdict);
void ct_reduce_run(const struct ct_case *c, struct ct_verdict *verdict);
void ct_reduce_scatter_run(const struct ct_case *c, struct ct_verdict *verdict);
void ct_reduce_scatter_block_run(const struct ct_case *c, struct ct_verdict *verdict);
void ct_scan_run(const struct ct_case *c, struct ct_verdict *verdict);
void ct_scatter_run(const struct ct_case *c, struct ct_verdict *verdict);

/* The buffers of one call, blocking or not. */
void ct_allgather_open(const struct ct_case *c, unsigned salt, struct ct_flight *flight);
void ct_allreduce_open(const struct ct_case *c, unsigned salt, struct ct_flight *flight);
void ct_alltoall_open(const struct ct_case *c, unsigned salt, struct ct_flight *flight);
void ct_bcast_open(const struct ct_case *c, unsigned salt, struct ct_flight *flight);
/* Compares and frees them. */
void ct_flight_close(struct ct_flight *flight, struct ct_verdict *verdict);

/* Several calls of a non-blocking collective at once, completed in an order that differs from rank to rank. */
void ct_nonblocking_run(const struct ct_case *c, struct ct_verdict *verdict);
int ct_iallgather_start(const struct ct_case *c, struct ct_flight *flight, MPI_Request *request);
int ct_iallreduce_start(const struct ct_case *c, struct ct_flight *flight, MPI_Request *request);
int ct_ialltoall_start(const struct ct_case *c, struct ct_flight *flight, MPI_Request *request);
int ct_ibcast_start(const struct ct_case *c, struct ct_flight *flight, MPI_Request *request);

#endif
