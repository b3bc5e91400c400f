/* What is reduced, in the order of the ranks: the whole vector, or each rank's part of it. */
#include <stdlib.h>

#include "flight.h"

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
