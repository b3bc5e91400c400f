/* Radix-r Bruck over blocks, or over lists of blocks, of any size: what ParAta, two-phase Bruck and HieAta have in common.
 *
 * Positions 0..size-1 exchange parcels. A parcel is the list of blocks from one position that go to (HieAta: by way of)
 * another; slot o holds the parcel for position me + o. Step (d, z), d = radix^x, moves the slots whose digit x is z to
 * position me + z d, and a slot keeps its number there. So before round x slot o of position q holds the parcel from
 * q - (o mod d) to q + (o - o mod d): it is untouched where o mod d = 0, and at home after a step where o < radix d.
 *
 * A message: the statistic, the sizes of its blocks (16 bits each), the blocks. Sizes of parcels that arrive at home are
 * left out where the receiver knows them. In two-phase form, the blocks are a message of their own. */
#ifndef CT_STEPS_H
#define CT_STEPS_H

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
    bool two_phase;
    ct_parcel *slots; /* [size] */
    ct_parcel *home;  /* [size] by source position, where lists are in use; else blocks go to the user's buffer */
    ct_statistic *statistic;
} ct_steps;

int ct_steps_run(ct_steps *steps);

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

/* Lets go of a parcel; its message goes back when nothing else points into it. */
void ct_parcel_drop(ct_pool *pool, ct_parcel *parcel);

/* ---- steps_message.c: what a step's message holds ---- */

typedef struct {
    int64_t distance; /* d */
    int digit;        /* z */
} ct_step;

/* Bytes of the statistic and sizes, and the most bytes that the blocks can have. */
int64_t ct_step_head_bytes(const ct_steps *s, ct_step step, bool incoming);
int64_t ct_step_most_bytes(const ct_steps *s, ct_step step);
/* Bytes of the blocks that go out. */
int64_t ct_step_out_bytes(const ct_steps *s, ct_step step);
int ct_step_pack(ct_steps *s, ct_step step, char *head, char *blocks);
/* Takes in what came; *used is how many bytes of blocks the sizes told of. */
int64_t ct_step_in_bytes(const ct_steps *s, ct_step step, const char *head);
int ct_step_unpack(ct_steps *s, ct_step step, ct_chunk *chunk, const char *head, const char *blocks);

#endif
