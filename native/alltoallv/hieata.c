/* HieAta: within the node every block goes, by ParAta, to the rank that forwards to its destination; then between nodes. */
#include "hieata_between.h"

#include <stdlib.h>

/* The first block of each parcel is for this rank. */
static void ct__unpack_own(ct_hieata_call *c)
{
    ct_steps *s = &c->steps;
    int64_t moved = 0;
    for (int source = 0; source < s->size; source++) {
        if (source == s->me)
            continue;
        uint16_t told = s->home[source].sizes[0];
        int64_t bytes = ct_told_bytes(told);
        ct_keep_first(&s->failed, ct_steps_take(s, ct_steps_rank(s, source), told, s->home[source].data));
        c->eaten[source] = bytes;
        moved += bytes;
    }
    ct_charge(s->size, moved);
}

static int ct__run(ct_hieata_call *c, const ct_alltoallv_choice *choice)
{
    ct_direct direct;
    c->steps.direct = &direct;
    CT_TRY(ct_direct_begin(c->steps.team, c->steps.x, c->steps.forwarded_most, &direct));
    CT_TRY(ct_steps_run(&c->steps));
    ct__unpack_own(c);
    CT_TRY(ct_hieata_between(c, choice->batch, choice->algorithm == CT_ALLTOALLV_HIEATA_STAGGERED));
    for (int source = 0; source < c->steps.size; source++)
        ct_parcel_drop(&c->steps.team->pool, &c->steps.home[source]);
    CT_TRY(ct_direct_end(&direct));
    return c->steps.failed;
}

/* The exchange within the node, but for its slots and what comes home. */
static ct_steps ct__steps(ct_team *team, const ct_exchange *x, const ct_alltoallv_choice *choice)
{
    const ct_hieata_plan *plan = team->plan;
    int locals = ct_nodes_ranks(&team->nodes, team->node), radix = choice->radix < locals ? choice->radix : locals;
    return (ct_steps){.team = team, .x = x, .me = team->nodes.local_of[team->rank], .size = locals,
                      .rank_at = &team->nodes.member[team->nodes.first[team->node]], .list_first = plan->first, .list = plan->list,
                      .radix = radix < 2 ? 2 : radix, .window = 0, .forwarded_most = ct_team_forwarded_most(team, choice)};
}

int ct_hieata(ct_team *team, const ct_exchange *x, const ct_alltoallv_choice *choice, ct_statistic *statistic)
{
    if (team->plan == NULL && (team->plan = ct_hieata_plan_make(&team->nodes, team->rank)) == NULL)
        return MPI_ERR_NO_MEM;
    const ct_hieata_plan *plan = team->plan;
    ct_hieata_call call = {.steps = ct__steps(team, x, choice), .plan = plan};
    size_t count = (size_t)call.steps.size;
    call.own = &plan->list[plan->first[call.steps.me]];
    call.eaten = calloc(count, sizeof(int64_t));
    call.steps.statistic = statistic;
    call.steps.slots = calloc(count, sizeof(ct_parcel));
    call.steps.home = calloc(count, sizeof(ct_parcel));
    int code = call.steps.slots && call.steps.home && call.eaten ? ct__run(&call, choice) : MPI_ERR_NO_MEM;
    free(call.steps.slots);
    free(call.steps.home);
    free(call.eaten);
    return code;
}
