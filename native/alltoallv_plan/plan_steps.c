/* Spread-out and the radix-r Bruck as plans. Sizes are told while the plan is made, step by step in one order on all ranks. */
#include "plan.h"

#include "hieata.h"

#include <stdlib.h>

enum { CT__TAG_SIZES = 17 };

int ct_plan_linear(ct_plan_build *b)
{
    int size = b->team->size, me = b->team->rank, batch = b->choice.batch;
    if (batch <= 0 || batch > size - 1)
        batch = size - 1;
    for (int first = 1; first < size; first += batch) {
        int last = first + batch < size ? first + batch : size, receives = b->plan->receive_count;
        for (int offset = first; offset < last; offset++) {
            int to = (me + offset) % size;
            if (ct_side_bytes(&b->x->send, to) > 0)
                CT_TRY(ct_plan_send_block(b->plan, &b->x->send, to, to, false));
        }
        ct_plan_stage_end(b->plan, receives);
        for (int offset = first; offset < last; offset++) {
            int from = (me - offset + size) % size;
            if (ct_side_bytes(&b->x->receive, from) > 0)
                CT_TRY(ct_plan_receive_block(b->plan, &b->x->receive, from, from, false));
        }
    }
    return MPI_SUCCESS;
}

static int64_t ct__size_count(const ct_steps *s, ct_step step, bool incoming)
{
    return (ct_step_head_bytes(s, step, incoming) - (int64_t)sizeof(ct_statistic)) / (int64_t)sizeof(uint16_t);
}

bool ct_plan_build_begin(ct_plan_build *b)
{
    bool hieata = b->choice.algorithm == CT_ALLTOALLV_HIEATA || b->choice.algorithm == CT_ALLTOALLV_HIEATA_STAGGERED;
    if (hieata && ct_hieata_plan_make(b->team) != MPI_SUCCESS)
        return false;
    if (hieata)
        b->steps = ct_hieata_steps(b->team, b->x, &b->choice);
    else
        b->steps = (ct_steps){.team = b->team, .x = b->x, .me = b->team->rank, .size = b->team->size, .radix = b->choice.radix,
                              .window = b->choice.batch, .forwarded_most = ct_team_forwarded_most(b->team, &b->choice)};
    const ct_steps *s = &b->steps;
    int64_t told = 1, most = 1;
    for (int64_t distance = 1; distance < s->size && s->radix > 1; distance *= s->radix)
        for (int digit = 1; digit <= ct_steps_digits(s, distance); digit++) {
            ct_step step = {.distance = distance, .digit = digit};
            int64_t telling = ct__size_count(s, step, false);
            told += ct__size_count(s, step, true);
            most = telling > most ? telling : most;
        }
    b->steps.slots = calloc((size_t)s->size, sizeof(ct_parcel));
    b->steps.home = calloc((size_t)s->size, sizeof(ct_parcel));
    b->eaten = calloc((size_t)s->size, sizeof(int64_t));
    b->sizes = malloc(sizeof(uint16_t) * (size_t)told);
    b->out_sizes = malloc(sizeof(uint16_t) * (size_t)most);
    return b->steps.slots && b->steps.home && b->eaten && b->sizes && b->out_sizes;
}

void ct_plan_build_end(ct_plan_build *b)
{
    free(b->steps.slots);
    free(b->steps.home);
    free(b->eaten);
    free(b->sizes);
    free(b->out_sizes);
}

/* A parcel that never moved, from the user's buffer. Returns its bytes. */
static int64_t ct__pack_fresh(ct_plan_build *b, int goal, uint16_t *sizes, char *to)
{
    const ct_steps *s = &b->steps;
    const int *list = s->list_first ? &s->list[s->list_first[goal]] : &goal;
    int64_t packed = 0;
    for (int i = 0; i < ct_steps_length(s, goal); i++) {
        int64_t bytes = ct_forwarded(&s->x->send, list[i], s->forwarded_most);
        if (sizes != NULL)
            sizes[i] = (uint16_t)bytes;
        if (bytes > 0)
            ct_plan_pack(b->plan, &s->x->send, list[i], to + packed);
        packed += bytes;
    }
    return packed;
}

