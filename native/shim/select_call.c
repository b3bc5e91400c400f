/* What all ranks of a call agree on: its size, and whether it meets an algorithm's preconditions. */
#include "profile.h"
#include "select.h"

#ifdef MPICH_VERSION /* whose handles tell what they are, in their first bits */
static bool ct__is_builtin_type(MPI_Datatype type) { return (unsigned)type >> 26 == 0x13; }
#else /* which finds no more wrong than what has been looked at by then */
static bool ct__is_builtin_type(MPI_Datatype type) { return type != MPI_DATATYPE_NULL; }
#endif

/* < 0: it is no type. That is for the library to say, in the call. */
static MPI_Count ct__type_bytes(MPI_Datatype type)
{
    MPI_Count bytes = MPI_UNDEFINED;
    bool builtin = ct__is_builtin_type(type);
    ct_handlers handlers = {MPI_ERRHANDLER_NULL, MPI_ERRHANDLER_NULL};
    if (!builtin)
        handlers = ct_errors_take(true);
    int code = PMPI_Type_size_x(type, &bytes);
    if (!builtin)
        ct_errors_give_back(&handlers);
    return code == MPI_SUCCESS ? bytes : MPI_UNDEFINED;
}

/* Of what is more than MPI_Count holds: the same on all ranks, however they split it into counts and types. */
static const MPI_Count CT__MOST = (MPI_Count)(UINT64_MAX >> 1);

static MPI_Count ct__times(MPI_Count a, MPI_Count b)
{
    MPI_Count product;
    return __builtin_mul_overflow(a, b, &product) ? CT__MOST : product;
}

/* -1: no counts, or one that cannot be. */
static MPI_Count ct__sum(const ct_call *call, const void *counts)
{
    MPI_Count sum = 0;
    for (int i = 0; i < call->known->size && sum >= 0; i++) {
        if (counts == NULL || ct_count_at(counts, call->large, i) < 0)
            return -1;
        if (__builtin_add_overflow(sum, ct_count_at(counts, call->large, i), &sum))
            sum = CT__MOST;
    }
    return sum;
}

/* The count and type of one block, or of the whole vector, from arguments that mean something on this rank. Whatever
 * the types are, count times size is the same on all ranks, as MPI asks for. */
static bool ct__block(const ct_call *call, MPI_Count *count, MPI_Datatype *type)
{
    bool root = call->known->rank == call->root;
    bool sends = call->function == CT_GATHER ? !root : call->function == CT_SCATTER && root;
    *count = sends ? call->send_count : call->recv_count, *type = sends ? call->send_type : call->recv_type;
    switch (call->function) {
    case CT_ALLGATHERV: case CT_REDUCE_SCATTER:
        *count = ct__sum(call, call->recv_counts);
        return true;
    case CT_GATHERV: case CT_SCATTERV: case CT_ALLTOALLV: case CT_ALLTOALLW:
        return false;
    default:
        return call->function < CT_NEIGHBOR_ALLGATHER;
    }
}

bool ct_select_measure(const ct_call *call, ct_basis basis, MPI_Count *size, MPI_Count *count)
{
    MPI_Datatype type;
    /* Between two groups other arguments count, and no rule is for that. */
    if (call->known->remote_size > 0 || !ct__block(call, count, &type))
        return false;
    *size = 0;
    if (*count == 0) /* where the type may be none, and is not looked at; elsewhere the others' counts are zero as well */
        return true;
    /* What the library will refuse, it gets as it is: asking for the size of no type would call another error handler. */
    if (*count < 0 || type == MPI_DATATYPE_NULL)
        return false;
    if (basis == CT_BASIS_NONE)
        return true;
    MPI_Count bytes = ct__type_bytes(type);
    if (bytes < 0)
        return false;
    *size = ct__times(*count, bytes);
    MPI_Count ranks = call->known->size;
    bool blocks = call->function == CT_ALLGATHER || call->function == CT_ALLTOALL || call->function == CT_GATHER ||
                  call->function == CT_SCATTER;
    /* The size of reduce_scatter_block is that of the whole vector; the counts of allgatherv are summed up already. */
    if (call->function == CT_REDUCE_SCATTER_BLOCK || (blocks && basis == CT_BASIS_TOTAL))
        *size = ct__times(*size, ranks);
    else if (call->function == CT_ALLGATHERV && basis == CT_BASIS_MESSAGE)
        *size /= ranks;
    return true;
}

static bool ct__is_regular(const ct_call *call)
{
    if (call->recv_counts == NULL)
        return true;
    for (int i = 1; i < call->known->size; i++)
        if (ct_count_at(call->recv_counts, call->large, i) != ct_count_at(call->recv_counts, call->large, 0))
            return false;
    return true;
}

static bool ct__commutes(MPI_Op op)
{
    int commutes = 1;
    if (ct_op_builtin(op) != CT_OP_NONE)
        return true;
    if (op == MPI_OP_NULL)
        return false;
    ct_handlers handlers = ct_errors_take(true);
    int code = PMPI_Op_commutative(op, &commutes);
    ct_errors_give_back(&handlers);
    return code == MPI_SUCCESS && commutes;
}

/* `ranks`: of this call, or of one that is made below it. */
static bool ct__fits(const ct_call *call, unsigned needs, MPI_Count count, int ranks)
{
    const ct_comm *comm = call->known;
    MPI_Count power = 1;
    while (power * 2 <= ranks)
        power *= 2;
    if (needs & CT_NEED_COMMUTATIVE && !ct__commutes(call->op))
        return false;
    bool in_place = call->send == MPI_IN_PLACE;
    return !((needs & CT_NEED_POWER_OF_TWO && power != ranks) || (needs & CT_NEED_BUILTIN_OP && ct_op_builtin(call->op) == CT_OP_NONE) ||
             (needs & CT_NEED_COUNT_GE_POF2 && count < power) || (needs & CT_NEED_COUNT_GE_RANKS && count < ranks) ||
             (needs & CT_NEED_REGULAR_COUNTS && !ct__is_regular(call)) || (needs & CT_NEED_NOT_IN_PLACE && in_place) ||
             (needs & CT_NEED_IN_PLACE && !in_place) || (needs & CT_NEED_PARENT_COMM && comm->ppn < 2) ||
             (needs & CT_NEED_ONE_NODE && comm->nodes != 1) || (needs & CT_NEED_TWO_RANKS && ranks != 2) ||
             (needs & CT_NEED_EVEN_RANKS && ranks % 2 != 0));
}

/* Only communicators with as many ranks on every node are asked about (select.c). */
bool ct_select_fits(const ct_call *call, const ct_select_needs *needs, MPI_Count count)
{
    const ct_comm *comm = call->known;
    return ct__fits(call, needs->whole, count, comm->size) &&
           (comm->nodes < 2 || ct__fits(call, needs->leaders, count, comm->nodes)) &&
           (comm->ppn < 2 || ct__fits(call, needs->node, count, comm->ppn));
}
