/* allgather, allgatherv and gather: every rank's block, one after the other. */
#include <stdlib.h>

#include "collectives.h"

void ct_allgather_open(const struct ct_case *c, unsigned salt, struct ct_flight *flight)
{
    const struct ct_case_comm *comm = c->comm;
    const struct ct_view from = ct_case_view(c, CT_SIDE_SEND), to = ct_case_view(c, CT_SIDE_RECEIVE);
    const size_t out = (size_t)(c->count * from.per), in = (size_t)(c->count * to.per);
    const unsigned me = ct_comm_identity(comm->side, comm->rank);

    ct_buffer_open(&flight->send, from.type, out, salt);
    ct_buffer_open(&flight->recv, to.type, in * (size_t)comm->peers, salt);
    ct_buffer_put(&flight->send, 0, out, me, 0);
    for (int p = 0; p < comm->peers; p++)
        ct_buffer_expect(&flight->recv, (size_t)p * in, in, ct_comm_identity(comm->peer_side, p), 0);
    if (c->in_place)
        ct_buffer_put(&flight->recv, (size_t)comm->rank * in, in, me, 0);
    flight->sent = (int)out, flight->got = (int)in;
    flight->from = from.type->handle, flight->to = to.type->handle;
}

void ct_allgather_run(const struct ct_case *c, struct ct_verdict *verdict)
{
    const struct ct_junk junk = ct_case_junk(c);
    struct ct_flight flight = {0};

    ct_allgather_open(c, (unsigned)c->number, &flight);
    int rc = c->in_place ? MPI_Allgather(MPI_IN_PLACE, junk.count, junk.type, flight.recv.data, flight.got, flight.to,
                                         c->comm->handle)
                         : MPI_Allgather(flight.send.data, flight.sent, flight.from, flight.recv.data, flight.got,
                                         flight.to, c->comm->handle);
    ct_verdict_check(verdict, rc, "MPI_Allgather");
    ct_flight_close(&flight, verdict);
}

/* counts and displacements of the call: (2, blocks), in elements of the case's type times `per`. */
static size_t ct__lay_out(const struct ct_case *c, int blocks, int per, int *counts, int *displacements)
{
    for (int i = 0; i < blocks; i++)
        counts[i] = ct_shape_count(c->shape, c->count, i, blocks) * per;
    return ct_shape_displace(c->shape, counts, blocks, displacements);
}

void ct_allgatherv_run(const struct ct_case *c, struct ct_verdict *verdict)
{
    const struct ct_case_comm *comm = c->comm;
    const struct ct_view from = ct_case_view(c, CT_SIDE_SEND), to = ct_case_view(c, CT_SIDE_RECEIVE);
    const struct ct_junk junk = ct_case_junk(c);
    const int sent = ct_shape_count(c->shape, c->count, comm->rank, comm->size) * from.per;
    const unsigned me = ct_comm_identity(comm->side, comm->rank);
    int *counts = malloc((size_t)comm->peers * 2 * sizeof *counts), *places = counts + comm->peers;
    struct ct_buffer send, recv;

    ct_buffer_open(&send, from.type, (size_t)sent, (unsigned)c->number);
    ct_buffer_open(&recv, to.type, ct__lay_out(c, comm->peers, to.per, counts, places), (unsigned)c->number);
    ct_buffer_put(&send, 0, (size_t)sent, me, 0);
    for (int p = 0; p < comm->peers; p++)
        ct_buffer_expect(&recv, (size_t)places[p], (size_t)counts[p], ct_comm_identity(comm->peer_side, p), 0);
    if (c->in_place)
        ct_buffer_put(&recv, (size_t)places[comm->rank], (size_t)counts[comm->rank], me, 0);
    int rc = c->in_place ? MPI_Allgatherv(MPI_IN_PLACE, junk.count, junk.type, recv.data, counts, places,
                                          to.type->handle, comm->handle)
                         : MPI_Allgatherv(send.data, sent, from.type->handle, recv.data, counts, places,
                                          to.type->handle, comm->handle);
    ct_verdict_check(verdict, rc, "MPI_Allgatherv");
    ct_buffer_close(&send, "sendbuf", verdict);
    ct_buffer_close(&recv, "recvbuf", verdict);
    free(counts);
}

void ct_gather_run(const struct ct_case *c, struct ct_verdict *verdict)
{
    const struct ct_case_comm *comm = c->comm;
    const struct ct_view from = ct_case_view(c, CT_SIDE_SEND), to = ct_case_view(c, CT_SIDE_RECEIVE);
    const struct ct_role role = ct_case_role(c);
    const struct ct_junk junk = ct_case_junk(c);
    const bool in_place = c->in_place && role.is_root, sends = role.is_leaf && !in_place;
    const int sent = c->count * from.per, got = c->count * to.per;
    const unsigned me = ct_comm_identity(comm->side, comm->rank);
    struct ct_buffer send, recv;

    ct_buffer_open(&send, from.type, (size_t)sent, (unsigned)c->number);
    ct_buffer_open(&recv, to.type, role.is_root ? (size_t)got * (size_t)comm->peers : 0, (unsigned)c->number);
    if (sends)
        ct_buffer_put(&send, 0, (size_t)sent, me, 0);
    for (int p = 0; role.is_root && p < comm->peers; p++)
        ct_buffer_expect(&recv, (size_t)p * (size_t)got, (size_t)got, ct_comm_identity(comm->peer_side, p), 0);
    if (in_place)
        ct_buffer_put(&recv, (size_t)comm->rank * (size_t)got, (size_t)got, me, 0);
    int rc = MPI_Gather(sends ? send.data : in_place ? MPI_IN_PLACE : junk.buffer, sends ? sent : junk.count,
                        sends ? from.type->handle : junk.type, role.is_root ? recv.data : junk.buffer,
                        role.is_root ? got : junk.count, role.is_root ? to.type->handle : junk.type, role.root,
                        comm->handle);
    ct_verdict_check(verdict, rc, "MPI_Gather");
    ct_buffer_close(&send, "sendbuf", verdict);
    ct_buffer_close(&recv, "recvbuf", verdict);
}
