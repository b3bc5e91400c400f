/* reduce: the sum of all `in` in `out` of rank 0. */
#include "call.h"

#include <algorithm>

static void knomial(ct_simulated_call &call)
{
    ct_tree_reduce(call, ct_tree_knomial(call.rank, call.ranks, call.k), call.in, call.out, call.bytes, 0);
}

static void binary(ct_simulated_call &call)
{
    ct_tree_reduce(call, ct_tree_binary(call.rank, call.ranks), call.in, call.out, call.bytes, call.segment);
}

static void chain(ct_simulated_call &call)
{
    ct_tree_reduce(call, ct_tree_chain(call.rank, call.ranks), call.in, call.out, call.bytes, call.segment);
}

/* Halving leaves each rank of the power of two with one part of the sum; a binomial tree gathers the parts. */
static void halving_gather(ct_simulated_call &call)
{
    char *data = call.out;
    ct_copy(call, data, call.in, call.bytes);
    ct_fold fold = ct_fold_of(call.rank, call.ranks);
    auto at = [&](int part) { return ct_part(call.bytes, fold.power, part, 4); };
    ct_fold_in(call, fold, data, call.bytes);
    if (fold.place >= 0) {
        ct_halve(call, fold, data, at);
        for (int step = 1; step < fold.power; step *= 2) {
            int mine = fold.place / step * step;
            if ((fold.place & step) != 0) {
                ct_send(call, fold.rank_of(fold.place - step), data + at(mine), at(mine + step) - at(mine));
                break;
            }
            ct_receive(call, fold.rank_of(fold.place + step), data + at(mine + step),
                       at(mine + 2 * step) - at(mine + step));
        }
    }
    /* With folded ranks the first of the power is rank 1. */
    if (fold.rest > 0 && call.rank == 1)
        ct_send(call, 0, data, call.bytes);
    if (fold.rest > 0 && call.rank == 0)
        ct_receive(call, 1, data, call.bytes);
}

static void two_level(ct_simulated_call &call)
{
    ct_simulated_call node = ct_call_on(call, call.node);
    char *partial = call.scratch;
    node.scratch = call.scratch + call.bytes;
    node.k = 2;
    ct_tree_reduce(node, ct_tree_knomial(node.rank, node.ranks, 2), call.in, partial, call.bytes, 0);
    if (call.leaders == MPI_COMM_NULL)
        return;
    ct_simulated_call top = ct_call_on(call, call.leaders);
    top.in = partial;
    top.scratch = node.scratch;
    if (call.bytes < 16384)
        knomial(top);
    else
        halving_gather(top);
}

const std::vector<ct_entry> ct_reduce_algorithms = {
    {"reduce", "knomial", knomial},
    {"reduce", "binary", binary},
    {"reduce", "chain", chain},
    {"reduce", "halving_gather", halving_gather},
    {"reduce", "two_level", two_level},
};
