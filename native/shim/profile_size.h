/* How much a call moves, and what class its operation is of. */
#pragma once

#include "shim.h"

typedef enum {
    CT_OP_NONE, CT_OP_ARITHMETIC, CT_OP_EXTREMUM, CT_OP_LOGICAL, CT_OP_BITWISE, CT_OP_LOCATION, CT_OP_COMMUTATIVE,
    CT_OP_ORDERED, CT_OP_CLASSES
} ct_op_class;

/* What a call moves. `size_bytes` is what its algorithm is chosen by, as in a scenario: one block of allgather(v),
 * gather(v), scatter(v) and alltoall(v, w), mean where they differ; the whole vector elsewhere. */
typedef struct {
    uint64_t size_bytes;
    uint64_t own_bytes; /* of this rank: its block, its vector, or all its blocks to others and itself */
    bool in_place;
    bool blocks_seen;
    bool gaps; /* alltoall(v, w): the data have gaps */
    uint64_t blocks, empty_blocks, block_bytes, self_bytes, largest_bytes;
    double square_bytes;
} ct_profile_extent;

void ct_profile_measure(const ct_call *call, ct_profile_extent *extent);
ct_op_class ct_profile_op(MPI_Op op);
