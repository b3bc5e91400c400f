/* HieAta between nodes: each rank gets, from every other node, one message (or one for each block) from its forwarder.
 *
 * One message: the statistic, the sizes of the blocks (16 bits each) in the order of their local sources, the blocks. One for each
 * block: each has the tag of its local source, and is empty for a block that goes straight. Nodes are visited by distance with
 * at most `batch` in flight; as in linear.c, batches may differ between ranks. */
#include "hieata_between.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    MPI_Request *requests; /* what comes, then what goes */
    MPI_Status *statuses;
    int *sources;    /* ranks that the single blocks come from */
    ct_chunk **out; /* packed messages on their way */
    ct_chunk *in;
    int request_count, received, out_count, distance;
} ct__flight;

static uint16_t ct__told(const ct_hieata_call *c, int source, int index)
{
    if (source == c->steps.me)
        return ct_told(&c->steps.x->send, c->own[index], c->steps.forwarded_most);
    return c->steps.home[source].sizes[index];
}

static int64_t ct__head_bytes(int sources) { return (int64_t)(sizeof(ct_statistic) + sizeof(uint16_t) * (size_t)sources); }

/* The next block of a local source's parcel, in packed form; this rank's own is not there. */
static const char *ct__eat(ct_hieata_call *c, int source, int64_t bytes)
{
    if (bytes == 0)
        return NULL;
    const char *block = c->steps.home[source].data + c->eaten[source];
    c->eaten[source] += bytes;
    return block;
}

static int ct__send_coalesced(ct_hieata_call *c, int index, ct__flight *flight)
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

static int ct__receive_coalesced(ct_hieata_call *c, int node, ct__flight *flight)
{
    ct_team *team = c->steps.team;
    /* room for the longest blocks that may be forwarded: an error of one must not cost the sizes of the others */
    int64_t bytes = ct__head_bytes(ct_nodes_ranks(&team->nodes, node)) + ct_nodes_ranks(&team->nodes, node) * c->steps.forwarded_most;
    flight->in = ct_pool_take(&team->pool, (size_t)bytes);
    if (flight->in == NULL)
        return MPI_ERR_NO_MEM;
    return PMPI_Irecv(flight->in->data, (int)bytes, MPI_BYTE, ct_hieata_forwarder(&team->nodes, node, team->rank), CT_TAG_NODE,
                      team->comm, &flight->requests[flight->request_count++]);
}

/* Blocks of one destination in order of their local sources: so they are received. */
static int ct__send_staggered(ct_hieata_call *c, int index, ct__flight *flight)
{
    MPI_Comm comm = c->steps.team->comm;
    int to = c->own[index];
    for (int source = 0; source < c->steps.size; source++) {
        uint16_t told = ct__told(c, source, index);
        if (told == 0)
            continue;
        MPI_Request *request = &flight->requests[flight->request_count++];
        if (source == c->steps.me && told != CT_STRAIGHT)
            CT_TRY(ct_block_send(&c->steps.x->send, to, to, CT_TAG_NODE + source, comm, request));
        else
            CT_TRY(PMPI_Isend(ct__eat(c, source, ct_told_bytes(told)), (int)ct_told_bytes(told), MPI_PACKED, to,
                              CT_TAG_NODE + source, comm, request));
    }
    return MPI_SUCCESS;
}

static int ct__receive_staggered(ct_hieata_call *c, int node, ct__flight *flight)
{
    ct_team *team = c->steps.team;
    int from = ct_hieata_forwarder(&team->nodes, node, team->rank);
    for (int i = team->nodes.first[node]; i < team->nodes.first[node + 1]; i++) {
        if (ct_side_bytes(&c->steps.x->receive, team->nodes.member[i]) == 0)
            continue;
        flight->sources[flight->received++] = team->nodes.member[i];
        CT_TRY(ct_block_receive(&c->steps.x->receive, team->nodes.member[i], from, CT_TAG_NODE + i - team->nodes.first[node], team->comm,
                                &flight->requests[flight->request_count++]));
    }
    return MPI_SUCCESS;
}

static int ct__start(ct_hieata_call *c, int distance, bool staggered, ct__flight *flight)
{
    ct_team *team = c->steps.team;
    int source_node = (team->node - distance + team->nodes.count) % team->nodes.count;
    flight->request_count = flight->received = flight->out_count = 0;
    flight->distance = distance;
    CT_TRY(staggered ? ct__receive_staggered(c, source_node, flight) : ct__receive_coalesced(c, source_node, flight));
    for (int i = c->plan->own_first[distance]; i < c->plan->own_first[distance + 1]; i++)
        CT_TRY(staggered ? ct__send_staggered(c, i, flight) : ct__send_coalesced(c, i, flight));
    return MPI_SUCCESS;
}

