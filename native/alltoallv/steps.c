/* The rounds of a radix-r Bruck: messages of one digit in windows, receives posted first. */
#include "steps_message.h"

#include <stdlib.h>

/* A receive is posted with room for the largest message there can be, up to this; beyond, its size is asked for first. */
static const int64_t CT__POSTED_MOST = 8 << 20;

typedef struct {
    ct_step step;
    int to, from;        /* ranks */
    ct_chunk *in, *out;
    int64_t in_head;
    bool probed;
} ct__move;

typedef struct {
    ct__move *moves;
    MPI_Request *requests; /* two for each move: what comes, what goes */
    int count;
} ct__set;

static int ct__take(ct_pool *pool, int64_t bytes, ct_chunk **chunk)
{
    *chunk = ct_pool_take(pool, (size_t)bytes);
    return *chunk == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

static int ct__post_receive(ct_steps *s, ct__move *move, MPI_Request *request)
{
    move->in_head = ct_step_head_bytes(s, move->step, true);
    int64_t most = move->in_head + ct_step_most_bytes(s, move->step);
    move->probed = most > CT__POSTED_MOST;
    if (move->probed)
        return MPI_SUCCESS;
    CT_TRY(ct__take(&s->team->pool, most, &move->in));
    return PMPI_Irecv(move->in->data, (int)most, MPI_BYTE, move->from, CT_TAG_STEP, s->team->comm, request);
}

static int ct__receive_probed(ct_steps *s, ct__move *move)
{
    MPI_Status status;
    int bytes;
    CT_TRY(PMPI_Probe(move->from, CT_TAG_STEP, s->team->comm, &status));
    CT_TRY(PMPI_Get_count(&status, MPI_BYTE, &bytes));
    CT_TRY(ct__take(&s->team->pool, bytes, &move->in));
    return PMPI_Recv(move->in->data, bytes, MPI_BYTE, move->from, CT_TAG_STEP, s->team->comm, MPI_STATUS_IGNORE);
}

static int ct__post_send(ct_steps *s, ct__move *move, MPI_Request *request)
{
    int64_t head = ct_step_head_bytes(s, move->step, false), bytes = head + ct_step_out_bytes(s, move->step);
    CT_TRY(ct__take(&s->team->pool, bytes, &move->out));
    CT_TRY(ct_step_pack(s, move->step, move->out->data, move->out->data + head));
    return PMPI_Isend(move->out->data, (int)bytes, MPI_BYTE, move->to, CT_TAG_STEP, s->team->comm, request);
}

static int ct__exchange(ct_steps *s, ct__set *set)
{
    for (int i = 0; i < set->count; i++)
        CT_TRY(ct__post_receive(s, &set->moves[i], &set->requests[2 * i]));
    for (int i = 0; i < set->count; i++)
        CT_TRY(ct__post_send(s, &set->moves[i], &set->requests[2 * i + 1]));
    for (int i = 0; i < set->count; i++)
        if (set->moves[i].probed)
            CT_TRY(ct__receive_probed(s, &set->moves[i]));
    CT_TRY(ct_wait_all(2 * set->count, set->requests));
    for (int i = 0; i < set->count; i++) {
        ct__move *move = &set->moves[i];
        ct_pool_give(&s->team->pool, move->out);
        move->out = NULL;
        CT_TRY(ct_step_unpack(s, move->step, move->in, move->in->data, move->in->data + move->in_head));
    }
    return MPI_SUCCESS;
}

static int ct__window(ct_steps *s, ct__set *set, int64_t distance, int first, int last)
{
    set->count = last - first + 1;
    for (int i = 0; i < set->count; i++) {
        int64_t hop = distance * (first + i);
        set->moves[i] = (ct__move){.step = {.distance = distance, .digit = first + i},
                                   .to = ct_steps_rank(s, (int)((s->me + hop) % s->size)),
                                   .from = ct_steps_rank(s, (int)((s->me + s->size - hop) % s->size))};
        set->requests[2 * i] = set->requests[2 * i + 1] = MPI_REQUEST_NULL;
    }
    return ct__exchange(s, set);
}

static int ct__rounds(ct_steps *s, ct__set *set)
{
    for (int64_t distance = 1; distance < s->size; distance *= s->radix) {
        int digits = ct_steps_digits(s, distance);
        for (int first = 1; first <= digits; first += s->window) {
            int64_t last = first + (int64_t)s->window - 1;
            CT_TRY(ct__window(s, set, distance, first, last < digits ? (int)last : digits));
        }
    }
    return MPI_SUCCESS;
}

int ct_steps_run(ct_steps *s)
{
    if (s->size == 1)
        return MPI_SUCCESS;
    int most = s->radix - 1 < s->size - 1 ? s->radix - 1 : s->size - 1;
    if (s->window <= 0 || s->window > most)
        s->window = most;
    ct__set set = {.moves = malloc(sizeof(ct__move) * (size_t)s->window),
                   .requests = malloc(sizeof(MPI_Request) * 2 * (size_t)s->window)};
    int code = set.moves && set.requests ? ct__rounds(s, &set) : MPI_ERR_NO_MEM;
    free(set.moves);
    free(set.requests);
    return code;
}
