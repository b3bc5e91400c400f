/* One call of MPI_Alltoallv as the algorithms see it: where each block lies, and how large it is.
 *
 * Only PMPI_ functions are called here and in all of native/alltoallv, so that interception never meets itself. */
#pragma once

#include "codes.h"
#include "colltune_alltoallv.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Blocks of one direction. */
typedef struct {
    char *base;
    MPI_Datatype type;
    const MPI_Datatype *types; /* MPI_Alltoallw with more than one type: one for each block; else NULL, and `type` counts */
    int64_t *each_bytes;       /* then: bytes of each block, owned */
    const void *counts, *displacements;
    bool wide;         /* counts are MPI_Count and displacements MPI_Aint; else both are int */
    bool plain;        /* packing a block is copying its bytes */
    MPI_Aint stride;   /* bytes of one unit of displacement: the extent, or 1 in MPI_Alltoallw */
    int64_t type_bytes; /* of one element without its gaps */
} ct_side;

typedef struct {
    ct_side send, receive;
} ct_exchange;

/* What all ranks agree on before they choose; both by MPI_MAX, so that it may be gathered in any order. A rank's block for
 * itself is no message and does not count. */
typedef struct {
    int64_t bytes; /* that the busiest rank sends, or receives, if that is more */
    int64_t idle;  /* empty blocks, sent and received together, of the rank that has most of them; 2 (P - 1) if all are */
} ct_statistic;
#define CT_GAPS (INT64_C(1) << 62) /* in its `bytes`: some rank's data have gaps, which no proof of a rule had */

static inline int64_t ct_side_count(const ct_side *side, int peer)
{
    return side->wide ? (int64_t)((const MPI_Count *)side->counts)[peer] : ((const int *)side->counts)[peer];
}

static inline int64_t ct_side_bytes(const ct_side *side, int peer)
{
    return side->types ? side->each_bytes[peer] : ct_side_count(side, peer) * side->type_bytes;
}

static inline MPI_Datatype ct_side_type(const ct_side *side, int peer) { return side->types ? side->types[peer] : side->type; }

static inline char *ct_side_at(const ct_side *side, int peer)
{
    MPI_Aint at = side->wide ? ((const MPI_Aint *)side->displacements)[peer] : ((const int *)side->displacements)[peer];
    return side->base + at * side->stride;
}

/* MPI_Alltoallv: one type for all blocks. */
int ct_side_set(ct_side *side, void *base, const void *counts, const void *displacements, MPI_Datatype type, bool wide);
/* MPI_Alltoallw: a type for each block, displacements in bytes. `side` owns memory if one type is unlike another. */
int ct_side_set_types(ct_side *side, void *base, const void *counts, const void *displacements, const MPI_Datatype *types,
                      bool wide, int size);
void ct_side_free(ct_side *side);

/* Whole blocks between user buffers, with the user's types: no copy. A block without bytes must not come here. */
int ct_block_send(const ct_side *side, int block, int peer, int tag, MPI_Comm comm, MPI_Request *request);
int ct_block_receive(const ct_side *side, int block, int peer, int tag, MPI_Comm comm, MPI_Request *request);
int ct_block_copy_own(const ct_exchange *x, int rank, MPI_Comm comm);

/* A block to its packed form of ct_side_bytes bytes; blocks of less than 2 GiB. */
int ct_block_pack(const ct_side *side, int peer, char *to, MPI_Comm comm);
/* A block from the packed form that came. It may be shorter than there is room for; a longer one is an error, and nothing is
 * written. `me`: this rank in `comm`. */
int ct_block_unpack(const ct_side *side, int peer, const char *from, int64_t bytes, int me, MPI_Comm comm);

/* Waits for all, and returns the first error of any. One by one: an error of MPI_Waitall may come to the handler of another
 * communicator than that of the requests (MPICH). */
int ct_wait_all(int count, MPI_Request *requests);

/* This rank's part of the statistic. */
ct_statistic ct_exchange_statistic(const ct_exchange *x, int rank, int size);
static inline void ct_statistic_join(ct_statistic *into, const ct_statistic *other)
{
    if (other->bytes > into->bytes)
        into->bytes = other->bytes;
    if (other->idle > into->idle)
        into->idle = other->idle;
}

/* What copying costs where time is simulated, and data are not carried; on a real machine it simply takes time. */
#ifdef CT_SIMULATED
void ct_charge(int64_t blocks, int64_t bytes);
static inline void ct_copy_data(char *to, const char *from, int64_t bytes) { (void)to, (void)from, (void)bytes; }
#else
static inline void ct_charge(int64_t blocks, int64_t bytes) { (void)blocks, (void)bytes; }
static inline void ct_copy_data(char *to, const char *from, int64_t bytes) { memcpy(to, from, (size_t)bytes); }
#endif
