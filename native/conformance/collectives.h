/* Every collective of the replay, and one call of any of them under way: its buffers, and the arguments that it is made with. */
#pragma once

#include "case.h"

#define CT_REPLAYED 18

extern const struct ct_collective ct_collectives[CT_REPLAYED];

/* Its number in ct_collectives, -1 for an unknown name. `length`: of the name, which need not end there. */
int ct_collective_find(const char *name, size_t length);

/* The buffers and arguments of one call, blocking or not. */
void ct_moves_open(const struct ct_case *c, unsigned salt, struct ct_flight *flight);
void ct_bcast_open(const struct ct_case *c, unsigned salt, struct ct_flight *flight);
void ct_reductions_open(const struct ct_case *c, unsigned salt, struct ct_flight *flight);

void ct_barrier_run(const struct ct_case *c, struct ct_verdict *verdict);
void ct_blocking_run(const struct ct_case *c, struct ct_verdict *verdict);
/* Several calls of a non-blocking collective at once, completed in an order that differs from rank to rank. */
void ct_nonblocking_run(const struct ct_case *c, struct ct_verdict *verdict);

/* The blocks of one side, in elements of `type`. */
struct ct_layout {
    int blocks;
    int *counts, *places; /* owned: counts, the places behind them */
    MPI_Datatype type;
};

struct ct_flight {
    struct ct_buffer send, recv;  /* one that a call does not have has no memory */
    struct ct_layout out, in;
    struct ct_junk sent, got;     /* as MPI gets them, junk where they do not count */
    size_t free_from, free_count; /* elements received that may be anything after the call */
};

/* The arguments of buffers that are made: MPI_IN_PLACE, the buffer where it counts, or junk. */
void ct_flight_argue(const struct ct_case *c, struct ct_flight *flight, bool sent_here, bool sends, bool got_here,
                     bool receives);
