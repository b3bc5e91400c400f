/* How long ranks wait for the last one, estimated from a sample of the calls.
 *
 * All ranks of a communicator make its blocking collective calls in one order, so that a hash of a call's number says
 * on every rank alike whether it is sampled, without a message. A sampled call is noted with the time of its arrival;
 * in MPI_Finalize the arrivals of all ranks are compared, on clocks whose offsets were measured at both ends of the job.
 * A rank's waiting is the time from its own arrival to the last one's, and never more than it spent in the call. */
#include "profile_wait.h"
#include "profile_collect.h"

#include <stdlib.h>
#include <string.h>

enum { CT__ROUNDS = 16, CT__TAG = 77, CT__LIMIT = 1 << 16, CT__DENSE = 128 };

/* This node's clock less that of node 0, at both ends. */
static struct {
    int64_t offset_ns, at_ns;
} ct__clock[2];

/* A call as its arrivals come together on the way to rank 0. */
typedef struct {
    uint64_t identity, sequence;
    uint32_t function, size;
    uint32_t arrived; /* ranks */
    uint32_t padding;
    int64_t last_ns;
} ct__meeting;

static uint64_t ct__hash(uint64_t value)
{
    value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdULL;
    value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    return value ^ (value >> 33);
}

/* All of a communicator's first calls are sampled, then half of the next as many, and so on: the sample grows with the
 * logarithm of the calls. */
static uint32_t ct__stands_for(uint64_t sequence)
{
    uint32_t interval = 1;
    for (uint64_t reach = CT__DENSE; sequence >= reach && interval < 1u << 20; reach *= 2)
        interval *= 2;
    return interval;
}

uint32_t ct_profile_sampled(const ct_comm *comm, uint64_t sequence)
{
    uint32_t interval = ct__stands_for(sequence);
    return interval > 1 && (ct__hash(comm->identity ^ sequence) & (interval - 1)) != 0 ? 0 : interval;
}

void ct_profile_stamp_call(const ct_call *call, const ct_profile_record *record, uint64_t sequence, uint64_t elapsed_ns)
{
    const ct_comm *comm = call->known;
    if (comm == NULL || comm->remote_size > 0 || comm->nodes == 0 || comm->size < 2)
        return;
    uint32_t interval = ct_profile_sampled(comm, sequence);
    if (interval == 0)
        return;
    int at = atomic_fetch_add_explicit(&ct_profile.stamp_count, 1, memory_order_relaxed);
    if (at >= CT_PROFILE_STAMPS) {
        atomic_store_explicit(&ct_profile.stamp_count, CT_PROFILE_STAMPS, memory_order_relaxed);
        atomic_fetch_add_explicit(&ct_profile.stamps_lost, 1, memory_order_relaxed);
        return;
    }
    ct_profile.stamps[at] = (ct_profile_stamp){.identity = comm->identity,
                                               .sequence = sequence,
                                               .arrived_ns = (int64_t)call->started_ns,
                                               .elapsed_ns = elapsed_ns,
                                               .function = call->function,
                                               .size = (uint32_t)comm->size,
                                               .record = (uint32_t)(record - ct_profile.records),
                                               .stands_for = interval};
}

/* The clock of `partner` against ours, by the round trip that took least. Both sides call it. */
static void ct__compare_clocks(int partner, bool reference, int64_t *offset_ns, int64_t *error_ns)
{
    int64_t best = INT64_MAX, theirs, message[2] = {*offset_ns, *error_ns};
    for (int i = 0; i < CT__ROUNDS; i++)
        if (reference) {
            PMPI_Recv(&theirs, 1, MPI_INT64_T, partner, CT__TAG, ct_job.comm, MPI_STATUS_IGNORE);
            int64_t now = (int64_t)ct_now_ns();
            PMPI_Send(&now, 1, MPI_INT64_T, partner, CT__TAG, ct_job.comm);
        } else {
            int64_t start = (int64_t)ct_now_ns();
            PMPI_Send(&start, 1, MPI_INT64_T, partner, CT__TAG, ct_job.comm);
            PMPI_Recv(&theirs, 1, MPI_INT64_T, partner, CT__TAG, ct_job.comm, MPI_STATUS_IGNORE);
            int64_t end = (int64_t)ct_now_ns();
            if (end - start < best) {
                best = end - start;
                *offset_ns = start + best / 2 - theirs;
                *error_ns = best / 2;
            }
        }
    if (reference)
        PMPI_Send(message, 2, MPI_INT64_T, partner, CT__TAG, ct_job.comm);
    else {
        PMPI_Recv(message, 2, MPI_INT64_T, partner, CT__TAG, ct_job.comm, MPI_STATUS_IGNORE);
        *offset_ns += message[0];
        *error_ns += message[1];
    }
}

/* The nodes' first ranks compare their clocks along a binomial tree, and tell the others of their node. */
void ct_profile_clocks(bool at_end)
{
    int64_t found[2] = {0, 0};
    const ct_nodes *nodes = &ct_job.nodes;
    int node = nodes->node_of[ct_job.rank], leader = ct_nodes_leader(nodes, node), reach = 1;
    ct__clock[at_end].at_ns = (int64_t)ct_now_ns();
    while (reach < nodes->count)
        reach *= 2;
    for (int distance = reach / 2; distance >= 1 && leader == ct_job.rank; distance /= 2) {
        if (node % (2 * distance) == 0 && node + distance < nodes->count)
            ct__compare_clocks(ct_nodes_leader(nodes, node + distance), true, &found[0], &found[1]);
        else if (node % (2 * distance) == distance)
            ct__compare_clocks(ct_nodes_leader(nodes, node - distance), false, &found[0], &found[1]);
    }
    for (int i = nodes->first[node] + 1; i < nodes->first[node + 1] && nodes->count > 1 && leader == ct_job.rank; i++)
        PMPI_Send(found, 2, MPI_INT64_T, nodes->member[i], CT__TAG, ct_job.comm);
    if (nodes->count > 1 && leader != ct_job.rank)
        PMPI_Recv(found, 2, MPI_INT64_T, leader, CT__TAG, ct_job.comm, MPI_STATUS_IGNORE);
    ct__clock[at_end].offset_ns = found[0];
    if ((uint64_t)found[1] > ct_profile.clock_error_ns)
        ct_profile.clock_error_ns = (uint64_t)found[1];
}

