/* bcast: rank 0 has `bytes` in out, and all end with them there. */
#include "call.h"

static void knomial(ct_simulated_call &call)
{
    ct_tree_bcast(call, ct_tree_knomial(call.rank, call.ranks, call.k), call.out, call.bytes, 0);
}

static void binary(ct_simulated_call &call)
{
    ct_tree_bcast(call, ct_tree_binary(call.rank, call.ranks), call.out, call.bytes, call.segment);
}

static void chain(ct_simulated_call &call)
{
    ct_tree_bcast(call, ct_tree_chain(call.rank, call.ranks), call.out, call.bytes, call.segment);
}

static void scatter_doubling(ct_simulated_call &call)
{
    ct_scatter_binomial(call, call.out, call.bytes, 1);
    ct_allgather_doubling(call, call.out, call.bytes, 1);
}

static void scatter_ring(ct_simulated_call &call)
{
    ct_scatter_binomial(call, call.out, call.bytes, 1);
    ct_allgather_ring(call, call.out, call.bytes, 1, 0);
}

static void two_level(ct_simulated_call &call)
{
    if (call.leaders != MPI_COMM_NULL) {
        ct_simulated_call top = ct_call_on(call, call.leaders);
        if (call.bytes < 65536)
            knomial(top);
        else
            scatter_doubling(top);
    }
    ct_simulated_call node = ct_call_on(call, call.node);
    knomial(node);
}

const std::vector<ct_entry> ct_bcast_algorithms = {
    {"bcast", "knomial", knomial},
    {"bcast", "binary", binary},
    {"bcast", "chain", chain},
    {"bcast", "scatter_doubling", scatter_doubling},
    {"bcast", "scatter_ring", scatter_ring},
    {"bcast", "two_level", two_level},
};
