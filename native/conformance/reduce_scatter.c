/* reduce_scatter and reduce_scatter_block: each rank gets its part of the reduced vector. */
#include <stdlib.h>

#include "collectives.h"

struct ct__part {
    size_t total, first, count;
};

static void ct__open(const struct ct_case *c, const struct ct__part *part, struct ct_buffer *send,
                     struct ct_buffer *recv)
{
    const struct ct_case_comm *comm = c->comm;
    const unsigned me = ct_comm_identity(comm->side, comm->rank), first = ct_comm_identity(comm->peer_side, 0);

    ct_buffer_open(send, ct_type_get(c->type), part->total, (unsigned)c->number);
    ct_buffer_open(recv, ct_type_get(c->type), c->in_place ? part->total : part->count, (unsigned)c->number);
    ct_buffer_put_values(send, c->op, 0, part->total, 0, me);
    if (c->in_place)
        ct_buffer_put_values(recv, c->op, 0, part->total, 0, me);
    ct_buffer_expect_result(recv, c->op, 0, part->count, part->first, first, (unsigned)comm->peers);
}

static void ct__close(const struct ct_case *c, const struct ct__part *part, struct ct_buffer *send,
                      struct ct_buffer *recv, struct ct_verdict *verdict)
{
    /* In place, the input beyond the result is the library's to overwrite. */
    if (c->in_place)
        ct_buffer_allow(recv, part->count, part->total - part->count);
    ct_buffer_close(send, "sendbuf", verdict);
    ct_buffer_close(recv, "recvbuf", verdict);
}

/* Both sides of an inter-communicator reduce vectors of one length, so each divides by its own size. */
static int ct__block(const struct ct_case *c, int index)
{
    if (c->comm->inter)
        return c->count * c->comm->peers;
    return ct_shape_count(c->shape, c->count, index, c->comm->size);
}

void ct_reduce_scatter_run(const struct ct_case *c, struct ct_verdict *verdict)
{
    const struct ct_case_comm *comm = c->comm;
    struct ct__part part = {0, 0, (size_t)ct__block(c, comm->rank)};
    int *counts = malloc((size_t)comm->size * sizeof *counts);
    struct ct_buffer send, recv;

    for (int i = 0; i < comm->size; i++) {
        counts[i] = ct__block(c, i);
        if (i == comm->rank)
            part.first = part.total;
        part.total += (size_t)counts[i];
    }
    ct__open(c, &part, &send, &recv);
    int rc = MPI_Reduce_scatter(c->in_place ? MPI_IN_PLACE : send.data, recv.data, counts,
                                ct_type_get(c->type)->handle, ct_op_handle(c->op), comm->handle);
    ct_verdict_check(verdict, rc, "MPI_Reduce_scatter");
    ct__close(c, &part, &send, &recv, verdict);
    free(counts);
}

void ct_reduce_scatter_block_run(const struct ct_case *c, struct ct_verdict *verdict)
{
    const struct ct_case_comm *comm = c->comm;
    const int count = ct__block(c, comm->rank);
    const struct ct__part part = {(size_t)count * (size_t)comm->size, (size_t)count * (size_t)comm->rank,
                                  (size_t)count};
    struct ct_buffer send, recv;

    ct__open(c, &part, &send, &recv);
    int rc = MPI_Reduce_scatter_block(c->in_place ? MPI_IN_PLACE : send.data, recv.data, count,
                                      ct_type_get(c->type)->handle, ct_op_handle(c->op), comm->handle);
    ct_verdict_check(verdict, rc, "MPI_Reduce_scatter_block");
    ct__close(c, &part, &send, &recv, verdict);
}
