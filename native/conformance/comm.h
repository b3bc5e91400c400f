/* The communicators that every collective is tried on. */
#pragma once

#include <mpi.h>
#include <stdbool.h>

enum ct_comm_kind {
    CT_COMM_DIRECT,   /* MPI_COMM_WORLD itself, or the group of its first ranks */
    CT_COMM_DUP,
    CT_COMM_REVERSED, /* split with keys that turn the order round */
    CT_COMM_ODD_EVEN, /* split in two: both halves run the same case at the same time */
    CT_COMM_INTER,    /* first half against second half */
    CT_COMM_INTER_ONE,/* one rank against the others */
    CT_COMM_COUNT
};

/* A communicator as the replay sees it. An intra-communicator is its own remote group.
 * size: of the local group; peers: of the group that data comes from; side: 1 on the second side of an
 * inter-communicator, else 0; peer_side: the side of the peers; plan_ranks: a size that is the same for all ranks
 * that run a case together, for choosing counts. */
struct ct_case_comm {
    MPI_Comm handle;
    const char *name;
    int rank, size, peers, side, peer_side, plan_ranks;
    bool inter;
};

const char *ct_comm_kind_name(enum ct_comm_kind kind);

/* Can `ranks` ranks form it? */
bool ct_comm_is_possible(enum ct_comm_kind kind, int ranks);

/* Collective over the first `ranks` ranks of MPI_COMM_WORLD. CT_COMM_DIRECT needs no base; the others are made
 * from it. Returns an MPI error code. Errors of calls on the new communicator are returned, not fatal. */
int ct_comm_make(enum ct_comm_kind kind, int ranks, MPI_Comm base, struct ct_case_comm *comm);
void ct_comm_free(struct ct_case_comm *comm);

/* The number of a rank in the pattern: different for all ranks of both sides, consecutive within one. */
unsigned ct_comm_identity(int side, int rank);
