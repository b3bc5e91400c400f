/* Which rank of a communicator is on which node. */
#pragma once

#include <mpi.h>
#include <stdbool.h>

typedef struct {
    int count, widest; /* nodes; ranks of the node with most of them */
    int *node_of;      /* [ranks]; nodes are numbered in order of their first rank */
    int *local_of;     /* [ranks] index of each rank on its node */
    int *first;        /* [count + 1] into member */
    int *member;       /* [ranks] ranks node by node, ascending */
} ct_nodes;

/* Room for the map of `size` ranks; false: no memory. Either way ct_nodes_free gives back what there is. */
bool ct_nodes_make(ct_nodes *nodes, int size);
/* Fills the map in, once node_of holds the first rank of each rank's node. */
void ct_nodes_number(ct_nodes *nodes, int size);
/* The first rank of each rank's node, by which ranks can share memory; COLLTUNE_ALLTOALLV_NODE pretends nodes of so many ranks, for
 * tests. Collective; MPI error code. */
int ct_nodes_leaders(MPI_Comm comm, int *leaders);
/* The map of the ranks of `comm`, by ct_nodes_leaders. Collective; MPI error code. */
int ct_nodes_find(MPI_Comm comm, ct_nodes *nodes);
void ct_nodes_free(ct_nodes *nodes);

static inline int ct_nodes_leader(const ct_nodes *nodes, int node) { return nodes->member[nodes->first[node]]; }
/* Ranks on a node. */
static inline int ct_nodes_ranks(const ct_nodes *nodes, int node) { return nodes->first[node + 1] - nodes->first[node]; }
