/* allreduce, reduce, scan and exscan: the whole vector, in the order of the ranks. */
#include "collectives.h"

void ct_allreduce_open(const struct ct_case *c, unsigned salt, struct ct_flight *flight)
{
    const struct ct_case_comm *comm = c->comm;
    const struct ct_type *type = ct_type_get(c->type);
    const size_t count = (size_t)c->count;
    const unsigned me = ct_comm_identity(comm->side, comm->rank), first = ct_comm_identity(comm->peer_side, 0);

    ct_buffer_open(&flight->send, type, count, salt);
    ct_buffer_open(&flight->recv, type, count, salt);
    ct_buffer_put_values(&flight->send, c->op, 0, count, 0, me);
    if (c->in_place)
        ct_buffer_put_values(&flight->recv, c->op, 0, count, 0, me);
    ct_buffer_expect_result(&flight->recv, c->op, 0, count, 0, first, (unsigned)comm->peers);
    flight->sent = flight->got = c->count;
    flight->from = flight->to = type->handle;
}

void ct_allreduce_run(const struct ct_case *c, struct ct_verdict *verdict)
{
    struct ct_flight flight = {0};

    ct_allreduce_open(c, (unsigned)c->number, &flight);
    int rc = MPI_Allreduce(c->in_place ? MPI_IN_PLACE : flight.send.data, flight.recv.data, flight.sent, flight.from,
                           ct_op_handle(c->op), c->comm->handle);
    ct_verdict_check(verdict, rc, "MPI_Allreduce");
    ct_flight_close(&flight, verdict);
}

void ct_reduce_run(const struct ct_case *c, struct ct_verdict *verdict)
{
    const struct ct_case_comm *comm = c->comm;
    const struct ct_type *type = ct_type_get(c->type);
    const struct ct_role role = ct_case_role(c);
    const struct ct_junk junk = ct_case_junk(c);
    const bool in_place = c->in_place && role.is_root, sends = role.is_leaf && !in_place;
    const size_t count = (size_t)c->count;
    const unsigned me = ct_comm_identity(comm->side, comm->rank), first = ct_comm_identity(comm->peer_side, 0);
    struct ct_buffer send, recv;

    ct_buffer_open(&send, type, count, (unsigned)c->number);
    ct_buffer_open(&recv, type, role.is_root ? count : 0, (unsigned)c->number);
    if (sends)
        ct_buffer_put_values(&send, c->op, 0, count, 0, me);
    if (in_place)
        ct_buffer_put_values(&recv, c->op, 0, count, 0, me);
    if (role.is_root)
        ct_buffer_expect_result(&recv, c->op, 0, count, 0, first, (unsigned)comm->peers);
    int rc = MPI_Reduce(sends ? send.data : in_place ? MPI_IN_PLACE : junk.buffer,
                        role.is_root ? recv.data : junk.buffer, c->count, type->handle, ct_op_handle(c->op),
                        role.root, comm->handle);
    ct_verdict_check(verdict, rc, "MPI_Reduce");
    ct_buffer_close(&send, "sendbuf", verdict);
    ct_buffer_close(&recv, "recvbuf", verdict);
}

typedef int ct__scan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);

/* `others`: how many ranks before this one, or up to it, are in the result. */
static void ct__scan_run(const struct ct_case *c, ct__scan *scan, const char *name, int others,
                         struct ct_verdict *verdict)
{
    const struct ct_case_comm *comm = c->comm;
    const struct ct_type *type = ct_type_get(c->type);
    const size_t count = (size_t)c->count;
    const unsigned me = ct_comm_identity(comm->side, comm->rank), first = ct_comm_identity(comm->side, 0);
    struct ct_buffer send, recv;

    ct_buffer_open(&send, type, count, (unsigned)c->number);
    ct_buffer_open(&recv, type, count, (unsigned)c->number);
    ct_buffer_put_values(&send, c->op, 0, count, 0, me);
    if (c->in_place)
        ct_buffer_put_values(&recv, c->op, 0, count, 0, me);
    if (others > 0)
        ct_buffer_expect_result(&recv, c->op, 0, count, 0, first, (unsigned)others);
    int rc = scan(c->in_place ? MPI_IN_PLACE : send.data, recv.data, c->count, type->handle, ct_op_handle(c->op),
                  comm->handle);
    ct_verdict_check(verdict, rc, name);
    if (others == 0 && !c->in_place) /* what the first rank gets by MPI_Exscan is undefined */
        ct_buffer_allow(&recv, 0, count);
    ct_buffer_close(&send, "sendbuf", verdict);
    ct_buffer_close(&recv, "recvbuf", verdict);
}

void ct_scan_run(const struct ct_case *c, struct ct_verdict *verdict)
{
    ct__scan_run(c, MPI_Scan, "MPI_Scan", c->comm->rank + 1, verdict);
}

void ct_exscan_run(const struct ct_case *c, struct ct_verdict *verdict)
{
    ct__scan_run(c, MPI_Exscan, "MPI_Exscan", c->comm->rank, verdict);
}
