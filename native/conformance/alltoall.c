/* alltoall and alltoallv: a block from every rank to every other. */
#include <stdlib.h>

#include "collectives.h"

void ct_alltoall_open(const struct ct_case *c, unsigned salt, struct ct_flight *flight)
{
    const struct ct_case_comm *comm = c->comm;
    const struct ct_view from = ct_case_view(c, CT_SIDE_SEND), to = ct_case_view(c, CT_SIDE_RECEIVE);
    const size_t out = (size_t)(c->count * from.per), in = (size_t)(c->count * to.per);
    const unsigned me = ct_comm_identity(comm->side, comm->rank);

    ct_buffer_open(&flight->send, from.type, out * (size_t)comm->peers, salt);
    ct_buffer_open(&flight->recv, to.type, in * (size_t)comm->peers, salt);
    for (int p = 0; p < comm->peers; p++) {
        const unsigned peer = ct_comm_identity(comm->peer_side, p);
        ct_buffer_put(&flight->send, (size_t)p * out, out, me, peer);
        if (c->in_place)
            ct_buffer_put(&flight->recv, (size_t)p * in, in, me, peer);
        ct_buffer_expect(&flight->recv, (size_t)p * in, in, peer, me);
    }
    flight->sent = (int)out, flight->got = (int)in;
    flight->from = from.type->handle, flight->to = to.type->handle;
}

void ct_alltoall_run(const struct ct_case *c, struct ct_verdict *verdict)
{
    const struct ct_junk junk = ct_case_junk(c);
    struct ct_flight flight = {0};

    ct_alltoall_open(c, (unsigned)c->number, &flight);
    int rc = c->in_place ? MPI_Alltoall(MPI_IN_PLACE, junk.count, junk.type, flight.recv.data, flight.got, flight.to,
                                        c->comm->handle)
                         : MPI_Alltoall(flight.send.data, flight.sent, flight.from, flight.recv.data, flight.got,
                                        flight.to, c->comm->handle);
    ct_verdict_check(verdict, rc, "MPI_Alltoall");
    ct_flight_close(&flight, verdict);
}

/* The block between two ranks is as large one way as the other, as the in-place form needs it. */
static size_t ct__lay_out(const struct ct_case *c, int per, int *counts, int *displacements)
{
    const struct ct_case_comm *comm = c->comm;
    const int blocks = comm->peers > comm->size ? comm->peers : comm->size;

    for (int p = 0; p < comm->peers; p++)
        counts[p] = ct_shape_count(c->shape, c->count, (comm->rank + p) % blocks, blocks) * per;
    return ct_shape_displace(c->shape, counts, comm->peers, displacements);
}

void ct_alltoallv_run(const struct ct_case *c, struct ct_verdict *verdict)
{
    const struct ct_case_comm *comm = c->comm;
    const struct ct_view from = ct_case_view(c, CT_SIDE_SEND), to = ct_case_view(c, CT_SIDE_RECEIVE);
    const unsigned me = ct_comm_identity(comm->side, comm->rank);
    const size_t peers = (size_t)comm->peers;
    int *out = malloc(peers * 4 * sizeof *out), *out_at = out + peers, *in = out_at + peers, *in_at = in + peers;
    struct ct_buffer send, recv;

    ct_buffer_open(&send, from.type, ct__lay_out(c, from.per, out, out_at), (unsigned)c->number);
    ct_buffer_open(&recv, to.type, ct__lay_out(c, to.per, in, in_at), (unsigned)c->number);
    for (int p = 0; p < comm->peers; p++) {
        const unsigned peer = ct_comm_identity(comm->peer_side, p);
        ct_buffer_put(&send, (size_t)out_at[p], (size_t)out[p], me, peer);
        if (c->in_place)
            ct_buffer_put(&recv, (size_t)in_at[p], (size_t)in[p], me, peer);
        ct_buffer_expect(&recv, (size_t)in_at[p], (size_t)in[p], peer, me);
    }
    int rc = c->in_place ? MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, recv.data, in, in_at,
                                         to.type->handle, comm->handle)
                         : MPI_Alltoallv(send.data, out, out_at, from.type->handle, recv.data, in, in_at,
                                         to.type->handle, comm->handle);
    ct_verdict_check(verdict, rc, "MPI_Alltoallv");
    ct_buffer_close(&send, "sendbuf", verdict);
    ct_buffer_close(&recv, "recvbuf", verdict);
    free(out);
}