static void ct__take_in(ct_hieata_call *c, int node, const ct_chunk *in)
{
    ct_team *team = c->steps.team;
    ct_statistic theirs;
    memcpy(&theirs, in->data, sizeof theirs);
    ct_statistic_join(c->steps.statistic, &theirs);
    const uint16_t *sizes = (const uint16_t *)(const void *)(in->data + sizeof theirs);
    const char *from = in->data + ct__head_bytes(ct_nodes_ranks(&team->nodes, node));
    for (int i = team->nodes.first[node]; i < team->nodes.first[node + 1]; i++) {
        uint16_t told = sizes[i - team->nodes.first[node]];
        ct_keep_first(&c->steps.failed, ct_steps_take(&c->steps, team->nodes.member[i], told, from));
        from += ct_told_bytes(told);
    }
    ct_charge(ct_nodes_ranks(&team->nodes, node), from - in->data);
}

/* Single blocks are where they belong. What is left is to tell those that came straight from those for which there was more room. */
static void ct__match_direct(ct_hieata_call *c, const ct__flight *flight)
{
#ifdef CT_SIMULATED /* there both ends agree */
    (void)c, (void)flight;
#else
    for (int i = 0; i < flight->received; i++) {
        int bytes = 0, source = flight->sources[i];
        if (flight->statuses[i].MPI_ERROR != MPI_SUCCESS)
            continue;
        ct_keep_first(&c->steps.failed, PMPI_Get_count(&flight->statuses[i], MPI_BYTE, &bytes));
        if (bytes == 0)
            ct_keep_first(&c->steps.failed, ct_direct_comes(c->steps.team, c->steps.x, c->steps.direct, source));
        else if (ct_side_bytes(&c->steps.x->receive, source) > c->steps.forwarded_most)
            ct_keep_first(&c->steps.failed, ct_direct_does_not_come(c->steps.direct, source));
    }
#endif
}

static void ct__finish(ct_hieata_call *c, ct__flight *flight)
{
    ct_team *team = c->steps.team;
    if (flight->request_count > 0)
        ct_keep_first(&c->steps.failed, ct_wait_all(flight->request_count, flight->requests, flight->statuses));
    ct__match_direct(c, flight);
    while (flight->out_count > 0)
        ct_pool_give(&team->pool, flight->out[--flight->out_count]);
    if (flight->in != NULL) {
        ct__take_in(c, (team->node - flight->distance + team->nodes.count) % team->nodes.count, flight->in);
        ct_pool_give(&team->pool, flight->in);
        flight->in = NULL;
    }
}

static int ct__fly(ct_hieata_call *c, int batch, bool staggered, ct__flight *flights)
{
    int distances = c->steps.team->nodes.count - 1;
    for (int k = 1; k <= distances; k++) {
        ct__flight *flight = &flights[(k - 1) % batch];
        if (k > batch)
            ct__finish(c, flight);
        CT_TRY(ct__start(c, k, staggered, flight));
    }
    for (int k = distances < batch ? 1 : distances - batch + 1; k <= distances; k++)
        ct__finish(c, &flights[(k - 1) % batch]);
    return MPI_SUCCESS;
}

int ct_hieata_between(ct_hieata_call *c, int batch, bool staggered)
{
    const ct_team *team = c->steps.team;
    if (team->nodes.count == 1)
        return MPI_SUCCESS;
    if (batch <= 0 || batch > team->nodes.count - 1)
        batch = team->nodes.count - 1;
    /* destinations of one node: its ranks, shared among ours */
    size_t outs = (size_t)((team->nodes.widest + c->steps.size - 1) / c->steps.size), count = (size_t)batch;
    size_t requests = staggered ? (size_t)team->nodes.widest + outs * (size_t)c->steps.size : 1 + outs;
    ct__flight *flights = calloc(count, sizeof *flights);
    MPI_Request *all_requests = malloc(sizeof *all_requests * requests * count);
    MPI_Status *all_statuses = malloc(sizeof *all_statuses * requests * count);
    int *all_sources = malloc(sizeof *all_sources * (size_t)team->nodes.widest * count);
    ct_chunk **all_outs = malloc(sizeof *all_outs * outs * count);
    int code = MPI_ERR_NO_MEM;
    if (flights && all_requests && all_statuses && all_sources && all_outs) {
        for (size_t i = 0; i < count; i++) {
            flights[i].requests = &all_requests[i * requests];
            flights[i].statuses = &all_statuses[i * requests];
            flights[i].sources = &all_sources[i * (size_t)team->nodes.widest];
            flights[i].out = &all_outs[i * outs];
        }
        code = ct__fly(c, batch, staggered, flights);
    }
    free(flights);
    free(all_requests);
    free(all_statuses);
    free(all_sources);
    free(all_outs);
    return code;
}
