/* reduce_scatter: the sum of all `in`, of which rank r gets part r in `out`; parts as even as whole elements allow. */
#include "call.h"

#include <algorithm>

static void ring(ct_simulated_call &call)
{
    char *data = call.scratch, *own = data + ct_part(call.bytes, call.ranks, call.rank, 4);
    ct_copy(call, data, call.in, call.bytes);
    ct_simulated_call inner = call;
    inner.scratch = call.scratch + call.bytes;
    ct_reduce_scatter_ring(inner, data, call.bytes, 0);
    ct_copy(call, call.out, own, data + ct_part(call.bytes, call.ranks, call.rank + 1, 4) - own);
}

static void pairwise(ct_simulated_call &call)
{
    int n = call.ranks;
    auto at = [&](int part) { return ct_part(call.bytes, n, part, 4); };
    std::size_t own = at(call.rank + 1) - at(call.rank);
    ct_copy(call, call.out, call.in + at(call.rank), own);
    ct_stepper steps(call, n - 1, CT_SPREAD);
    for (int j = 0; j < steps.count(); j++) {
        int distance = steps.at(j) + 1, to = (call.rank + distance) % n, from = (call.rank + n - distance) % n;
        ct_send_and_receive(call, to, call.in + at(to), at(to + 1) - at(to), from, call.scratch, own);
        ct_combine(call, call.out, call.scratch, own);
        steps.done(j);
    }
}

/* Halving over the power of two, whose parts are those of one or two ranks each. */
static void halving(ct_simulated_call &call)
{
    ct_fold fold = ct_fold_of(call.rank, call.ranks);
    char *data = call.scratch;
    ct_simulated_call inner = call;
    inner.scratch = call.scratch + call.bytes;
    ct_copy(call, data, call.in, call.bytes);
    ct_fold_in(inner, fold, data, call.bytes);
    /* Position p answers for the parts of the ranks from 2p (folded) or p + rest on. */
    auto rank_at = [&](int position) { return position < fold.rest ? 2 * position : position + fold.rest; };
    auto at = [&](int position) { return ct_part(call.bytes, call.ranks, rank_at(position), 4); };
    if (fold.place >= 0)
        ct_halve(inner, fold, data, at);
    auto part = [&](int rank) { return ct_part(call.bytes, call.ranks, rank, 4); };
    std::size_t own = part(call.rank + 1) - part(call.rank);
    if (fold.place < 0) {
        ct_receive(call, call.rank + 1, call.out, own);
        return;
    }
    if (call.rank < 2 * fold.rest)
        ct_send(call, call.rank - 1, data + part(call.rank - 1), part(call.rank) - part(call.rank - 1));
    ct_copy(call, call.out, data + part(call.rank), own);
}

static void reduce_scatter_tree(ct_simulated_call &call)
{
    char *data = call.scratch;
    ct_simulated_call inner = call;
    inner.scratch = call.scratch + call.bytes;
    ct_tree_reduce(inner, ct_tree_knomial(call.rank, call.ranks, 2), call.in, data, call.bytes, 0);
    ct_scatter_binomial(inner, data, call.bytes, 4);
    std::size_t begin = ct_part(call.bytes, call.ranks, call.rank, 4);
    ct_copy(call, call.out, data + begin, ct_part(call.bytes, call.ranks, call.rank + 1, 4) - begin);
}

const std::vector<ct_entry> ct_reduce_scatter_algorithms = {
    {"reduce_scatter", "ring", ring},
    {"reduce_scatter", "pairwise", pairwise},
    {"reduce_scatter", "halving", halving},
    {"reduce_scatter", "reduce_scatter_tree", reduce_scatter_tree},
};
