/* allreduce: the sum of all `in` in `out` of every rank. */
#include "call.h"

static void doubling(ct_simulated_call &call)
{
    ct_copy(call, call.out, call.in, call.bytes);
    ct_allreduce_doubling(call, call.out, call.bytes);
}

static void rabenseifner(ct_simulated_call &call)
{
    ct_copy(call, call.out, call.in, call.bytes);
    ct_allreduce_rabenseifner(call, call.out, call.bytes);
}

static void ring(ct_simulated_call &call)
{
    ct_copy(call, call.out, call.in, call.bytes);
    ct_reduce_scatter_ring(call, call.out, call.bytes, 1);
    ct_allgather_ring(call, call.out, call.bytes, 4, 1);
}

static void reduce_bcast(ct_simulated_call &call)
{
    ct_tree tree = ct_tree_knomial(call.rank, call.ranks, call.k);
    ct_tree_reduce(call, tree, call.in, call.out, call.bytes, 0);
    ct_tree_bcast(call, tree, call.out, call.bytes, 0);
}

/* Reduce on every node, `between` among their first ranks, bcast on every node. */
static void on_nodes(ct_simulated_call &call, void (*between)(const ct_simulated_call &, char *, std::size_t))
{
    ct_simulated_call node = ct_call_on(call, call.node);
    ct_tree tree = ct_tree_knomial(node.rank, node.ranks, 2);
    ct_tree_reduce(node, tree, call.in, call.out, call.bytes, 0);
    if (call.leaders != MPI_COMM_NULL)
        between(ct_call_on(call, call.leaders), call.out, call.bytes);
    ct_tree_bcast(node, tree, call.out, call.bytes, 0);
}

static void two_level_doubling(ct_simulated_call &call)
{
    on_nodes(call, ct_allreduce_doubling);
}

static void two_level_rabenseifner(ct_simulated_call &call)
{
    on_nodes(call, ct_allreduce_rabenseifner);
}

const std::vector<ct_entry> ct_allreduce_algorithms = {
    {"allreduce", "doubling", doubling},
    {"allreduce", "rabenseifner", rabenseifner},
    {"allreduce", "ring", ring},
    {"allreduce", "reduce_bcast", reduce_bcast},
    {"allreduce", "two_level_doubling", two_level_doubling},
    {"allreduce", "two_level_rabenseifner", two_level_rabenseifner},
};
