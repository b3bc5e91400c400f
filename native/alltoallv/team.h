/* What the algorithms keep for a communicator: a private one of the same ranks, its nodes, and buffers that are used again. */
#pragma once

#include "exchange.h"
#include "nodes.h"

#include <stddef.h>

/* HieAta's map of who forwards to whom: a matter of the nodes alone, so made once for a communicator (hieata.c). */
typedef struct ct_hieata_plan ct_hieata_plan;
void ct_hieata_plan_free(ct_hieata_plan *plan); /* or NULL */

/* A received message; slots of the algorithms point into it. */
typedef struct {
    size_t capacity;
    int live; /* slots that still point here */
    _Alignas(max_align_t) char data[];
} ct_chunk;

enum { CT_POOL_MOST = 64 };

typedef struct {
    ct_chunk *idle[CT_POOL_MOST];
    int idle_count;
    size_t idle_bytes;
} ct_pool;

typedef struct {
    MPI_Comm comm; /* private: no message of the application can meet ours */
    int rank, size;
    int node; /* this rank's */
    ct_nodes nodes;
    ct_pool pool;
    unsigned calls; /* exchanges so far, on all ranks alike */
    ct_hieata_plan *plan; /* NULL until HieAta's first use */
} ct_team;

/* Fills in the first rank of each rank's node; collective over `comm`, and an MPI error code on all ranks alike. */
typedef int ct_team_nodes(const void *of, MPI_Comm comm, int *leaders);
/* The team of a private communicator, which must outlive it. `leaders` is called with `of`. Collective; *team is NULL on failure,
 * on all ranks alike where it was memory that lacked. */
int ct_team_make(MPI_Comm private_comm, ct_team_nodes *leaders, const void *of, ct_team **team);
void ct_team_free(ct_team *team);

/* The most bytes that the algorithms may hold for a communicator at once. */
enum { CT_TEAM_MEMORY = 64 << 20 };

/* The largest block, in bytes, that may be forwarded by other ranks; equal on all ranks. */
int64_t ct_team_forwarded_most(const ct_team *team, const ct_alltoallv_choice *choice);

/* NULL: no memory. */
ct_chunk *ct_pool_take(ct_pool *pool, size_t bytes);
void ct_pool_give(ct_pool *pool, ct_chunk *chunk);
void ct_pool_empty(ct_pool *pool);
