/* Every collective of the replay. */
#pragma once

#include "case.h"

#define CT_COLLECTIVES 18

extern const struct ct_collective ct_collectives[CT_COLLECTIVES];

/* Its number in ct_collectives, -1 for an unknown name. `length`: of the name, which need not end there. */
int ct_collective_find(const char *name, size_t length);

/* The buffers and arguments of one call (flight.h), blocking or not. */
void ct_moves_open(const struct ct_case *c, unsigned salt, struct ct_flight *flight);
void ct_bcast_open(const struct ct_case *c, unsigned salt, struct ct_flight *flight);
void ct_reductions_open(const struct ct_case *c, unsigned salt, struct ct_flight *flight);

void ct_barrier_run(const struct ct_case *c, struct ct_verdict *verdict);
void ct_blocking_run(const struct ct_case *c, struct ct_verdict *verdict);
/* Several calls of a non-blocking collective at once, completed in an order that differs from rank to rank. */
void ct_nonblocking_run(const struct ct_case *c, struct ct_verdict *verdict);
