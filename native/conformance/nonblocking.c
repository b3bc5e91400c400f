/* Non-blocking collectives: several calls under way at once on one communicator, completed in any order. */
#include "collectives.h"

enum { CT__AT_ONCE = 3 };
/* Between the patterns of the calls of one case. */
enum { CT__APART = 1 << 24 };

int ct_iallgather_start(const struct ct_case *c, struct ct_flight *f, MPI_Request *request)
{
    const struct ct_junk junk = ct_case_junk(c);
    return c->in_place ? MPI_Iallgather(MPI_IN_PLACE, junk.count, junk.type, f->recv.data, f->got, f->to,
                                        c->comm->handle, request)
                       : MPI_Iallgather(f->send.data, f->sent, f->from, f->recv.data, f->got, f->to, c->comm->handle,
                                        request);
}

int ct_iallreduce_start(const struct ct_case *c, struct ct_flight *f, MPI_Request *request)
{
    return MPI_Iallreduce(c->in_place ? MPI_IN_PLACE : f->send.data, f->recv.data, f->sent, f->from,
                          ct_op_handle(c->op), c->comm->handle, request);
}

int ct_ialltoall_start(const struct ct_case *c, struct ct_flight *f, MPI_Request *request)
{
    const struct ct_junk junk = ct_case_junk(c);
    return c->in_place ? MPI_Ialltoall(MPI_IN_PLACE, junk.count, junk.type, f->recv.data, f->got, f->to,
                                       c->comm->handle, request)
                       : MPI_Ialltoall(f->send.data, f->sent, f->from, f->recv.data, f->got, f->to, c->comm->handle,
                                       request);
}

int ct_ibcast_start(const struct ct_case *c, struct ct_flight *f, MPI_Request *request)
{
    return MPI_Ibcast(f->send.data, f->sent, f->from, ct_case_role(c).root, c->comm->handle, request);
}

void ct_flight_close(struct ct_flight *flight, struct ct_verdict *verdict)
{
    if (flight->recv.memory == NULL) {
        ct_buffer_close(&flight->send, "buffer", verdict);
        return;
    }
    ct_buffer_close(&flight->send, "sendbuf", verdict);
    ct_buffer_close(&flight->recv, "recvbuf", verdict);
}

/* Ranks may complete calls in different orders: they start them in one. The last ways differ in how a call is waited
 * for; what is left of the requests afterwards is checked by its handle. */
static int ct__complete(const struct ct_case *c, MPI_Request *requests)
{
    int rc = MPI_SUCCESS, done = 0, which;
    const int first = (int)((c->number + c->comm->rank) % CT__AT_ONCE);

    switch (c->number % 4) {
    case 0: /* each by itself, backwards from one that differs from rank to rank */
        for (int i = 0; i < CT__AT_ONCE && rc == MPI_SUCCESS; i++)
            rc = MPI_Wait(&requests[(first + CT__AT_ONCE - i) % CT__AT_ONCE], MPI_STATUS_IGNORE);
        return rc;
    case 1:
        for (int i = 0; i < CT__AT_ONCE && rc == MPI_SUCCESS; i++)
            rc = MPI_Waitany(CT__AT_ONCE, requests, &which, MPI_STATUS_IGNORE);
        return rc;
    case 2:
        while (!done && rc == MPI_SUCCESS)
            rc = MPI_Test(&requests[first], &done, MPI_STATUS_IGNORE);
        return rc == MPI_SUCCESS ? MPI_Waitall(CT__AT_ONCE, requests, MPI_STATUSES_IGNORE) : rc;
    default:
        while (!done && rc == MPI_SUCCESS)
            rc = MPI_Testall(CT__AT_ONCE, requests, &done, MPI_STATUSES_IGNORE);
        return rc;
    }
}

void ct_nonblocking_run(const struct ct_case *c, struct ct_verdict *verdict)
{
    struct ct_flight flights[CT__AT_ONCE] = {0};
    MPI_Request requests[CT__AT_ONCE];
    int rc = MPI_SUCCESS;

    for (int i = 0; i < CT__AT_ONCE; i++) {
        requests[i] = MPI_REQUEST_NULL;
        c->collective->open(c, (unsigned)c->number + (unsigned)i * CT__APART, &flights[i]);
    }
    for (int i = 0; i < CT__AT_ONCE && rc == MPI_SUCCESS; i++)
        rc = c->collective->start(c, &flights[i], &requests[i]);
    ct_verdict_check(verdict, rc, "starting a non-blocking call");
    if (rc == MPI_SUCCESS)
        ct_verdict_check(verdict, ct__complete(c, requests), "completing a non-blocking call");
    else
        MPI_Waitall(CT__AT_ONCE, requests, MPI_STATUSES_IGNORE); /* of those that were started */
    for (int i = 0; i < CT__AT_ONCE; i++) {
        if (requests[i] != MPI_REQUEST_NULL)
            ct_verdict_fail(verdict, "request %d is there after it was completed", i);
        ct_flight_close(&flights[i], verdict);
    }
}
