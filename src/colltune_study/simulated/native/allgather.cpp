/* allgather: the `bytes` of every rank's `in`, in the order of the ranks, in every `out`. */
#include "call.h"

#include <algorithm>

static void ring(ct_simulated_call &call)
{
    ct_copy(call, call.block(call.out, call.rank), call.in, call.bytes);
    ct_allgather_ring(call, call.out, call.bytes_of(call.ranks), call.bytes, 0);
}

static void doubling(ct_simulated_call &call)
{
    ct_copy(call, call.block(call.out, call.rank), call.in, call.bytes);
    ct_allgather_doubling(call, call.out, call.bytes_of(call.ranks), call.bytes);
}

/* Radix k: in each round a rank sends what it has to k - 1 others, and gets as much. */
static void bruck(ct_simulated_call &call)
{
    int n = call.ranks;
    char *data = call.scratch;
    ct_copy(call, data, call.in, call.bytes);
    for (int have = 1; have < n; have *= call.k) {
        ct_at_once messages(call);
        for (int digit = 1; digit < call.k && digit * have < n; digit++) {
            std::size_t bytes = call.bytes_of(std::min(have, n - digit * have));
            messages.receive((call.rank + digit * have) % n, call.block(data, digit * have), bytes);
            messages.send((call.rank - digit * have % n + n) % n, data, bytes);
        }
    }
    std::size_t head = call.bytes_of(n - call.rank);
    ct_copy(call, call.block(call.out, call.rank), data, head);
    ct_copy(call, call.out, data + head, call.bytes_of(call.ranks) - head);
}

/* Neighbours by turns, two blocks at a time; an even number of ranks. */
static void neighbor_exchange(ct_simulated_call &call)
{
    int n = call.ranks, rank = call.rank;
    bool even = rank % 2 == 0;
    int peers[2] = {even ? (rank + 1) % n : (rank + n - 1) % n, even ? (rank + n - 1) % n : (rank + 1) % n};
    ct_copy(call, call.block(call.out, rank), call.in, call.bytes);
    ct_send_and_receive(call, peers[0], call.block(call.out, rank), call.bytes, peers[0], call.block(call.out, peers[0]),
                call.bytes);
    /* The pair whose blocks came last, by its even member: at first one's own. */
    int last = rank / 2 * 2, direction = even ? -1 : 1;
    ct_stepper steps(call, n / 2 - 1, CT_CYCLIC);
    for (int j = 0; j < steps.count(); j++) {
        /* In turn j the pair comes from the side of peers[(j + 1) % 2], each turn one pair further. */
        int side = j % 2 == 0 ? direction : -direction;
        int next = ((rank / 2 * 2 + side * 2 * (j / 2 + 1)) % n + n) % n;
        int peer = peers[(j + 1) % 2];
        ct_send_and_receive(call, peer, call.block(call.out, last), 2 * call.bytes, peer, call.block(call.out, next),
                    2 * call.bytes);
        last = next;
        steps.done(j);
    }
}

static void gather_bcast(ct_simulated_call &call)
{
    int n = call.ranks;
    char *data = call.out;
    ct_copy(call, call.block(data, call.rank), call.in, call.bytes);
    for (int step = 1; step < n; step *= 2) {
        if ((call.rank & step) != 0) {
            ct_send(call, call.rank - step, call.block(data, call.rank), call.bytes_of(std::min(step, n - call.rank)));
            break;
        }
        int from = call.rank + step;
        if (from < n)
            ct_receive(call, from, call.block(data, from), call.bytes_of(std::min(step, n - from)));
    }
    ct_tree_bcast(call, ct_tree_knomial(call.rank, n, 2), data, call.bytes_of(call.ranks), 0);
}

const std::vector<ct_entry> ct_allgather_algorithms = {
    {"allgather", "ring", ring},
    {"allgather", "doubling", doubling},
    {"allgather", "bruck", bruck},
    {"allgather", "neighbor_exchange", neighbor_exchange},
    {"allgather", "gather_bcast", gather_bcast},
};
