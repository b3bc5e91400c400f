/* barrier: nobody leaves before the last has come. */
#include "call.h"

static void dissemination(ct_simulated_call &call)
{
    int n = call.ranks;
    for (int step = 1; step < n; step *= call.k) {
        ct_at_once messages(call);
        for (int digit = 1; digit < call.k && digit * step < n; digit++) {
            messages.receive((call.rank + n - digit * step) % n, call.scratch, 0);
            messages.send((call.rank + digit * step) % n, call.scratch, 0);
        }
    }
}

static void doubling(ct_simulated_call &call)
{
    ct_allreduce_doubling(call, call.scratch, 0);
}

static void tree(ct_simulated_call &call)
{
    ct_tree tree = ct_tree_knomial(call.rank, call.ranks, call.k);
    ct_tree_reduce(call, tree, call.scratch, call.scratch, 0, 0);
    ct_tree_bcast(call, tree, call.scratch, 0, 0);
}

const std::vector<ct_entry> ct_barrier_algorithms = {
    {"barrier", "dissemination", dissemination},
    {"barrier", "doubling", doubling},
    {"barrier", "tree", tree},
};
