/* The buffers of a call: what is only moved (blocks of each rank to one, to all, or to each of the others, and one rank's data to
 * all), and what is reduced, in the order of the ranks: the whole vector, or each rank's part of it. */
#include "collectives.h"

#include <stdlib.h>

/* Elements of block `p` that this rank sends or receives. Between two ranks that both send it is as large one way as the other, as
 * the in-place form of alltoallv needs it. */
static int ct__block(const struct ct_case *c, bool sent, int p)
{
    const struct ct_case_comm *comm = c->comm;
    const int blocks = comm->peers > comm->size ? comm->peers : comm->size;
    if (c->collective->is_personal)
        return ct_shape_count(c->shape, c->count, (comm->rank + p) % blocks, blocks);
    return sent ? ct_shape_count(c->shape, c->count, comm->rank, comm->size)
                : ct_shape_count(c->shape, c->count, p, comm->peers);
}

/* Makes one side's buffer for `blocks` blocks of `view`; nothing is in it where the side does not count on this rank. */
static void ct__side(const struct ct_case *c, bool sent, int blocks, struct ct_view view, unsigned salt,
                     struct ct_buffer *buffer, struct ct_layout *layout)
{
    layout->blocks = blocks;
    layout->counts = malloc(2 * (size_t)(blocks > 0 ? blocks : 1) * sizeof *layout->counts);
    layout->places = layout->counts + blocks;
    layout->type = view.type->handle;
    for (int p = 0; p < blocks; p++)
        layout->counts[p] = ct__block(c, sent, p) * view.per;
    ct_buffer_open(buffer, view.type, ct_shape_displace(c->shape, layout->counts, blocks, layout->places), salt);
}

void ct_moves_open(const struct ct_case *c, unsigned salt, struct ct_flight *flight)
{
    const struct ct_case_comm *comm = c->comm;
    const struct ct_role role = ct_case_role(c);
    const bool rooted = c->collective->has_root, personal = c->collective->is_personal;
    const bool of_root = !rooted || role.is_root, here = c->in_place && of_root;
    const bool of_leaf = !rooted || (role.is_leaf && !here);
    const bool sends = personal ? of_root : of_leaf, receives = personal ? of_leaf : of_root;
    const unsigned me = ct_comm_identity(comm->side, comm->rank), root = ct_comm_identity(role.root_side, role.root_rank);
    ct__side(c, true, !sends ? 0 : personal ? comm->peers : 1, ct_case_view(c, CT_SIDE_SEND), salt, &flight->send,
             &flight->out);
    ct__side(c, false, !receives ? 0 : rooted && personal ? 1 : comm->peers, ct_case_view(c, CT_SIDE_RECEIVE), salt,
             &flight->recv, &flight->in);
    for (int p = 0; p < flight->out.blocks; p++)
        ct_buffer_put(&flight->send, (size_t)flight->out.places[p], (size_t)flight->out.counts[p], me,
                      personal ? ct_comm_identity(comm->peer_side, p) : 0);
    for (int p = 0; p < flight->in.blocks; p++) {
        const unsigned peer = rooted && personal ? root : ct_comm_identity(comm->peer_side, p);
        const size_t at = (size_t)flight->in.places[p], count = (size_t)flight->in.counts[p];
        if (here && (personal || p == comm->rank))
            ct_buffer_put(&flight->recv, at, count, me, personal ? peer : 0);
        ct_buffer_expect(&flight->recv, at, count, peer, personal ? me : 0);
    }
    ct_flight_argue(c, flight, here && !(rooted && personal), sends, here && rooted && personal, receives);
}

void ct_bcast_open(const struct ct_case *c, unsigned salt, struct ct_flight *flight)
{
    const struct ct_role role = ct_case_role(c);
    const struct ct_view view = ct_case_view(c, role.is_root ? CT_SIDE_SEND : CT_SIDE_RECEIVE);
    const int count = c->count * view.per;
    const unsigned root = ct_comm_identity(role.root_side, role.root_rank);
    ct_buffer_open(&flight->send, view.type, (size_t)count, salt);
    flight->sent = (struct ct_junk){flight->send.data, count, view.type->handle};
    if (role.is_root)
        ct_buffer_put(&flight->send, 0, (size_t)count, root, 0);
    else if (role.is_leaf)
        ct_buffer_expect(&flight->send, 0, (size_t)count, root, 0);
}

/* Both sides of an inter-communicator reduce vectors of one length, so each divides by its own size. */
static int ct__part(const struct ct_case *c, int index)
{
    if (!c->collective->count_is_block)
        return c->count;
    return c->comm->inter ? c->count * c->comm->peers : ct_shape_count(c->shape, c->count, index, c->comm->size);
}

void ct_reductions_open(const struct ct_case *c, unsigned salt, struct ct_flight *flight)
{
    const struct ct_case_comm *comm = c->comm;
    const struct ct_type *type = ct_type_get(c->type);
    const struct ct_role role = ct_case_role(c);
    const bool rooted = c->collective->has_root, parts = c->collective->count_is_block;
    const bool receives = !rooted || role.is_root, here = c->in_place && receives, sends = !rooted || (role.is_leaf && !here);
    const unsigned me = ct_comm_identity(comm->side, comm->rank), first = ct_comm_identity(comm->peer_side, 0);
    const int of = c->collective->scans == CT_SCAN_NOT ? comm->peers : comm->rank + (c->collective->scans == CT_SCAN_OWN);
    size_t total = 0, begin = 0, count = (size_t)ct__part(c, comm->rank);
    flight->in = (struct ct_layout){.counts = malloc((size_t)comm->size * sizeof(int)), .type = type->handle};
    for (int i = 0; i < (parts ? comm->size : 1); i++) {
        flight->in.counts[i] = ct__part(c, i);
        begin += i < comm->rank && parts ? (size_t)flight->in.counts[i] : 0;
        total += (size_t)flight->in.counts[i];
    }
    ct_buffer_open(&flight->send, type, total, salt);
    ct_buffer_open(&flight->recv, type, !receives ? 0 : here ? total : count, salt);
    if (sends)
        ct_buffer_put_values(&flight->send, c->op, 0, total, 0, me);
    if (here)
        ct_buffer_put_values(&flight->recv, c->op, 0, total, 0, me);
    if (receives && of > 0)
        ct_buffer_expect_result(&flight->recv, c->op, 0, count, begin, first, (unsigned)of);
    /* In place, the input beyond the result is the library's to overwrite; and what the first rank gets by MPI_Exscan is undefined. */
    if (receives)
        flight->free_from = of == 0 && !here ? 0 : count, flight->free_count = of == 0 && !here ? count : here ? total - count : 0;
    ct_flight_argue(c, flight, here, sends, false, receives);
    flight->sent.count = flight->got.count = (int)count;
    flight->sent.type = flight->got.type = type->handle;
}
