/* Point-to-point messages: matching, CPU time, and waiting. */
#include "cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CT__EAGER = 8192 }; /* larger ones wait for their receive */

/* Of a message, the heads of native/alltoallv alone are carried: at most a statistic and 16 bits for each rank's block. */
static size_t ct__carried(int bytes)
{
    int most = 64 + 2 * ct_cluster_ranks();
    return (size_t)(bytes < most ? bytes : most);
}

/* What waits for its other half, by receiver and sender, oldest first. */
static ct_message **ct__waiting;
static ct_message *ct__idle;

static ct_message *ct__new(void)
{
    enum { MANY = 4096 };
    if (ct__idle == NULL) {
        ct_message *more = calloc(MANY, sizeof *more);
        if (more == NULL) {
            fprintf(stderr, "sweep: no memory for more messages\n");
            exit(1);
        }
        for (int i = 0; i < MANY; i++)
            more[i].next = ct__idle, ct__idle = &more[i];
    }
    ct_message *made = ct__idle;
    ct__idle = made->next;
    *made = (ct_message){.waiter = -1};
    return made;
}

static void ct__drop(ct_message *m)
{
    m->next = ct__idle;
    ct__idle = m;
}

static ct_message **ct__queue(int to, int from)
{
    size_t ranks = (size_t)ct_cluster_ranks();
    if (ct__waiting == NULL)
        ct__waiting = calloc(ranks * ranks, sizeof *ct__waiting);
    return &ct__waiting[(size_t)to * ranks + (size_t)from];
}

/* Takes the oldest of the other kind out of the queue; else `mine` is queued, and NULL. */
static ct_message *ct__find(ct_message *mine)
{
    ct_message **at = ct__queue(mine->to, mine->from);
    for (; *at != NULL; at = &(*at)->next) {
        ct_message *found = *at;
        if (found->receive != mine->receive && found->tag == mine->tag) {
            *at = found->next;
            return found;
        }
    }
    *at = mine;
    return NULL;
}

static void ct__done(ct_message *m, double time_s)
{
    m->done = true;
    m->time_s = time_s;
    if (m->waiter >= 0 && --ct_cluster_rank(m->waiter)->missing == 0)
        ct_cluster_ready(m->waiter);
}

/* The two halves are there. The send of an eager message is let go of here: its sender has done with it. */
static void ct__deliver(ct_message *send, ct_message *receive)
{
    double time_s = send->time_s > receive->time_s ? send->time_s : receive->time_s;
    if (send->bytes > receive->capacity) {
        fprintf(stderr, "sweep: %d bytes from rank %d to %d where there is room for %d\n", send->bytes, send->from, send->to,
                receive->capacity);
        exit(4);
    }
    memcpy(receive->data, send->data, ct__carried(send->bytes));
    receive->bytes = send->bytes;
    ct__done(receive, time_s);
    if (send->eager) {
        free(send->data);
        ct__drop(send);
    } else {
        ct__done(send, send->time_s);
    }
}

bool ct_messages_step(void)
{
    ct_message *send;
    if (!ct_network_step(&send))
        return false;
    if (send != NULL) {
        send->there = true;
        if (send->match != NULL)
            ct__deliver(send, send->match);
    }
    return true;
}

static void ct__meet(ct_message *send, ct_message *receive)
{
    send->match = receive;
    if (send->eager && send->there) {
        ct__deliver(send, receive);
    } else if (!send->eager) {
        if (receive->time_s > send->time_s)
            send->time_s = receive->time_s;
        ct_network_send(send);
    }
}

int PMPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    ct_rank *mine = ct_cluster_rank(ct_cluster_me());
    ct_message *m = ct__new();
    (void)comm;
    count *= (int)ct_type_bytes(type);
    mine->clock_s += ct_network_message_s();
    m->from = ct_cluster_me(), m->to = to, m->tag = tag, m->bytes = count, m->eager = count <= CT__EAGER;
    m->time_s = mine->clock_s;
    *request = m->eager ? MPI_REQUEST_NULL : m;
    if (m->eager) {
        m->data = malloc(ct__carried(count) + 1);
        memcpy(m->data, buffer, ct__carried(count));
        ct_network_send(m);
    } else {
        m->data = (char *)(uintptr_t)buffer;
    }
    ct_message *receive = ct__find(m);
    if (receive != NULL)
        ct__meet(m, receive);
    return MPI_SUCCESS;
}

int PMPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    ct_message *m = ct__new();
    (void)comm;
    count *= (int)ct_type_bytes(type);
    m->from = from, m->to = ct_cluster_me(), m->tag = tag, m->capacity = count, m->receive = true, m->data = buffer;
    m->time_s = ct_cluster_rank(m->to)->clock_s;
    *request = m;
    ct_message *send = ct__find(m);
    if (send != NULL)
        ct__meet(send, m);
    return MPI_SUCCESS;
}

static int ct__compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Receives are taken in, one after the other, as they arrive. */
int PMPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    ct_rank *mine = ct_cluster_rank(ct_cluster_me());
    double few[64], *times_s = count > 64 ? malloc(sizeof(double) * (size_t)count) : few;
    int received = 0;
    (void)statuses;
    mine->missing = 0;
    for (int i = 0; i < count; i++)
        if (requests[i] != MPI_REQUEST_NULL && !requests[i]->done)
            requests[i]->waiter = ct_cluster_me(), mine->missing++;
    ct_cluster_sleep_until_complete();
    for (int i = 0; i < count; i++) {
        if (requests[i] == MPI_REQUEST_NULL)
            continue;
        if (requests[i]->receive)
            times_s[received++] = requests[i]->time_s;
        else if (requests[i]->time_s > mine->clock_s)
            mine->clock_s = requests[i]->time_s;
        ct__drop(requests[i]);
        requests[i] = MPI_REQUEST_NULL;
    }
    qsort(times_s, (size_t)received, sizeof(double), ct__compare);
    for (int i = 0; i < received; i++)
        mine->clock_s = (times_s[i] > mine->clock_s ? times_s[i] : mine->clock_s) + ct_network_message_s();
    if (times_s != few)
        free(times_s);
    return MPI_SUCCESS;
}

int PMPI_Wait(MPI_Request *request, MPI_Status *status)
{
    (void)status;
    return PMPI_Waitall(1, request, MPI_STATUSES_IGNORE);
}

int PMPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Request request;
    int code = PMPI_Irecv(buffer, count, type, from, tag, comm, &request);
    return code == MPI_SUCCESS ? PMPI_Wait(&request, status) : code;
}

/* A message's size is known once it was sent; the receive that follows waits for the rest. Other ranks go on first. */
int PMPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    static int probing;
    (void)comm;
    for (;;) {
        for (ct_message *m = *ct__queue(ct_cluster_me(), from); m != NULL; m = m->next)
            if (!m->receive && m->tag == tag) {
                status->bytes = m->bytes;
                return MPI_SUCCESS;
            }
        if (ct_cluster_others_ready() <= probing && !ct_messages_step() && ct_cluster_others_ready() == 0)
            return MPI_ERR_ARG; /* nobody will send it */
        probing++;
        ct_cluster_ready(ct_cluster_me());
        ct_cluster_rank(ct_cluster_me())->missing = 1;
        ct_cluster_sleep_until_complete();
        probing--;
    }
}