/* A time of this rank on the clock of node 0; the offset is taken to have changed evenly. */
static int64_t ct__common(int64_t time_ns)
{
    double span = (double)(ct__clock[1].at_ns - ct__clock[0].at_ns);
    double share = span > 0 ? (double)(time_ns - ct__clock[0].at_ns) / span : 0.0;
    double drift = (double)(ct__clock[1].offset_ns - ct__clock[0].offset_ns);
    return time_ns - ct__clock[0].offset_ns - (int64_t)(share * drift);
}

static int ct__order(const void *left, const void *right)
{
    const ct__meeting *a = left, *b = right;
    if (a->identity != b->identity)
        return a->identity < b->identity ? -1 : 1;
    if (a->sequence != b->sequence)
        return a->sequence < b->sequence ? -1 : 1;
    return (a->function > b->function) - (a->function < b->function);
}

/* Of too many, those whose hash is least: so that all ranks tend to keep the same. */
static int ct__thin(ct__meeting *meetings, int count)
{
    for (uint64_t below = UINT64_MAX / 2; count > CT__LIMIT; below /= 2) {
        int kept = 0;
        for (int i = 0; i < count; i++)
            if (ct__hash(meetings[i].identity ^ ct__hash(meetings[i].sequence)) < below)
                meetings[kept++] = meetings[i];
        count = kept;
    }
    return count;
}

/* Equal neighbours become one. */
static int ct__unite(ct__meeting *meetings, int count)
{
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (kept > 0 && ct__order(&meetings[kept - 1], &meetings[i]) == 0) {
            meetings[kept - 1].arrived += meetings[i].arrived;
            if (meetings[i].last_ns > meetings[kept - 1].last_ns)
                meetings[kept - 1].last_ns = meetings[i].last_ns;
        } else
            meetings[kept++] = meetings[i];
    return kept;
}

static int ct__own(ct__meeting *meetings)
{
    int count = atomic_load(&ct_profile.stamp_count);
    count = count < CT_PROFILE_STAMPS ? count : CT_PROFILE_STAMPS;
    for (int i = 0; i < count; i++) {
        const ct_profile_stamp *stamp = &ct_profile.stamps[i];
        meetings[i] = (ct__meeting){.identity = stamp->identity, .sequence = stamp->sequence,
                                    .function = stamp->function, .size = stamp->size, .arrived = 1,
                                    .last_ns = ct__common(stamp->arrived_ns)};
    }
    qsort(meetings, (size_t)count, sizeof *meetings, ct__order);
    return ct__unite(meetings, count);
}

static int ct__join(void *meetings, int count, void *context)
{
    (void)context;
    qsort(meetings, (size_t)count, sizeof(ct__meeting), ct__order);
    return ct__thin(meetings, ct__unite(meetings, count));
}

static void ct__credit(const ct__meeting *meetings, int count)
{
    int stamps = atomic_load(&ct_profile.stamp_count);
    for (int i = 0; i < stamps && i < CT_PROFILE_STAMPS; i++) {
        const ct_profile_stamp *stamp = &ct_profile.stamps[i];
        ct__meeting wanted = {.identity = stamp->identity, .sequence = stamp->sequence, .function = stamp->function};
        const ct__meeting *found = bsearch(&wanted, meetings, (size_t)count, sizeof *meetings, ct__order);
        if (found == NULL)
            continue;
        int64_t waited = found->last_ns - ct__common(stamp->arrived_ns);
        uint64_t waiting = waited < 0 ? 0 : (uint64_t)waited;
        ct_profile_record *record = &ct_profile.records[stamp->record];
        waiting = waiting < stamp->elapsed_ns ? waiting : stamp->elapsed_ns;
        ct_profile_add(record, CT_PROFILE_waiting_ns, waiting * stamp->stands_for);
        ct_profile_add(record, CT_PROFILE_sampled_ns, stamp->elapsed_ns * stamp->stands_for);
        ct_profile_add(record, CT_PROFILE_sampled, stamp->stands_for);
        ct_profile_add(record, CT_PROFILE_samples, 1);
    }
}

void ct_profile_waiting(void)
{
    ct__meeting *meetings = malloc(sizeof *meetings * 2 * CT__LIMIT);
    int have = meetings != NULL, all_have = 0, count = 0;
    PMPI_Allreduce(&have, &all_have, 1, MPI_INT, MPI_MIN, ct_job.comm);
    if (all_have) {
        count = ct_profile_collect(meetings, sizeof *meetings, ct__own(meetings), CT__TAG, ct__join, NULL);
        int complete = 0;
        for (int i = 0; i < count; i++)
            if (meetings[i].arrived == meetings[i].size)
                meetings[complete++] = meetings[i];
        count = complete;
        PMPI_Bcast(&count, 1, MPI_INT, 0, ct_job.comm);
        PMPI_Bcast(meetings, count * (int)sizeof *meetings, MPI_BYTE, 0, ct_job.comm);
        ct__credit(meetings, count);
    }
    free(meetings);
}
