/* Names the algorithms of Open MPI that run: each is an exported function, called through the linkage table.
 *
 * Preload it (LD_PRELOAD). ct_algorithms() gives the names since the last time that it was asked, each once, with
 * spaces between, and forgets them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Whatever the prototype is, twelve words hold its arguments: the first six travel in registers, the others on the stack,
 * where more may be read than was passed. */
typedef int (*any_fn)(long, long, long, long, long, long, long, long, long, long, long, long);

static char names[4096];

const char *ct_algorithms(void);

const char *ct_algorithms(void)
{
    static char last[sizeof names];
    memcpy(last, names, sizeof names);
    names[0] = '\0';
    return last;
}

static void note(const char *name)
{
    size_t used = strlen(names);
    if (strstr(names, name) == NULL && used + strlen(name) + 2 < sizeof names)
        snprintf(names + used, sizeof names - used, "%s ", name);
}

#define WORDS long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l
#define ALGORITHM(name) \
    int ompi_coll_base_##name(WORDS); \
    int ompi_coll_base_##name(WORDS) \
    { \
        static any_fn next; \
        if (next == NULL) \
            *(void **) &next = dlsym(RTLD_NEXT, "ompi_coll_base_" #name); \
        note(#name); \
        return next(a, b, c, d, e, f, g, h, i, j, k, l); \
    }

ALGORITHM(allgather_intra_basic_linear)
ALGORITHM(allgather_intra_bruck)
ALGORITHM(allgather_intra_recursivedoubling)
ALGORITHM(allgather_intra_ring)
ALGORITHM(allgather_intra_neighborexchange)
ALGORITHM(allgather_intra_two_procs)
ALGORITHM(allgatherv_intra_basic_default)
ALGORITHM(allgatherv_intra_bruck)
ALGORITHM(allgatherv_intra_ring)
ALGORITHM(allgatherv_intra_neighborexchange)
ALGORITHM(allgatherv_intra_two_procs)
ALGORITHM(allreduce_intra_basic_linear)
ALGORITHM(allreduce_intra_nonoverlapping)
ALGORITHM(allreduce_intra_recursivedoubling)
ALGORITHM(allreduce_intra_redscat_allgather)
ALGORITHM(allreduce_intra_ring)
ALGORITHM(allreduce_intra_ring_segmented)
ALGORITHM(alltoall_intra_basic_linear)
ALGORITHM(alltoall_intra_pairwise)
ALGORITHM(alltoall_intra_bruck)
ALGORITHM(alltoall_intra_linear_sync)
ALGORITHM(alltoall_intra_two_procs)
ALGORITHM(barrier_intra_basic_linear)
ALGORITHM(barrier_intra_doublering)
ALGORITHM(barrier_intra_recursivedoubling)
ALGORITHM(barrier_intra_bruck)
ALGORITHM(barrier_intra_two_procs)
ALGORITHM(barrier_intra_tree)
ALGORITHM(bcast_intra_basic_linear)
ALGORITHM(bcast_intra_chain)
ALGORITHM(bcast_intra_pipeline)
ALGORITHM(bcast_intra_bintree)
ALGORITHM(bcast_intra_binomial)
ALGORITHM(bcast_intra_knomial)
ALGORITHM(bcast_intra_split_bintree)
ALGORITHM(bcast_intra_scatter_allgather)
ALGORITHM(bcast_intra_scatter_allgather_ring)
ALGORITHM(exscan_intra_linear)
ALGORITHM(exscan_intra_recursivedoubling)
ALGORITHM(gather_intra_basic_linear)
ALGORITHM(gather_intra_binomial)
ALGORITHM(gather_intra_linear_sync)
ALGORITHM(reduce_intra_basic_linear)
ALGORITHM(reduce_intra_in_order_binary)
ALGORITHM(reduce_intra_chain)
ALGORITHM(reduce_intra_pipeline)
ALGORITHM(reduce_intra_binary)
ALGORITHM(reduce_intra_binomial)
ALGORITHM(reduce_intra_redscat_gather)
ALGORITHM(reduce_scatter_intra_nonoverlapping)
ALGORITHM(reduce_scatter_intra_butterfly)
ALGORITHM(reduce_scatter_intra_basic_recursivehalving)
ALGORITHM(reduce_scatter_intra_ring)
ALGORITHM(reduce_scatter_block_basic_linear)
ALGORITHM(reduce_scatter_block_intra_recursivedoubling)
ALGORITHM(reduce_scatter_block_intra_recursivehalving)
ALGORITHM(reduce_scatter_block_intra_butterfly)
ALGORITHM(scan_intra_linear)
ALGORITHM(scan_intra_recursivedoubling)
ALGORITHM(scatter_intra_basic_linear)
ALGORITHM(scatter_intra_binomial)
ALGORITHM(scatter_intra_linear_nb)
