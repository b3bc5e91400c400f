/* HieAta between nodes: each rank gets, from every other node, one message (or one for each block) from its forwarder.
 *
 * The receiver knows its sources and sizes, so these messages carry no sizes. Nodes are visited by distance with at most
 * `batch` in flight; as in linear.c, batches may differ between ranks. */
#include "hieata.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    MPI_Request *requests;
    ct_chunk **out; /* packed messages on their way */
    ct_chunk *in;
    int request_count, out_count, distance;
} ct__flight;

static int64_t ct__sent_bytes(const ct_hieata_call *c, int source, int index)
{
    if (source == c->steps.me)
        return ct_forwarded(&c->steps.x->send, c->own[index], c->steps.forwarded_most);
    return c->steps.home[source].sizes[index];
}

static int64_t ct__received_bytes(const ct_hieata_call *c, int source_rank)
{
    return ct_forwarded(&c->steps.x->receive, source_rank, c->steps.forwarded_most);
}

/* The next block of a local source's parcel, in packed form. */
static const char *ct__eat(ct_hieata_call *c, int source, int64_t bytes)
{
    const char *block = c->steps.home[source].data + c->eaten[source];
    c->eaten[source] += bytes;
    return block;
}

static int ct__send_coalesced(ct_hieata_call *c, int index, ct__flight *flight)
{
    ct_team *team = c->steps.team;
    int64_t bytes = sizeof(ct_statistic);
    for (int source = 0; source < c->steps.size; source++)
        bytes += ct__sent_bytes(c, source, index);
    ct_chunk *out = ct_pool_take(&team->pool, (size_t)bytes);
    if (out == NULL)
        return MPI_ERR_NO_MEM;
    flight->out[flight->out_count++] = out;
    memcpy(out->data, c->steps.statistic, sizeof(ct_statistic));
    char *to = out->data + sizeof(ct_statistic);
    for (int source = 0; source < c->steps.size; source++) {
        int64_t block = ct__sent_bytes(c, source, index);
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
    int64_t bytes = sizeof(ct_statistic);
    for (int i = team->first[node]; i < team->first[node + 1]; i++)
        bytes += ct__received_bytes(c, team->member[i]);
    flight->in = ct_pool_take(&team->pool, (size_t)bytes);
    if (flight->in == NULL)
        return MPI_ERR_NO_MEM;
    return PMPI_Irecv(flight->in->data, (int)bytes, MPI_BYTE, ct_hieata_forwarder(team, node, team->rank), CT_TAG_NODE,
                      team->comm, &flight->requests[flight->request_count++]);
}

/* Blocks of one destination in order of their local sources: so they are received. */
static int ct__send_staggered(ct_hieata_call *c, int index, ct__flight *flight)
{
    MPI_Comm comm = c->steps.team->comm;
    int to = c->own[index];
    for (int source = 0; source < c->steps.size; source++) {
        int64_t block = ct__sent_bytes(c, source, index);
        if (block == 0)
            continue;
        MPI_Request *request = &flight->requests[flight->request_count++];
        if (source == c->steps.me)
            CT_TRY(ct_block_send(&c->steps.x->send, to, to, CT_TAG_NODE, comm, request));
        else
            CT_TRY(PMPI_Isend(ct__eat(c, source, block), (int)block, MPI_PACKED, to, CT_TAG_NODE, comm, request));
    }
    return MPI_SUCCESS;
}

static int ct__receive_staggered(ct_hieata_call *c, int node, ct__flight *flight)
{
    ct_team *team = c->steps.team;
    int from = ct_hieata_forwarder(team, node, team->rank);
    for (int i = team->first[node]; i < team->first[node + 1]; i++)
        if (ct__received_bytes(c, team->member[i]) > 0)
            CT_TRY(ct_block_receive(&c->steps.x->receive, team->member[i], from, CT_TAG_NODE, team->comm,
                                    &flight->requests[flight->request_count++]));
    return MPI_SUCCESS;
}

static int ct__start(ct_hieata_call *c, int distance, bool staggered, ct__flight *flight)
{
    ct_team *team = c->steps.team;
    int source_node = (team->node - distance + team->node_count) % team->node_count;
    flight->request_count = flight->out_count = 0;
    flight->distance = distance;
    CT_TRY(staggered ? ct__receive_staggered(c, source_node, flight) : ct__receive_coalesced(c, source_node, flight));
    for (int i = c->plan->own_first[distance]; i < c->plan->own_first[distance + 1]; i++)
        CT_TRY(staggered ? ct__send_staggered(c, i, flight) : ct__send_coalesced(c, i, flight));
    return MPI_SUCCESS;
}

static int ct__take_in(ct_hieata_call *c, int node, const ct_chunk *in)
{
    ct_team *team = c->steps.team;
    ct_statistic theirs;
    memcpy(&theirs, in->data, sizeof theirs);
    ct_statistic_join(c->steps.statistic, &theirs);
    const char *from = in->data + sizeof theirs;
    for (int i = team->first[node]; i < team->first[node + 1]; i++) {
        int64_t bytes = ct__received_bytes(c, team->member[i]);
        CT_TRY(bytes > 0 ? ct_block_unpack(&c->steps.x->receive, team->member[i], from, team->comm) : MPI_SUCCESS);
        from += bytes;
    }
    ct_charge(ct_team_node_size(team, node), from - in->data);
    return MPI_SUCCESS;
}

static int ct__finish(ct_hieata_call *c, ct__flight *flight)
{
    ct_team *team = c->steps.team;
    if (flight->request_count > 0)
        CT_TRY(PMPI_Waitall(flight->request_count, flight->requests, MPI_STATUSES_IGNORE));
    while (flight->out_count > 0)
        ct_pool_give(&team->pool, flight->out[--flight->out_count]);
    if (flight->in != NULL) {
        CT_TRY(ct__take_in(c, (team->node - flight->distance + team->node_count) % team->node_count, flight->in));
        ct_pool_give(&team->pool, flight->in);
        flight->in = NULL;
    }
    return MPI_SUCCESS;
}

static int ct__fly(ct_hieata_call *c, int batch, bool staggered, ct__flight *flights)
{
    int distances = c->steps.team->node_count - 1;
    for (int k = 1; k <= distances; k++) {
        ct__flight *flight = &flights[(k - 1) % batch];
        if (k > batch)
            CT_TRY(ct__finish(c, flight));
        CT_TRY(ct__start(c, k, staggered, flight));
    }
    for (int k = distances < batch ? 1 : distances - batch + 1; k <= distances; k++)
        CT_TRY(ct__finish(c, &flights[(k - 1) % batch]));
    return MPI_SUCCESS;
}

int ct_hieata_between(ct_hieata_call *c, int batch, bool staggered)
{
    const ct_team *team = c->steps.team;
    if (team->node_count == 1)
        return MPI_SUCCESS;
    if (batch <= 0 || batch > team->node_count - 1)
        batch = team->node_count - 1;
    /* destinations of one node: its ranks, shared among ours */
    size_t outs = (size_t)((team->widest + c->steps.size - 1) / c->steps.size), count = (size_t)batch;
    size_t requests = staggered ? (size_t)team->widest + outs * (size_t)c->steps.size : 1 + outs;
    ct__flight *flights = calloc(count, sizeof *flights);
    MPI_Request *all_requests = malloc(sizeof *all_requests * requests * count);
    ct_chunk **all_outs = malloc(sizeof *all_outs * outs * count);
    int code = MPI_ERR_NO_MEM;
    if (flights && all_requests && all_outs) {
        for (size_t i = 0; i < count; i++) {
            flights[i].requests = &all_requests[i * requests];
            flights[i].out = &all_outs[i * outs];
        }
        code = ct__fly(c, batch, staggered, flights);
    }
    free(flights);
    free(all_requests);
    free(all_outs);
    return code;
}
