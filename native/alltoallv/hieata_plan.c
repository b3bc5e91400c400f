/* HieAta's lists of destinations: a matter of the map of nodes alone, so made once for a communicator. */
#include "hieata.h"

#include <stdlib.h>

void ct_hieata_forget(ct_team *team)
{
    ct_hieata_plan *plan = team->plan;
    if (plan == NULL)
        return;
    free(plan->first);
    free(plan->list);
    free(plan->own_first);
    free(plan);
    team->plan = NULL;
}

static void ct__fill(const ct_team *team, int local, ct_hieata_plan *plan)
{
    int rank = team->member[team->first[team->node] + local], at = plan->first[local];
    plan->list[at++] = rank;
    for (int k = 1; k < team->node_count; k++) {
        int node = (team->node + k) % team->node_count;
        if (rank == team->rank)
            plan->own_first[k] = at - plan->first[local];
        for (int i = team->first[node]; i < team->first[node + 1]; i++)
            if (ct_hieata_forwarder(team, team->node, team->member[i]) == rank)
                plan->list[at++] = team->member[i];
    }
    if (rank == team->rank)
        plan->own_first[team->node_count] = at - plan->first[local];
    plan->first[local + 1] = at;
}

int ct_hieata_plan_make(ct_team *team)
{
    if (team->plan != NULL)
        return MPI_SUCCESS;
    int locals = ct_team_node_size(team, team->node);
    ct_hieata_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return MPI_ERR_NO_MEM;
    team->plan = plan;
    plan->first = calloc((size_t)locals + 1, sizeof(int));
    plan->list = calloc((size_t)team->size, sizeof(int)); /* no more than every rank: each is in one list at most */
    plan->own_first = calloc((size_t)team->node_count + 1, sizeof(int));
    if (plan->first == NULL || plan->list == NULL || plan->own_first == NULL) {
        ct_hieata_forget(team);
        return MPI_ERR_NO_MEM;
    }
    for (int local = 0; local < locals; local++)
        ct__fill(team, local, plan);
    return MPI_SUCCESS;
}
