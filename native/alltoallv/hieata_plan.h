/* HieAta: who forwards to whom. A matter of the map of nodes alone, so made once for a communicator. */
#pragma once

#include "nodes.h"

/* Local rank f of a node of m forwards to the ranks with local index j, j mod m = f, of every other node. Its list is its
 * own rank, then these ranks node by node in order of distance (node + 1, node + 2, ...); all ranks of a node have the
 * same lists, so that only sizes travel. */
typedef struct {
    int *first;     /* [m + 1] into list */
    int *list;      /* [ranks of the job] */
    int *own_first; /* [nodes + 1] into this rank's list: where the node at each distance begins */
} ct_hieata_plan;

/* The plan of the node of `rank`; NULL: no memory. */
ct_hieata_plan *ct_hieata_plan_make(const ct_nodes *nodes, int rank);
void ct_hieata_plan_free(ct_hieata_plan *plan); /* or NULL */

/* The local rank of `node` that forwards to `rank` of another node. */
static inline int ct_hieata_forwarder(const ct_nodes *nodes, int node, int rank)
{
    return nodes->member[nodes->first[node] + nodes->local_of[rank] % ct_nodes_ranks(nodes, node)];
}
