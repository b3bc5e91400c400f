/* allgather: the `bytes` of every rank's `in`, in the order of the ranks, in every `out`. */
#include "call.h"

#include <algorithm>

static std::size_t all_of(const ct_simulated_call &call)
{
    return call.bytes * static_cast<std::size_t>(call.ranks);
}

static char *block(const ct_simulated_call &call, char *data, int i)
{
    return data + call.bytes * static_cast<std::size_t>(i);
}

static void ring(ct_simulated_call &call)
{
    ct_copy(call, block(call, call.out, call.rank), call.in, call.bytes);
    ct_allgather_ring(call, call.out, all_of(call), call.bytes, 0);
}

static void doubling(ct_simulated_call &call)
{
    ct_copy(call, block(call, call.out, call.rank), call.in, call.bytes);
    ct_allgather_doubling(call, call.out, all_of(call), call.bytes);
}

/* Radix k: in each round a rank sends what it has to k - 1 others, and gets as much. */
static void bruck(ct_simulated_call &call)
{
    int n = call.ranks;
    char *data = call.scratch;
    ct_copy(call, data, call.in, call.bytes);
    for (int have = 1; have < n; have *= call.k) {
        std::vector<MPI_Request> requests;
        for (int digit = 1; digit < call.k && digit * have < n; digit++) {
            int blocks = std::min(have, n - digit * have);
            int to = (call.rank - digit * have % n + n) % n, from = (call.rank + digit * have) % n;
            std::size_t bytes = call.bytes * static_cast<std::size_t>(blocks);
            requests.push_back(ct_start_receive(call, from, block(call, data, digit * have), bytes));
            requests.push_back(ct_start_send(call, to, data, bytes));
        }
        ct_wait_all(requests);
    }
    std::size_t head = call.bytes * static_cast<std::size_t>(n - call.rank);
    ct_copy(call, block(call, call.out, call.rank), data, head);
    ct_copy(call, call.out, data + head, all_of(call) - head);
}

/* Neighbours by turns, two blocks at a time; an even number of ranks. */
static void neighbor_exchange(ct_simulated_call &call)
{
    int n = call.ranks, rank = call.rank;
    bool even = rank % 2 == 0;
    int peers[2] = {even ? (rank + 1) % n : (rank + n - 1) % n, even ? (rank + n - 1) % n : (rank + 1) % n};
    ct_copy(call, block(call, call.out, rank), call.in, call.bytes);
    ct_send_and_receive(call, peers[0], block(call, call.out, rank), call.bytes, peers[0], block(call, call.out, peers[0]),
                call.bytes);
    /* The pair whose blocks came last, by its even member: at first one's own. */
    int last = rank / 2 * 2, direction = even ? -1 : 1;
    ct_stepper steps(call, n / 2 - 1, CT_CYCLIC);
    for (int j = 0; j < steps.count(); j++) {
        /* In turn j the pair comes from the side of peers[(j + 1) % 2], each turn one pair further. */
        int side = j % 2 == 0 ? direction : -direction;
        int next = ((rank / 2 * 2 + side * 2 * (j / 2 + 1)) % n + n) % n;
        int peer = peers[(j + 1) % 2];
        ct_send_and_receive(call, peer, block(call, call.out, last), 2 * call.bytes, peer, block(call, call.out, next),
                    2 * call.bytes);
        last = next;
        steps.done(j);
    }
}

static void gather_bcast(ct_simulated_call &call)
{
    int n = call.ranks;
    char *data = call.out;
    ct_copy(call, block(call, data, call.rank), call.in, call.bytes);
    for (int step = 1; step < n; step *= 2) {
        if ((call.rank & step) != 0) {
            int blocks = std::min(step, n - call.rank);
            ct_send(call, call.rank - step, block(call, data, call.rank),
                    call.bytes * static_cast<std::size_t>(blocks));
            break;
        }
        int from = call.rank + step;
        if (from < n)
            ct_receive(call, from, block(call, data, from),
                       call.bytes * static_cast<std::size_t>(std::min(step, n - from)));
    }
    ct_tree_bcast(call, ct_tree_knomial(call.rank, n, 2), data, all_of(call), 0);
}

const std::vector<ct_entry> ct_allgather_algorithms = {
    {"allgather", "ring", ring},
    {"allgather", "doubling", doubling},
    {"allgather", "bruck", bruck},
    {"allgather", "neighbor_exchange", neighbor_exchange},
    {"allgather", "gather_bcast", gather_bcast},
};