/* What goes out in a step: its message, and in b->out_sizes the sizes to tell. */
static int ct__out(ct_plan_build *b, ct_step step, int to)
{
    ct_steps *s = &b->steps;
    uint16_t *sizes = b->out_sizes;
    int64_t bytes = ct_step_out_bytes(s, step), at = 0;
    char *out = ct_plan_buffer(b->plan, bytes);
    for (int64_t slot = ct_step_first(step); slot < s->size; slot = ct_step_next(s, step, slot)) {
        int goal = ct_step_goal(s, step, slot, false), length = ct_steps_length(s, goal);
        bool told = ct_step_has_sizes(s, step, slot);
        if (ct_step_fresh(step, slot)) {
            at += ct__pack_fresh(b, goal, told ? sizes : NULL, out + at);
        } else {
            ct_parcel *held = &s->slots[slot];
            ct_plan_copy(b->plan, out + at, held->data, held->bytes);
            at += held->bytes;
            if (told)
                memcpy(sizes, held->sizes, sizeof *sizes * (size_t)length);
        }
        sizes += told ? length : 0;
    }
    return ct_plan_send(b->plan, out, bytes, to);
}

/* What comes in: blocks that are at home go to the user's buffer, parcels that go on are noted. */
static int ct__in(ct_plan_build *b, ct_step step, const uint16_t *sizes, int from)
{
    ct_steps *s = &b->steps;
    int64_t bytes = ct_step_in_bytes(s, step, (const char *)sizes - sizeof(ct_statistic));
    char *in = ct_plan_buffer(b->plan, bytes), *at = in;
    for (int64_t slot = ct_step_first(step); slot < s->size; slot = ct_step_next(s, step, slot)) {
        int source = ct_step_source(s, slot);
        if (!ct_step_has_sizes(s, step, slot)) {
            int rank = ct_steps_rank(s, source);
            int64_t block = ct_forwarded(&s->x->receive, rank, s->forwarded_most);
            if (block > 0)
                ct_plan_unpack(b->plan, &s->x->receive, rank, at);
            at += block;
            continue;
        }
        int length = ct_steps_length(s, ct_step_goal(s, step, slot, true));
        ct_parcel *to = ct_step_lands(s, step, slot) ? &s->home[source] : &s->slots[slot];
        *to = (ct_parcel){.sizes = sizes, .data = at, .bytes = ct_sizes_sum(sizes, length)};
        at += to->bytes;
        sizes += length;
    }
    return ct_plan_receive(b->plan, in, bytes, from);
}

static int ct__window(ct_plan_build *b, int64_t distance, int first, int last, uint16_t **told)
{
    ct_steps *s = &b->steps;
    uint16_t *begin = *told, *sizes = begin;
    int receives = b->plan->receive_count;
    for (int digit = first; digit <= last; digit++) {
        ct_step step = {.distance = distance, .digit = digit};
        int64_t hop = distance * digit;
        int to = ct_steps_rank(s, (int)((s->me + hop) % s->size)), from = ct_steps_rank(s, (int)((s->me + s->size - hop) % s->size));
        int out = (int)ct__size_count(s, step, false), in = (int)ct__size_count(s, step, true);
        CT_TRY(ct__out(b, step, to));
        CT_TRY(PMPI_Sendrecv(b->out_sizes, out, MPI_UINT16_T, to, CT__TAG_SIZES, sizes, in, MPI_UINT16_T, from,
                             CT__TAG_SIZES, b->team->comm, MPI_STATUS_IGNORE));
        sizes += in;
    }
    *told = sizes;
    ct_plan_stage_end(b->plan, receives);
    sizes = begin;
    for (int digit = first; digit <= last; digit++) {
        ct_step step = {.distance = distance, .digit = digit};
        int from = ct_steps_rank(s, (int)((s->me + s->size - distance * digit % s->size) % s->size));
        CT_TRY(ct__in(b, step, sizes, from));
        sizes += ct__size_count(s, step, true);
    }
    return MPI_SUCCESS;
}

int ct_plan_steps(ct_plan_build *b)
{
    ct_steps *s = &b->steps;
    uint16_t *told = b->sizes;
    int window = s->window > 0 && s->window < s->radix ? s->window : s->radix;
    for (int64_t distance = 1; distance < s->size; distance *= s->radix) {
        int digits = ct_steps_digits(s, distance);
        for (int first = 1; first <= digits; first += window)
            CT_TRY(ct__window(b, distance, first, first + window - 1 < digits ? first + window - 1 : digits, &told));
    }
    return MPI_SUCCESS;
}
