/* How many bytes a call moves, and how they are spread. */
#include "profile.h"
#include "dense.h"

static uint64_t ct__type_bytes(MPI_Datatype type)
{
    int size = 0;
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &size) != MPI_SUCCESS)
        return 0;
    if (size >= 0)
        return (uint64_t)size;
    MPI_Count large = 0; /* MPI_UNDEFINED: more than an int holds */
    return PMPI_Type_size_x(type, &large) == MPI_SUCCESS && large > 0 ? (uint64_t)large : 0;
}

/* Counts of the wide forms may be any: what is more than 64 bits hold counts as the most that they do. */
static uint64_t ct__times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Where the count is 0 the type may be anything, and is not asked. */
static uint64_t ct__bytes(MPI_Count count, MPI_Datatype type)
{
    return count > 0 ? ct__times((uint64_t)count, ct__type_bytes(type)) : 0;
}

static uint64_t ct__count_at(const void *counts, bool large, int i)
{
    MPI_Count count = ct_count_at(counts, large, i);
    return count > 0 ? (uint64_t)count : 0;
}

/* Looks at all counts; the types are one, or, where `types` is given, one for each. */
static void ct__spread(ct_profile_extent *extent, const void *counts, bool large, int n, MPI_Datatype type,
                       const MPI_Datatype *types, int self)
{
    uint64_t each = 0; /* of the one type, once it is known */
    if (counts == NULL)
        return;
    extent->blocks_seen = true;
    extent->blocks = (uint64_t)n;
    for (int i = 0; i < n; i++) {
        uint64_t count = ct__count_at(counts, large, i), bytes = 0;
        if (count > 0) /* else the type may be anything */
            bytes = ct__times(count, each = types != NULL ? ct__type_bytes(types[i]) : each > 0 ? each : ct__type_bytes(type));
        extent->empty_blocks += bytes == 0;
        if (__builtin_add_overflow(extent->block_bytes, bytes, &extent->block_bytes))
            extent->block_bytes = UINT64_MAX;
        extent->largest_bytes = bytes > extent->largest_bytes ? bytes : extent->largest_bytes;
        extent->square_bytes += (double)bytes * (double)bytes;
        if (i == self)
            extent->self_bytes += bytes;
    }
}

/* As above; whether a block that is not empty may have gaps. */
static bool ct__has_gaps(const void *counts, bool large, int n, MPI_Datatype type, const MPI_Datatype *types)
{
    for (int i = 0; counts != NULL && i < n; i++) {
        MPI_Datatype each_type = types == NULL ? type : types[i];
        if (ct__count_at(counts, large, i) == 0 || each_type == MPI_DATATYPE_NULL)
            continue;
        if (!ct_type_is_dense(each_type))
            return true;
        if (types == NULL)
            return false;
    }
    return false;
}

static uint64_t ct__mean_block(const ct_profile_extent *extent)
{
    return extent->blocks > 0 ? extent->block_bytes / extent->blocks : 0;
}

/* The group that holds the data and the one that gets it are two in an intercommunicator. */
typedef struct {
    int peers;     /* ranks at the other end */
    int self;      /* -1: none */
    bool root;     /* this rank is the root */
    bool involved; /* its arguments count */
} ct__part;

static ct__part ct__role(const ct_call *call)
{
    const ct_comm *comm = call->known;
    bool inter = comm->remote_size > 0;
    return (ct__part){.peers = inter ? comm->remote_size : comm->size,
                      .self = inter ? -1 : comm->rank,
                      .root = inter ? call->root == MPI_ROOT : call->root == comm->rank,
                      .involved = !inter || call->root != MPI_PROC_NULL};
}

/* Gathers and scatters: the root has a block of each rank on one side, and every rank its own on the other. */
static void ct__rooted(const ct_call *call, ct__part part, ct_profile_extent *extent)
{
    bool gathers = call->function == CT_GATHER || call->function == CT_GATHERV, inter = call->known->remote_size > 0;
    bool v = call->function == CT_GATHERV || call->function == CT_SCATTERV;
    const void *counts = gathers ? call->recv_counts : call->send_counts;
    MPI_Count of_root = gathers ? call->recv_count : call->send_count, own = gathers ? call->send_count : call->recv_count;
    MPI_Datatype root_type = gathers ? call->recv_type : call->send_type, own_type = gathers ? call->send_type : call->recv_type;
    extent->in_place = (gathers ? call->send : call->recv) == MPI_IN_PLACE;
    if (part.root && v)
        ct__spread(extent, counts, call->large, part.peers, root_type, NULL, part.self);
    if (part.root && v && inter)
        extent->size_bytes = ct__mean_block(extent);
    else if (part.root && v && extent->in_place)
        extent->size_bytes = ct__bytes((MPI_Count)ct__count_at(counts, call->large, part.self), root_type);
    else if (part.root && (inter || extent->in_place))
        extent->size_bytes = ct__bytes(of_root, root_type);
    else
        extent->size_bytes = ct__bytes(own, own_type);
    extent->own_bytes = inter && part.root ? 0 : extent->size_bytes;
}

