/* HieAta as a plan: ParAta within the node, then one message, or one for each block, to the ranks that are forwarded to. */
#include "plan.h"

#include "hieata.h"

static int64_t ct__sent_bytes(const ct_plan_build *b, const int *own, int source, int index)
{
    if (source == b->steps.me)
        return ct_forwarded(&b->x->send, own[index], b->steps.forwarded_most);
    return b->steps.home[source].sizes[index];
}

static int64_t ct__received_bytes(const ct_plan_build *b, int rank)
{
    return ct_forwarded(&b->x->receive, rank, b->steps.forwarded_most);
}

/* The first block of each parcel is for this rank. */
static void ct__unpack_own(ct_plan_build *b)
{
    for (int source = 0; source < b->steps.size; source++) {
        if (source == b->steps.me)
            continue;
        const ct_parcel *parcel = &b->steps.home[source];
        if (parcel->sizes[0] > 0)
            ct_plan_unpack(b->plan, &b->x->receive, ct_steps_rank(&b->steps, source), parcel->data);
        b->eaten[source] = parcel->sizes[0];
    }
}

static int ct__send(ct_plan_build *b, const int *own, int index, bool staggered)
{
    int to = own[index];
    int64_t bytes = 0, at = 0;
    for (int source = 0; source < b->steps.size; source++)
        bytes += ct__sent_bytes(b, own, source, index);
    char *out = ct_plan_buffer(b->plan, staggered ? 0 : bytes);
    for (int source = 0; source < b->steps.size; source++) {
        int64_t block = ct__sent_bytes(b, own, source, index);
        const char *held = source == b->steps.me || block == 0 ? NULL : b->steps.home[source].data + b->eaten[source];
        if (block == 0)
            continue;
        if (staggered && held == NULL)
            CT_TRY(ct_plan_send_block(b->plan, &b->x->send, to, to, true));
        else if (staggered)
            CT_TRY(ct_plan_send(b->plan, held, block, to));
        else if (held == NULL)
            ct_plan_pack(b->plan, &b->x->send, to, out + at);
        else
            ct_plan_copy(b->plan, out + at, held, block);
        b->eaten[source] += held == NULL ? 0 : block;
        at += block;
    }
    return staggered ? MPI_SUCCESS : ct_plan_send(b->plan, out, bytes, to);
}

static int ct__receive(ct_plan_build *b, int node, bool staggered)
{
    const ct_team *team = b->team;
    int from = ct_hieata_forwarder(team, node, team->rank);
    int64_t bytes = 0, at = 0;
    for (int i = team->first[node]; i < team->first[node + 1]; i++)
        bytes += ct__received_bytes(b, team->member[i]);
    char *in = ct_plan_buffer(b->plan, staggered ? 0 : bytes);
    for (int i = team->first[node]; i < team->first[node + 1]; i++) {
        int64_t block = ct__received_bytes(b, team->member[i]);
        if (block == 0)
            continue;
        if (staggered)
            CT_TRY(ct_plan_receive_block(b->plan, &b->x->receive, team->member[i], from, true));
        else
            ct_plan_unpack(b->plan, &b->x->receive, team->member[i], in + at);
        at += block;
    }
    return staggered ? MPI_SUCCESS : ct_plan_receive(b->plan, in, bytes, from);
}

int ct_plan_hieata(ct_plan_build *b)
{
    const ct_team *team = b->team;
    const ct_hieata_plan *lists = team->plan;
    const int *own = &lists->list[lists->first[b->steps.me]];
    bool staggered = b->choice.algorithm == CT_ALLTOALLV_HIEATA_STAGGERED;
    int batch = b->choice.batch > 0 && b->choice.batch < team->node_count ? b->choice.batch : team->node_count;
    CT_TRY(ct_plan_steps(b));
    ct__unpack_own(b);
    for (int first = 1; first < team->node_count; first += batch) {
        int last = first + batch < team->node_count ? first + batch : team->node_count, receives = b->plan->receive_count;
        for (int i = lists->own_first[first]; i < lists->own_first[last]; i++)
            CT_TRY(ct__send(b, own, i, staggered));
        ct_plan_stage_end(b->plan, receives);
        for (int distance = first; distance < last; distance++)
            CT_TRY(ct__receive(b, (team->node - distance + team->node_count) % team->node_count, staggered));
    }
    return MPI_SUCCESS;
}
