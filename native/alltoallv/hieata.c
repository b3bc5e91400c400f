/* HieAta: within the node every block goes, by ParAta, to the rank that forwards to its destination; then between nodes each rank gets,
 * from every other node, one message from its forwarder.
 *
 * That message: the statistic, the sizes of the blocks (16 bits each) in the order of their local sources, the blocks. Nodes are
 * visited by distance with at most `batch` in flight; as in linear.c, batches may differ between ranks. */
#include "steps_message.h"

#include <stdlib.h>
#include <string.h>

/* Who forwards to whom. Local rank f of a node of m forwards to the ranks with local index j, j mod m = f, of every other node. Its
 * list is its own rank, then these ranks node by node in order of distance (node + 1, node + 2, ...); all ranks of a node have the
 * same lists, so that only sizes travel. */
struct ct_hieata_plan {
    int *first;     /* [m + 1] into list; all three in one piece */
    int *list;      /* [ranks of the job] no more: each is in one list at most */
    int *own_first; /* [nodes + 1] into this rank's list: where the node at each distance begins */
};

/* The local rank of `node` that forwards to `rank` of another node. */
static int ct__forwarder(const ct_nodes *nodes, int node, int rank)
{
    return nodes->member[nodes->first[node] + nodes->local_of[rank] % ct_nodes_ranks(nodes, node)];
}

void ct_hieata_plan_free(ct_hieata_plan *plan)
{
    if (plan != NULL)
        free(plan->first); /* and all behind it */
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
            if (ct__forwarder(nodes, own, nodes->member[i]) == rank)
                plan->list[at++] = nodes->member[i];
    }
    if (rank == me)
        plan->own_first[nodes->count] = at - plan->first[local];
    plan->first[local + 1] = at;
}

/* The plan of the node of `rank`; NULL: no memory. */
static ct_hieata_plan *ct__plan(const ct_nodes *nodes, int rank)
{
    int locals = ct_nodes_ranks(nodes, nodes->node_of[rank]), size = nodes->first[nodes->count];
    ct_hieata_plan *plan = malloc(sizeof *plan);
    int *all = calloc((size_t)locals + (size_t)size + (size_t)nodes->count + 2, sizeof *all);
    if (plan == NULL || all == NULL) {
        free(all);
        free(plan);
        return NULL;
    }
    *plan = (ct_hieata_plan){.first = all, .list = all + locals + 1, .own_first = all + locals + 1 + size};
    for (int local = 0; local < locals; local++)
        ct__fill(nodes, rank, local, plan);
    return plan;
}

typedef struct {
    ct_steps steps; /* of the node's ranks; steps.home holds what this rank has to forward */
    const ct_hieata_plan *plan;
    const int *own; /* this rank's list */
    int64_t *eaten; /* [m] bytes of each local source's parcel that went out already */
} ct__call;

typedef struct {
    MPI_Request *requests; /* what comes, then what goes */
    ct_chunk **out;        /* packed messages on their way */
    ct_chunk *in;
    int request_count, out_count, distance;
} ct__flight;

static uint16_t ct__told(const ct__call *c, int source, int index)
{
    if (source == c->steps.me)
        return ct_told(&c->steps.x->send, c->own[index], c->steps.forwarded_most);
    return c->steps.home[source].sizes[index];
}

static int64_t ct__head_bytes(int sources) { return (int64_t)(sizeof(ct_statistic) + sizeof(uint16_t) * (size_t)sources); }

/* The next block of a local source's parcel, in packed form; this rank's own is not there. */
static const char *ct__eat(ct__call *c, int source, int64_t bytes)
{
    if (bytes == 0)
        return NULL;
    const char *block = c->steps.home[source].data + c->eaten[source];
    c->eaten[source] += bytes;
    return block;
}

static int ct__send(ct__call *c, int index, ct__flight *flight)
{
    ct_team *team = c->steps.team;
    int64_t bytes = ct__head_bytes(c->steps.size);
    for (int source = 0; source < c->steps.size; source++)
        bytes += ct_told_bytes(ct__told(c, source, index));
    ct_chunk *out = ct_pool_take(&team->pool, (size_t)bytes);
    if (out == NULL)
        return MPI_ERR_NO_MEM;
    flight->out[flight->out_count++] = out;
    memcpy(out->data, c->steps.statistic, sizeof(ct_statistic));
    uint16_t *sizes = (uint16_t *)(void *)(out->data + sizeof(ct_statistic));
    char *to = out->data + ct__head_bytes(c->steps.size);
    for (int source = 0; source < c->steps.size; source++) {
        sizes[source] = ct__told(c, source, index);
        int64_t block = ct_told_bytes(sizes[source]);
        if (block > 0 && source == c->steps.me)
            CT_TRY(ct_block_pack(&c->steps.x->send, c->own[index], to, team->comm));
        else if (block > 0)
            ct_copy_data(to, ct__eat(c, source, block), block);
        to += block;
    }
    ct_charge(c->steps.size, bytes);
    return PMPI_Isend(out->data, (int)bytes, MPI_BYTE, c->own[index], CT_TAG_NODE, team->comm,
                      &flight->requests[flight->request_count++]);
}

static int ct__receive(ct__call *c, int node, ct__flight *flight)
{
    ct_team *team = c->steps.team;
    /* room for the longest blocks that may be forwarded: an error of one must not cost the sizes of the others */
    int64_t bytes = ct__head_bytes(ct_nodes_ranks(&team->nodes, node)) + ct_nodes_ranks(&team->nodes, node) * c->steps.forwarded_most;
    flight->in = ct_pool_take(&team->pool, (size_t)bytes);
    if (flight->in == NULL)
        return MPI_ERR_NO_MEM;
    return PMPI_Irecv(flight->in->data, (int)bytes, MPI_BYTE, ct__forwarder(&team->nodes, node, team->rank), CT_TAG_NODE,
                      team->comm, &flight->requests[flight->request_count++]);
}

