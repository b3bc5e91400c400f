#include "hieata_plan.h"

#include <stdlib.h>

void ct_hieata_plan_free(ct_hieata_plan *plan)
{
    if (plan == NULL)
        return;
    free(plan->first);
    free(plan->list);
    free(plan->own_first);
    free(plan);
}

/* The list of the rank with index `local` on the node of rank `me`. */
static void ct__fill(const ct_nodes *nodes, int me, int local, ct_hieata_plan *plan)
{
    int own = nodes->node_of[me], rank = nodes->member[nodes->first[own] + local], at = plan->first[local];
    plan->list[at++] = rank;
    for (int k = 1; k < nodes->count; k++) {
        int node = (own + k) % nodes->count;
        if (rank == me)
            plan->own_first[k] = at - plan->first[local];
        for (int i = nodes->first[node]; i < nodes->first[node + 1]; i++)
            if (ct_hieata_forwarder(nodes, own, nodes->member[i]) == rank)
                plan->list[at++] = nodes->member[i];
    }
    if (rank == me)
        plan->own_first[nodes->count] = at - plan->first[local];
    plan->first[local + 1] = at;
}

ct_hieata_plan *ct_hieata_plan_make(const ct_nodes *nodes, int rank)
{
    int locals = ct_nodes_ranks(nodes, nodes->node_of[rank]), size = nodes->first[nodes->count];
    ct_hieata_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return NULL;
    plan->first = calloc((size_t)locals + 1, sizeof(int));
    plan->list = calloc((size_t)size, sizeof(int)); /* no more than every rank: each is in one list at most */
    plan->own_first = calloc((size_t)nodes->count + 1, sizeof(int));
    if (plan->first == NULL || plan->list == NULL || plan->own_first == NULL) {
        ct_hieata_plan_free(plan);
        return NULL;
    }
    for (int local = 0; local < locals; local++)
        ct__fill(nodes, rank, local, plan);
    return plan;
}
