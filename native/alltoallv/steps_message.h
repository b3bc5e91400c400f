/* Radix-r Bruck over blocks, or over lists of blocks, of any size: what ParAta and HieAta have in common.
 *
 * Positions 0..size-1 exchange parcels. A parcel is the list of blocks from one position that go to (HieAta: by way of)
 * another; slot o holds the parcel for position me + o. Step (d, z), d = radix^x, moves the slots whose digit x is z to
 * position me + z d, and a slot keeps its number there. So before round x slot o of position q holds the parcel from
 * q - (o mod d) to q + (o - o mod d): it is untouched where o mod d = 0, and at home after a step where o < radix d.
 *
 * A message: the statistic, the sizes of its blocks (16 bits each), the blocks. The receiver goes by these sizes alone, and not by
 * its own counts: it may have room for more than it is sent. */
#pragma once

#include "algorithms.h"

typedef struct {
    ct_chunk *chunk; /* NULL: nothing here */
    const uint16_t *sizes;
    const char *data;
    int64_t bytes;
} ct_parcel;

typedef struct {
    ct_team *team;
    const ct_exchange *x;
    int me, size;
    const int *rank_at;   /* [size] rank of each position; NULL: the position itself */
    const int *list_first; /* [size + 1] into list; NULL: one block for each position, its own */
    const int *list;       /* destination ranks of the blocks of a parcel */
    int radix, window;
    int64_t forwarded_most; /* larger blocks are counted as empty */
    ct_parcel *slots; /* [size] */
    ct_parcel *home;  /* [size] by source position, where lists are in use; else blocks go to the user's buffer */
    ct_statistic *statistic;
    ct_direct *direct; /* the larger blocks */
    int failed;        /* the first error of a block that came home; the blocks of others go on */
} ct_steps;

/* In place of a size: this block is larger than forwarded_most, and goes straight to its destination. */
enum { CT_STRAIGHT = UINT16_MAX };

static inline int ct_steps_rank(const ct_steps *s, int position) { return s->rank_at ? s->rank_at[position] : position; }
static inline int ct_steps_length(const ct_steps *s, int position)
{
    return s->list_first ? s->list_first[position + 1] - s->list_first[position] : 1;
}
/* A block's bytes on its way through other ranks. */
static inline int64_t ct_forwarded(const ct_side *side, int peer, int64_t most)
{
    int64_t bytes = ct_side_bytes(side, peer);
    return bytes > most ? 0 : bytes;
}

/* The same as it is told. */
static inline uint16_t ct_told(const ct_side *side, int peer, int64_t most)
{
    int64_t bytes = ct_side_bytes(side, peer);
    return bytes > most ? CT_STRAIGHT : (uint16_t)bytes;
}
static inline int64_t ct_told_bytes(uint16_t size) { return size == CT_STRAIGHT ? 0 : size; }
/* A block from `source` (a rank) that is told of here, at home. */
int ct_steps_take(ct_steps *s, int source, uint16_t size, const char *from);

/* Lets go of a parcel; its message goes back when nothing else points into it. */
void ct_parcel_drop(ct_pool *pool, ct_parcel *parcel);

typedef struct {
    int64_t distance; /* d */
    int digit;        /* z */
} ct_step;

static inline int ct_steps_plus(const ct_steps *s, int64_t offset) { return (int)((s->me + offset) % s->size); }
static inline int64_t ct_step_first(ct_step step) { return step.distance * step.digit; }
/* The next slot of a step after `slot`, in ascending order; s->size or more: none. */
static inline int64_t ct_step_next(const ct_steps *s, ct_step step, int64_t slot)
{
    slot++;
    if (slot % step.distance != 0)
        return slot;
    return slot + step.distance * (s->radix - 1);
}
/* Whether a slot of this step is at home once moved. */
static inline bool ct_step_lands(const ct_steps *s, ct_step step, int64_t slot) { return slot < s->radix * step.distance; }
/* Whether a slot that leaves in this step has never moved: it is in the user's buffer. */
static inline bool ct_step_fresh(ct_step step, int64_t slot) { return slot % step.distance == 0; }
/* Where a slot of this step goes in the end: seen from its sender (before the step), or its receiver (after it). */
static inline int ct_step_goal(const ct_steps *s, ct_step step, int64_t slot, bool incoming)
{
    int64_t next = step.distance * s->radix;
    return ct_steps_plus(s, incoming ? slot - slot % next : slot - slot % step.distance);
}
/* The position that a slot which lands here came from in the first place. */
static inline int ct_step_source(const ct_steps *s, int64_t slot) { return ct_steps_plus(s, s->size - slot); }
static inline int64_t ct_sizes_sum(const uint16_t *sizes, int length)
{
    int64_t bytes = 0;
    for (int i = 0; i < length; i++)
        bytes += ct_told_bytes(sizes[i]);
    return bytes;
}
/* Digits of a round that there are: positions beyond `size` are not. */
static inline int ct_steps_digits(const ct_steps *s, int64_t distance)
{
    int64_t digits = (s->size - 1) / distance;
    return (int)(digits < s->radix - 1 ? digits : s->radix - 1);
}

/* Bytes of the statistic and sizes, and the most bytes that the blocks can have. */
int64_t ct_step_head_bytes(const ct_steps *s, ct_step step, bool incoming);
int64_t ct_step_most_bytes(const ct_steps *s, ct_step step);
/* Bytes of the blocks that go out. */
int64_t ct_step_out_bytes(const ct_steps *s, ct_step step);
int ct_step_pack(ct_steps *s, ct_step step, char *head, char *blocks);
/* Takes in what came. */
int ct_step_unpack(ct_steps *s, ct_step step, ct_chunk *chunk, const char *head, const char *blocks);
/* All rounds. */
int ct_steps_run(ct_steps *steps);
