/* Blocks in user buffers: their place, size, packed form, and direct messages. */
#include "exchange.h"
#include "dense.h"

#include <limits.h>
#include <stdlib.h>

static int ct__is_plain(MPI_Datatype type, int64_t type_bytes, MPI_Aint lower, MPI_Aint extent, bool *plain)
{
    int combiner;
#if MPI_VERSION >= 4
    /* Of a type that was made with large counts, as mpi4py makes them, the older call is an error. */
    MPI_Count integers, addresses, counts, types;
    CT_TRY(PMPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &combiner));
#else
    int integers, addresses, types;
    CT_TRY(PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner));
#endif
    *plain = combiner == MPI_COMBINER_NAMED && lower == 0 && extent == type_bytes;
    return MPI_SUCCESS;
}

int ct_side_set(ct_side *side, void *base, const void *counts, const void *displacements, MPI_Datatype type, bool wide)
{
    MPI_Aint lower, extent;
    MPI_Count bytes;
    CT_TRY(PMPI_Type_get_extent(type, &lower, &extent));
    CT_TRY(PMPI_Type_size_x(type, &bytes));
    *side = (ct_side){.base = base, .type = type, .counts = counts, .displacements = displacements, .wide = wide,
                      .stride = extent, .type_bytes = bytes};
    return ct__is_plain(type, bytes, lower, extent, &side->plain);
}

static int ct__measure_each(ct_side *side, int size)
{
    side->each_bytes = calloc((size_t)size, sizeof(int64_t));
    if (side->each_bytes == NULL)
        return MPI_ERR_NO_MEM;
    for (int peer = 0; peer < size; peer++) {
        MPI_Count bytes;
        if (ct_side_count(side, peer) == 0) /* its type may be anything */
            continue;
        CT_TRY(PMPI_Type_size_x(side->types[peer], &bytes));
        side->each_bytes[peer] = bytes * ct_side_count(side, peer);
    }
    return MPI_SUCCESS;
}

int ct_side_set_types(ct_side *side, void *base, const void *counts, const void *displacements, const MPI_Datatype *types,
                      bool wide, int size)
{
    ct_side counted = {.counts = counts, .wide = wide};
    int used = -1;
    bool alike = true;
    for (int peer = 0; peer < size; peer++) {
        if (ct_side_count(&counted, peer) == 0)
            continue;
        if (used < 0)
            used = peer;
        alike = alike && types[peer] == types[used];
    }
    CT_TRY(ct_side_set(side, base, counts, displacements, used < 0 ? MPI_BYTE : types[used], wide));
    side->stride = 1;
    if (alike)
        return MPI_SUCCESS;
    side->types = types;
    side->plain = false;
    return ct__measure_each(side, size);
}

void ct_side_free(ct_side *side)
{
    free(side->each_bytes);
    side->each_bytes = NULL;
}

/* Counts over INT_MAX come only through MPI 4's large-count calls, so its large-count messages are there to carry them. */
static int ct__begin(const ct_side *side, int block, bool receive, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    int64_t count = ct_side_count(side, block);
    MPI_Datatype type = ct_side_type(side, block);
    char *at = ct_side_at(side, block);
#if MPI_VERSION >= 4
    if (count > INT_MAX)
        return receive ? PMPI_Irecv_c(at, (MPI_Count)count, type, peer, tag, comm, request)
                       : PMPI_Isend_c(at, (MPI_Count)count, type, peer, tag, comm, request);
#endif
    return receive ? PMPI_Irecv(at, (int)count, type, peer, tag, comm, request)
                   : PMPI_Isend(at, (int)count, type, peer, tag, comm, request);
}

int ct_block_send(const ct_side *side, int block, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    return ct__begin(side, block, false, peer, tag, comm, request);
}

int ct_block_receive(const ct_side *side, int block, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    return ct__begin(side, block, true, peer, tag, comm, request);
}

int ct_block_copy_own(const ct_exchange *x, int rank, MPI_Comm comm)
{
    enum { TAG = 1 };
    int64_t bytes = ct_side_bytes(&x->send, rank);
    if (bytes == 0)
        return MPI_SUCCESS;
    if (x->send.plain && x->receive.plain) {
        if (bytes > ct_side_bytes(&x->receive, rank))
            return MPI_ERR_TRUNCATE;
        ct_copy_data(ct_side_at(&x->receive, rank), ct_side_at(&x->send, rank), bytes);
        ct_charge(1, bytes);
        return MPI_SUCCESS;
    }
    MPI_Request requests[2];
    CT_TRY(ct_block_receive(&x->receive, rank, rank, TAG, comm, &requests[0]));
    CT_TRY(ct_block_send(&x->send, rank, rank, TAG, comm, &requests[1]));
    return ct_wait_all(2, requests);
}