static int ct__start(ct__call *c, int distance, ct__flight *flight)
{
    ct_team *team = c->steps.team;
    int source_node = (team->node - distance + team->nodes.count) % team->nodes.count;
    flight->request_count = flight->out_count = 0;
    flight->distance = distance;
    CT_TRY(ct__receive(c, source_node, flight));
    for (int i = c->plan->own_first[distance]; i < c->plan->own_first[distance + 1]; i++)
        CT_TRY(ct__send(c, i, flight));
    return MPI_SUCCESS;
}

static void ct__take_in(ct__call *c, int node, const ct_chunk *in)
{
    ct_team *team = c->steps.team;
    ct_statistic theirs;
    memcpy(&theirs, in->data, sizeof theirs);
    ct_statistic_join(c->steps.statistic, &theirs);
    const uint16_t *sizes = (const uint16_t *)(const void *)(in->data + sizeof theirs);
    const char *from = in->data + ct__head_bytes(ct_nodes_ranks(&team->nodes, node));
    for (int i = team->nodes.first[node]; i < team->nodes.first[node + 1]; i++) {
        uint16_t size = sizes[i - team->nodes.first[node]];
        ct_keep_first(&c->steps.failed, ct_steps_take(&c->steps, team->nodes.member[i], size, from));
        from += ct_told_bytes(size);
    }
    ct_charge(ct_nodes_ranks(&team->nodes, node), from - in->data);
}

static void ct__finish(ct__call *c, ct__flight *flight)
{
    ct_team *team = c->steps.team;
    if (flight->request_count > 0)
        ct_keep_first(&c->steps.failed, ct_wait_all(flight->request_count, flight->requests));
    while (flight->out_count > 0)
        ct_pool_give(&team->pool, flight->out[--flight->out_count]);
    if (flight->in != NULL) {
        ct__take_in(c, (team->node - flight->distance + team->nodes.count) % team->nodes.count, flight->in);
        ct_pool_give(&team->pool, flight->in);
        flight->in = NULL;
    }
}

static int ct__fly(ct__call *c, int batch, ct__flight *flights)
{
    int distances = c->steps.team->nodes.count - 1;
    for (int k = 1; k <= distances; k++) {
        ct__flight *flight = &flights[(k - 1) % batch];
        if (k > batch)
            ct__finish(c, flight);
        CT_TRY(ct__start(c, k, flight));
    }
    for (int k = distances < batch ? 1 : distances - batch + 1; k <= distances; k++)
        ct__finish(c, &flights[(k - 1) % batch]);
    return MPI_SUCCESS;
}

static int ct__between(ct__call *c, int batch)
{
    const ct_team *team = c->steps.team;
    if (team->nodes.count == 1)
        return MPI_SUCCESS;
    if (batch <= 0 || batch > team->nodes.count - 1)
        batch = team->nodes.count - 1;
    /* destinations of one node: its ranks, shared among ours */
    size_t outs = (size_t)((team->nodes.widest + c->steps.size - 1) / c->steps.size), count = (size_t)batch;
    size_t requests = 1 + outs;
    ct__flight *flights = calloc(count, sizeof *flights);
    MPI_Request *all_requests = malloc(sizeof *all_requests * requests * count);
    ct_chunk **all_outs = malloc(sizeof *all_outs * outs * count);
    int code = MPI_ERR_NO_MEM;
    if (flights && all_requests && all_outs) {
        for (size_t i = 0; i < count; i++) {
            flights[i].requests = &all_requests[i * requests];
            flights[i].out = &all_outs[i * outs];
        }
        code = ct__fly(c, batch, flights);
    }
    free(flights);
    free(all_requests);
    free(all_outs);
    return code;
}

/* The first block of each parcel is for this rank. */
static void ct__unpack_own(ct__call *c)
{
    ct_steps *s = &c->steps;
    int64_t moved = 0;
    for (int source = 0; source < s->size; source++) {
        if (source == s->me)
            continue;
        uint16_t size = s->home[source].sizes[0];
        int64_t bytes = ct_told_bytes(size);
        ct_keep_first(&s->failed, ct_steps_take(s, ct_steps_rank(s, source), size, s->home[source].data));
        c->eaten[source] = bytes;
        moved += bytes;
    }
    ct_charge(s->size, moved);
}

static int ct__run(ct__call *c, const ct_alltoallv_choice *choice)
{
    ct_direct direct;
    c->steps.home = c->steps.slots + c->steps.size;
    c->steps.direct = &direct;
    CT_TRY(ct_direct_begin(c->steps.team, c->steps.x, c->steps.forwarded_most, &direct));
    CT_TRY(ct_steps_run(&c->steps));
    ct__unpack_own(c);
    CT_TRY(ct__between(c, choice->batch));
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
    if (team->plan == NULL && (team->plan = ct__plan(&team->nodes, team->rank)) == NULL)
        return MPI_ERR_NO_MEM;
    const ct_hieata_plan *plan = team->plan;
    ct__call call = {.steps = ct__steps(team, x, choice), .plan = plan};
    size_t count = (size_t)call.steps.size;
    call.own = &plan->list[plan->first[call.steps.me]];
    call.eaten = calloc(count, sizeof(int64_t));
    call.steps.statistic = statistic;
    call.steps.slots = calloc(2 * count, sizeof(ct_parcel)); /* and what comes home */
    int code = call.steps.slots && call.eaten ? ct__run(&call, choice) : MPI_ERR_NO_MEM;
    free(call.steps.slots);
    free(call.eaten);
    return code;
}