static void ct__all(const ct_call *call, ct__part part, ct_profile_extent *extent)
{
    bool here = extent->in_place = call->send == MPI_IN_PLACE;
    if (call->function == CT_ALLGATHERV) {
        ct__spread(extent, call->recv_counts, call->large, part.peers, call->recv_type, NULL, part.self);
        extent->size_bytes = ct__mean_block(extent);
        extent->own_bytes = here ? extent->self_bytes : ct__bytes(call->send_count, call->send_type);
    } else if (call->function == CT_ALLTOALLV || call->function == CT_ALLTOALLW) {
        ct__spread(extent, here ? call->recv_counts : call->send_counts, call->large, part.peers,
                   here ? call->recv_type : call->send_type, here ? call->recv_types : call->send_types, part.self);
        extent->gaps = (!here && ct__has_gaps(call->send_counts, call->large, part.peers, call->send_type, call->send_types)) ||
                        ct__has_gaps(call->recv_counts, call->large, part.peers, call->recv_type, call->recv_types);
        extent->size_bytes = ct__mean_block(extent);
        extent->own_bytes = extent->block_bytes;
    } else {
        extent->size_bytes = here ? ct__bytes(call->recv_count, call->recv_type) : ct__bytes(call->send_count, call->send_type);
        extent->own_bytes = ct__times(extent->size_bytes, call->function == CT_ALLTOALL ? (uint64_t)part.peers : 1);
    }
}

static void ct__reduce_scatter(const ct_call *call, ct_profile_extent *extent)
{
    extent->in_place = call->send == MPI_IN_PLACE;
    if (call->function == CT_REDUCE_SCATTER) {
        ct__spread(extent, call->recv_counts, call->large, call->known->size, call->recv_type, NULL, -1);
        extent->size_bytes = extent->block_bytes;
    } else
        extent->size_bytes = ct__times(ct__bytes(call->recv_count, call->recv_type), (uint64_t)call->known->size);
    extent->own_bytes = extent->size_bytes;
}

static int ct__out_degree(MPI_Comm comm)
{
    int kind = MPI_UNDEFINED, in = 0, out = 0, weighted;
    PMPI_Topo_test(comm, &kind);
    if (kind == MPI_DIST_GRAPH)
        PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    else if (kind == MPI_CART && PMPI_Cartdim_get(comm, &out) == MPI_SUCCESS)
        out *= 2;
    else if (kind == MPI_GRAPH) {
        int rank = 0;
        PMPI_Comm_rank(comm, &rank);
        PMPI_Graph_neighbors_count(comm, rank, &out);
    }
    return out;
}

static void ct__neighbor(const ct_call *call, ct_profile_extent *extent)
{
    int degree = ct__out_degree(call->comm);
    if (call->function == CT_NEIGHBOR_ALLTOALLV || call->function == CT_NEIGHBOR_ALLTOALLW) {
        ct__spread(extent, call->send_counts, call->large, degree, call->send_type, call->send_types, -1);
        extent->size_bytes = ct__mean_block(extent);
        extent->own_bytes = extent->block_bytes;
    } else {
        extent->size_bytes = ct__bytes(call->send_count, call->send_type);
        extent->own_bytes = ct__times(extent->size_bytes, call->function == CT_NEIGHBOR_ALLTOALL ? (uint64_t)degree : 1);
    }
}

void ct_profile_measure(const ct_call *call, ct_profile_extent *extent)
{
    *extent = (ct_profile_extent){.in_place = false};
    if (call->known == NULL || call->function == CT_BARRIER)
        return;
    ct__part part = ct__role(call);
    if (call->function >= CT_NEIGHBOR_ALLGATHER) {
        ct__neighbor(call, extent);
    } else if (call->function >= CT_GATHER && call->function <= CT_SCATTERV) {
        if (part.involved)
            ct__rooted(call, part, extent);
    } else if (call->function >= CT_ALLGATHER && call->function <= CT_ALLTOALLW) {
        ct__all(call, part, extent);
    } else if (call->function == CT_REDUCE_SCATTER || call->function == CT_REDUCE_SCATTER_BLOCK) {
        ct__reduce_scatter(call, extent);
    } else { /* one vector */
        extent->in_place = call->function != CT_BCAST && call->send == MPI_IN_PLACE;
        extent->size_bytes = extent->own_bytes = part.involved ? ct__bytes(call->send_count, call->send_type) : 0;
    }
}

ct_op_class ct_op_builtin(MPI_Op op)
{
    if (op == MPI_SUM || op == MPI_PROD)
        return CT_OP_ARITHMETIC;
    if (op == MPI_MAX || op == MPI_MIN)
        return CT_OP_EXTREMUM;
    if (op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR)
        return CT_OP_LOGICAL;
    if (op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR)
        return CT_OP_BITWISE;
    if (op == MPI_MINLOC || op == MPI_MAXLOC)
        return CT_OP_LOCATION;
    return CT_OP_NONE;
}

ct_op_class ct_profile_op(MPI_Op op)
{
    int commutes = 0;
    ct_op_class builtin = ct_op_builtin(op);
    if (builtin != CT_OP_NONE || op == MPI_OP_NULL) /* refused; a handler of the program made a success of it */
        return builtin;
    return PMPI_Op_commutative(op, &commutes) == MPI_SUCCESS && commutes ? CT_OP_COMMUTATIVE : CT_OP_ORDERED;
}
