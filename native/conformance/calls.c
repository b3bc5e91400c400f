/* The calls themselves, one at a time or several at once, completed in any order. */
#define _POSIX_C_SOURCE 200809L
#include "collectives.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CT__AT_ONCE = 3 };
/* Between the patterns of the calls of one case. */
enum { CT__APART = 1 << 24 };

static struct ct_junk ct__argument(const struct ct_case *c, const struct ct_buffer *buffer, const struct ct_layout *layout,
                                   bool here, bool counts)
{
    struct ct_junk argument = ct_case_junk(c);
    if (here)
        argument.buffer = MPI_IN_PLACE;
    else if (counts)
        argument = (struct ct_junk){buffer->data, layout->counts != NULL ? layout->counts[0] : 0, layout->type};
    return argument;
}

void ct_flight_argue(const struct ct_case *c, struct ct_flight *flight, bool sent_here, bool sends, bool got_here,
                     bool receives)
{
    flight->sent = ct__argument(c, &flight->send, &flight->out, sent_here, sends);
    flight->got = ct__argument(c, &flight->recv, &flight->in, got_here, receives);
}

static void ct__close(struct ct_flight *flight, struct ct_verdict *verdict)
{
    const bool both = flight->recv.memory != NULL;
    if (flight->free_count > 0)
        ct_buffer_allow(&flight->recv, flight->free_from, flight->free_count);
    ct_buffer_close(&flight->send, both ? "sendbuf" : "buffer", verdict);
    if (both)
        ct_buffer_close(&flight->recv, "recvbuf", verdict);
    free(flight->out.counts);
    free(flight->in.counts);
}

/* `request`: NULL for the blocking form. Returns MPI's error code. */
static int ct__call(const struct ct_case *c, const struct ct_flight *f, MPI_Request *request)
{
    const struct ct_junk s = f->sent, r = f->got;
    const bool buffer = c->collective->call == CT_BCAST, in_place = c->in_place && c->collective->call == CT_ALLTOALLV;
    const ct_arguments arguments = {
        .send = s.buffer, .send_count = s.count, .send_type = in_place ? MPI_DATATYPE_NULL : s.type,
        .recv = buffer ? s.buffer : r.buffer, .recv_count = buffer ? s.count : r.count, .recv_type = buffer ? s.type : r.type,
        .send_counts = in_place ? NULL : f->out.counts, .send_displs = in_place ? NULL : f->out.places,
        .recv_counts = f->in.counts, .recv_displs = f->in.places, .op = ct_op_handle(c->op), .root = ct_case_role(c).root};
    return ct_function_call(c->collective->call, &arguments, c->comm->handle, request);
}

void ct_blocking_run(const struct ct_case *c, struct ct_verdict *verdict)
{
    struct ct_flight flight = {0};
    char name[64];
    snprintf(name, sizeof name, "MPI_%s", c->collective->name);
    name[4] = (char)toupper((unsigned char)name[4]);
    c->collective->open(c, (unsigned)c->number, &flight);
    ct_verdict_check(verdict, ct__call(c, &flight, NULL), name);
    ct__close(&flight, verdict);
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
        rc = ct__call(c, &flights[i], &requests[i]);
    ct_verdict_check(verdict, rc, "starting a non-blocking call");
    if (rc == MPI_SUCCESS)
        ct_verdict_check(verdict, ct__complete(c, requests), "completing a non-blocking call");
    else
        MPI_Waitall(CT__AT_ONCE, requests, MPI_STATUSES_IGNORE); /* of those that were started */
    for (int i = 0; i < CT__AT_ONCE; i++) {
        if (requests[i] != MPI_REQUEST_NULL)
            ct_verdict_fail(verdict, "request %d is there after it was completed", i);
        ct__close(&flights[i], verdict);
    }
}

#define CT__TAG_LEFT 31005
#define CT__LATE_NS 2000000

/* Time for a rank that should have waited to be caught. */
static void ct__be_late(const struct ct_case_comm *comm, struct ct_verdict *verdict)
{
    const struct timespec nap = {0, CT__LATE_NS / 4};
    MPI_Status status;
    int came = 0;
    for (int naps = 0; naps < 4 && !came; naps++) {
        nanosleep(&nap, NULL);
        MPI_Iprobe(MPI_ANY_SOURCE, CT__TAG_LEFT, comm->handle, &came, &status);
    }
    if (came)
        ct_verdict_fail(verdict, "rank %d of its group left before rank %d had entered", status.MPI_SOURCE,
                        comm->rank);
}

/* One rank (the case's root) enters late, and every peer sends to it as soon as it has left. The standard lets a
 * rank of an inter-communicator leave once all of the other group have entered, so only that group is watched;
 * point-to-point messages on it go there anyway. */
void ct_barrier_run(const struct ct_case *c, struct ct_verdict *verdict)
{
    const struct ct_case_comm *comm = c->comm;
    const struct ct_role role = ct_case_role(c);
    char token = 0;
    if (role.is_root)
        ct__be_late(comm, verdict);
    ct_verdict_check(verdict, MPI_Barrier(comm->handle), "MPI_Barrier");
    if (role.is_leaf && !role.is_root)
        MPI_Send(&token, 1, MPI_BYTE, role.root_rank, CT__TAG_LEFT, comm->handle);
    for (int p = 0; role.is_root && p < comm->peers; p++)
        if (comm->inter || p != comm->rank)
            MPI_Recv(&token, 1, MPI_BYTE, p, CT__TAG_LEFT, comm->handle, MPI_STATUS_IGNORE);
}
