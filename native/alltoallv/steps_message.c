/* One step's message: which slots, their sizes, their blocks. */
#include "steps_message.h"

#include <string.h>

void ct_parcel_drop(ct_pool *pool, ct_parcel *parcel)
{
    if (parcel->chunk != NULL && --parcel->chunk->live == 0)
        ct_pool_give(pool, parcel->chunk);
    *parcel = (ct_parcel){0};
}

static int64_t ct__blocks(const ct_steps *s, ct_step step, bool incoming)
{
    int64_t blocks = 0;
    for (int64_t slot = ct_step_first(step); slot < s->size; slot = ct_step_next(s, step, slot))
        blocks += ct_steps_length(s, ct_step_goal(s, step, slot, incoming));
    return blocks;
}

int64_t ct_step_head_bytes(const ct_steps *s, ct_step step, bool incoming)
{
    return (int64_t)sizeof(ct_statistic) + ct__blocks(s, step, incoming) * (int64_t)sizeof(uint16_t);
}

int64_t ct_step_most_bytes(const ct_steps *s, ct_step step) { return ct__blocks(s, step, true) * s->forwarded_most; }

static int64_t ct__fresh_bytes(const ct_steps *s, int goal)
{
    if (s->list_first == NULL)
        return ct_forwarded(&s->x->send, goal, s->forwarded_most);
    int64_t bytes = 0;
    for (int i = s->list_first[goal]; i < s->list_first[goal + 1]; i++)
        bytes += ct_forwarded(&s->x->send, s->list[i], s->forwarded_most);
    return bytes;
}

int64_t ct_step_out_bytes(const ct_steps *s, ct_step step)
{
    int64_t bytes = 0;
    for (int64_t slot = ct_step_first(step); slot < s->size; slot = ct_step_next(s, step, slot))
        bytes += ct_step_fresh(step, slot) ? ct__fresh_bytes(s, ct_steps_plus(s, slot)) : s->slots[slot].bytes;
    return bytes;
}

/* Blocks that never moved, from the user's buffer. */
static int ct__pack_fresh(const ct_steps *s, int goal, uint16_t *sizes, char *to)
{
    const int *list = s->list_first ? &s->list[s->list_first[goal]] : &goal;
    int length = ct_steps_length(s, goal);
    for (int i = 0; i < length; i++) {
        int64_t bytes = ct_forwarded(&s->x->send, list[i], s->forwarded_most);
        sizes[i] = ct_told(&s->x->send, list[i], s->forwarded_most);
        if (bytes > 0)
            CT_TRY(ct_block_pack(&s->x->send, list[i], to, s->team->comm));
        to += bytes;
    }
    return MPI_SUCCESS;
}

int ct_step_pack(ct_steps *s, ct_step step, char *head, char *blocks)
{
    uint16_t *sizes = (uint16_t *)(void *)(head + sizeof(ct_statistic));
    char *start = blocks;
    int64_t moved = 0;
    memcpy(head, s->statistic, sizeof *s->statistic);
    for (int64_t slot = ct_step_first(step); slot < s->size; slot = ct_step_next(s, step, slot)) {
        int goal = ct_step_goal(s, step, slot, false), length = ct_steps_length(s, goal);
        ct_parcel *held = &s->slots[slot];
        if (ct_step_fresh(step, slot)) {
            CT_TRY(ct__pack_fresh(s, goal, sizes, blocks));
            blocks += ct__fresh_bytes(s, goal);
        } else {
            if (held->bytes > 0)
                ct_copy_data(blocks, held->data, held->bytes);
            memcpy(sizes, held->sizes, sizeof *sizes * (size_t)length);
            blocks += held->bytes;
            ct_parcel_drop(&s->team->pool, held);
        }
        sizes += length;
        moved += length;
    }
    ct_charge(moved, blocks - start);
    return MPI_SUCCESS;
}

int ct_steps_take(ct_steps *s, int source, uint16_t size, const char *from)
{
    if (size == CT_STRAIGHT)
        return ct_direct_comes(s->team, s->x, s->direct, source);
    if (ct_side_bytes(&s->x->receive, source) > s->forwarded_most) /* there is room for a block that would come straight */
        CT_TRY(ct_direct_does_not_come(s->direct, source));
    return ct_block_unpack(&s->x->receive, source, from, size, s->team->rank, s->team->comm);
}

int ct_step_unpack(ct_steps *s, ct_step step, ct_chunk *chunk, const char *head, const char *blocks)
{
    const uint16_t *sizes = (const uint16_t *)(const void *)(head + sizeof(ct_statistic));
    int64_t landed = 0, landed_bytes = 0;
    ct_statistic theirs;
    memcpy(&theirs, head, sizeof theirs);
    ct_statistic_join(s->statistic, &theirs);
    chunk->live = 1; /* ours, until all is taken in */
    for (int64_t slot = ct_step_first(step); slot < s->size; slot = ct_step_next(s, step, slot)) {
        if (s->list_first == NULL && ct_step_lands(s, step, slot)) {
            int source = ct_steps_rank(s, ct_step_source(s, slot));
            int64_t bytes = ct_told_bytes(*sizes);
            ct_keep_first(&s->failed, ct_steps_take(s, source, *sizes, blocks));
            blocks += bytes;
            sizes++;
            landed++, landed_bytes += bytes;
            continue;
        }
        int length = ct_steps_length(s, ct_step_goal(s, step, slot, true));
        ct_parcel *to = ct_step_lands(s, step, slot) ? &s->home[ct_step_source(s, slot)] : &s->slots[slot];
        *to = (ct_parcel){.chunk = chunk, .sizes = sizes, .data = blocks, .bytes = ct_sizes_sum(sizes, length)};
        chunk->live++;
        blocks += to->bytes;
        sizes += length;
    }
    ct_charge(landed, landed_bytes);
    if (--chunk->live == 0)
        ct_pool_give(&s->team->pool, chunk);
    return MPI_SUCCESS;
}
