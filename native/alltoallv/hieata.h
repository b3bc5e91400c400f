/* HieAta: who forwards to whom, and the exchange between nodes. */
#ifndef CT_HIEATA_H
#define CT_HIEATA_H

#include "steps.h"

/* Local rank f of a node of m forwards to the ranks with local index j, j mod m = f, of every other node. Its list is its
 * own rank, then these ranks node by node in order of distance (node + 1, node + 2, ...); all ranks of a node have the
 * same lists, so that only sizes travel. */
typedef struct {
    int *first;     /* [m + 1] into list */
    int *list;      /* [ranks of the job] */
    int *own_first; /* [nodes + 1] into this rank's list: where the node at each distance begins */
} ct_hieata_plan;

typedef struct {
    ct_steps steps; /* of the node's ranks; steps.home holds what this rank has to forward */
    const ct_hieata_plan *plan;
    const int *own; /* this rank's list */
    int64_t *eaten; /* [m] bytes of each local source's parcel that went out already */
} ct_hieata_call;

int ct_hieata_plan_make(ct_team *team);
/* The exchange within the node, but for its slots and what comes home; after ct_hieata_plan_make. */
ct_steps ct_hieata_steps(ct_team *team, const ct_exchange *x, const ct_alltoallv_choice *choice);
void ct_hieata_forget(ct_team *team);

/* The local rank of `node` that forwards to `rank` of another node. */
static inline int ct_hieata_forwarder(const ct_team *team, int node, int rank)
{
    return team->member[team->first[node] + team->local_of[rank] % ct_team_node_size(team, node)];
}

/* Exchanges between nodes with at most `batch` of them in flight. */
int ct_hieata_between(ct_hieata_call *call, int batch, bool staggered);

#endif
