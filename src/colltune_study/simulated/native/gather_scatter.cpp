/* gather: block r of rank 0's `out` is rank r's `in`. scatter: the other way round. */
#include "call.h"

#include <algorithm>

/* Of a tree of radix k in which a rank answers for the ranks from its own up to those of its last child. */
static int reach_of(const ct_simulated_call &call)
{
    int reach = 1;
    while (reach < call.ranks && call.rank / reach % call.k == 0)
        reach *= call.k;
    return reach;
}

static void gather_knomial(ct_simulated_call &call)
{
    int n = call.ranks, reach = reach_of(call);
    char *data = call.rank == 0 ? call.out : call.scratch;
    ct_copy(call, data, call.in, call.bytes);
    for (int step = 1; step < reach; step *= call.k) {
        ct_at_once messages(call);
        for (int digit = 1; digit < call.k; digit++) {
            int from = call.rank + digit * step;
            if (from < n)
                messages.receive(from, call.block(data, digit * step), call.bytes_of(std::min(step, n - from)));
        }
    }
    if (call.rank > 0)
        ct_send(call, call.rank - call.rank / reach % call.k * reach, data, call.bytes_of(std::min(reach, n - call.rank)));
}

static void gather_linear(ct_simulated_call &call)
{
    if (call.rank > 0) {
        ct_send(call, 0, call.in, call.bytes);
        return;
    }
    ct_at_once messages(call);
    ct_copy(call, call.out, call.in, call.bytes);
    for (int from = 1; from < call.ranks; from++)
        messages.receive(from, call.block(call.out, from), call.bytes);
}

static void scatter_knomial(ct_simulated_call &call)
{
    int n = call.ranks, reach = reach_of(call);
    char *data = call.rank == 0 ? call.in : call.scratch;
    if (call.rank > 0)
        ct_receive(call, call.rank - call.rank / reach % call.k * reach, data, call.bytes_of(std::min(reach, n - call.rank)));
    for (int step = reach / call.k; step >= 1; step /= call.k) {
        ct_at_once messages(call);
        for (int digit = 1; digit < call.k; digit++) {
            int to = call.rank + digit * step;
            if (to < n)
                messages.send(to, call.block(data, digit * step), call.bytes_of(std::min(step, n - to)));
        }
    }
    ct_copy(call, call.out, data, call.bytes);
}

static void scatter_linear(ct_simulated_call &call)
{
    if (call.rank > 0) {
        ct_receive(call, 0, call.out, call.bytes);
        return;
    }
    ct_at_once messages(call);
    for (int to = 1; to < call.ranks; to++)
        messages.send(to, call.block(call.in, to), call.bytes);
    ct_copy(call, call.out, call.in, call.bytes);
}

const std::vector<ct_entry> ct_gather_algorithms = {
    {"gather", "knomial", gather_knomial},
    {"gather", "linear", gather_linear},
};
const std::vector<ct_entry> ct_scatter_algorithms = {
    {"scatter", "knomial", scatter_knomial},
    {"scatter", "linear", scatter_linear},
};
