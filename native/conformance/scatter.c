/* bcast and scatter: from one rank to all. */
#include "collectives.h"

void ct_bcast_open(const struct ct_case *c, unsigned salt, struct ct_flight *flight)
{
    const struct ct_role role = ct_case_role(c);
    const struct ct_view view = ct_case_view(c, role.is_root ? CT_SIDE_SEND : CT_SIDE_RECEIVE);
    const unsigned root = ct_comm_identity(role.root_side, role.root_rank);

    flight->sent = c->count * view.per;
    flight->from = view.type->handle;
    ct_buffer_open(&flight->send, view.type, (size_t)flight->sent, salt);
    if (role.is_root)
        ct_buffer_put(&flight->send, 0, (size_t)flight->sent, root, 0);
    else if (role.is_leaf)
        ct_buffer_expect(&flight->send, 0, (size_t)flight->sent, root, 0);
}

void ct_bcast_run(const struct ct_case *c, struct ct_verdict *verdict)
{
    struct ct_flight flight = {0};

    ct_bcast_open(c, (unsigned)c->number, &flight);
    int rc = MPI_Bcast(flight.send.data, flight.sent, flight.from, ct_case_role(c).root, c->comm->handle);
    ct_verdict_check(verdict, rc, "MPI_Bcast");
    ct_flight_close(&flight, verdict);
}

void ct_scatter_run(const struct ct_case *c, struct ct_verdict *verdict)
{
    const struct ct_case_comm *comm = c->comm;
    const struct ct_view from = ct_case_view(c, CT_SIDE_SEND), to = ct_case_view(c, CT_SIDE_RECEIVE);
    const struct ct_role role = ct_case_role(c);
    const struct ct_junk junk = ct_case_junk(c);
    const bool in_place = c->in_place && role.is_root, receives = role.is_leaf && !in_place;
    const int sent = c->count * from.per, got = c->count * to.per;
    const unsigned root = ct_comm_identity(role.root_side, role.root_rank);
    struct ct_buffer send, recv;

    ct_buffer_open(&send, from.type, role.is_root ? (size_t)sent * (size_t)comm->peers : 0, (unsigned)c->number);
    ct_buffer_open(&recv, to.type, (size_t)got, (unsigned)c->number);
    for (int p = 0; role.is_root && p < comm->peers; p++)
        ct_buffer_put(&send, (size_t)p * (size_t)sent, (size_t)sent, root, ct_comm_identity(comm->peer_side, p));
    if (receives)
        ct_buffer_expect(&recv, 0, (size_t)got, root, ct_comm_identity(comm->side, comm->rank));
    int rc = MPI_Scatter(role.is_root ? send.data : junk.buffer, role.is_root ? sent : junk.count,
                         role.is_root ? from.type->handle : junk.type,
                         receives ? recv.data : in_place ? MPI_IN_PLACE : junk.buffer,
                         receives ? got : junk.count, receives ? to.type->handle : junk.type, role.root,
                         comm->handle);
    ct_verdict_check(verdict, rc, "MPI_Scatter");
    ct_buffer_close(&send, "sendbuf", verdict);
    ct_buffer_close(&recv, "recvbuf", verdict);
}