int ct_wait_all(int count, MPI_Request *requests)
{
#ifdef CT_SIMULATED
    return PMPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
#else
    int failed = MPI_SUCCESS;
    for (int i = 0; i < count; i++)
        ct_keep_first(&failed, PMPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    return failed;
#endif
}

int ct_block_pack(const ct_side *side, int peer, char *to, MPI_Comm comm)
{
    int64_t bytes = ct_side_bytes(side, peer);
    if (bytes == 0)
        return MPI_SUCCESS;
    if (side->plain) {
        ct_copy_data(to, ct_side_at(side, peer), bytes);
        return MPI_SUCCESS;
    }
    int position = 0;
    return PMPI_Pack(ct_side_at(side, peer), (int)ct_side_count(side, peer), ct_side_type(side, peer), to, (int)bytes, &position, comm);
}

int ct_block_unpack(const ct_side *side, int peer, const char *from, int64_t bytes, int me, MPI_Comm comm)
{
    enum { TAG = 2 };
    int64_t room = ct_side_bytes(side, peer);
    if (bytes > room)
        return MPI_ERR_TRUNCATE;
    if (bytes == 0)
        return MPI_SUCCESS;
    if (side->plain) {
        ct_copy_data(ct_side_at(side, peer), from, bytes);
        return MPI_SUCCESS;
    }
    if (bytes == room) {
        int position = 0;
        return PMPI_Unpack(from, (int)bytes, &position, ct_side_at(side, peer), (int)ct_side_count(side, peer),
                           ct_side_type(side, peer), comm);
    }
    MPI_Request requests[2]; /* it may end inside an element: a message knows how */
    CT_TRY(ct_block_receive(side, peer, me, TAG, comm, &requests[0]));
    CT_TRY(PMPI_Isend(from, (int)bytes, MPI_PACKED, me, TAG, comm, &requests[1]));
    return ct_wait_all(2, requests);
}

/* Bytes to all ranks, or from them, and how many of the blocks are empty. */
static ct_statistic ct__side_statistic(const ct_side *side, int size)
{
    int64_t count = 0, empty = 0;
    if (side->types != NULL) {
        for (int peer = 0; peer < size; peer++) {
            count += side->each_bytes[peer];
            empty += side->each_bytes[peer] == 0;
        }
        return (ct_statistic){.bytes = count, .idle = empty};
    }
    if (side->wide) {
        for (int peer = 0; peer < size; peer++) {
            count += ((const MPI_Count *)side->counts)[peer];
            empty += ((const MPI_Count *)side->counts)[peer] == 0;
        }
    } else {
        const int *counts = side->counts;
        for (int peer = 0; peer < size; peer++) {
            count += counts[peer];
            empty += counts[peer] == 0;
        }
    }
    return (ct_statistic){.bytes = count * side->type_bytes, .idle = side->type_bytes ? empty : size};
}

/* Whether a block that is not empty may have gaps. */
static bool ct__has_gaps(const ct_side *side, int size)
{
    for (int peer = 0; !side->plain && peer < size; peer++) {
        if (ct_side_count(side, peer) == 0)
            continue;
        if (!ct_type_is_dense(ct_side_type(side, peer)))
            return true;
        if (side->types == NULL)
            return false;
    }
    return false;
}

ct_statistic ct_exchange_statistic(const ct_exchange *x, int rank, int size)
{
    ct_statistic sent = ct__side_statistic(&x->send, size), received = ct__side_statistic(&x->receive, size);
    int64_t own = ct_side_bytes(&x->send, rank);
    int64_t busier = sent.bytes > received.bytes ? sent.bytes : received.bytes;
    bool gaps = (sent.bytes > 0 && ct__has_gaps(&x->send, size)) || (received.bytes > 0 && ct__has_gaps(&x->receive, size));
    return (ct_statistic){.bytes = (busier - own) | (gaps ? CT_GAPS : 0), .idle = sent.idle + received.idle - (own == 0 ? 2 : 0)};
}
