/* One call of any collective under way: its buffers, and the arguments that it is made with. */
#pragma once

#include "collectives.h"

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
