/* An exchange whose counts, types and buffers never change, as MPI_Alltoallv_init promises: sizes are told once, when the
 * plan is made, and each start sends the same persistent messages with nothing but blocks in them.
 *
 * A plan is a row of stages. A stage waits for the messages before it, moves blocks between buffers, and starts messages
 * of its own. All receives are started at once. Sizes being known at both ends, an empty message is left out. */
#ifndef CT_PLAN_H
#define CT_PLAN_H

#include "algorithms.h"
#include "steps.h"

typedef enum { CT_MOVE_COPY, CT_MOVE_PACK, CT_MOVE_UNPACK } ct_move_kind;

typedef struct {
    ct_move_kind kind;
    void *to;
    const void *from;
    int64_t bytes; /* of the packed form */
    int count;     /* elements of `type`, where it is packed or unpacked */
    MPI_Datatype type;
} ct_plan_move;

/* How far a plan is after a stage; all three only grow. */
typedef struct {
    int receives; /* that must be complete before the stage */
    int moves, sends;
} ct_plan_stage;

typedef struct {
    MPI_Comm comm;
    int tag; /* of forwarded messages; tag + 1 is for those between user buffers */
    MPI_Request *receives, *sends;
    ct_plan_move *moves;
    ct_plan_stage *stages;
    void **buffers;
    MPI_Datatype *types; /* pairs: the user's, which may be freed, and our copy of it */
    int receive_count, send_count, move_count, stage_count, buffer_count, type_count;
    bool lacking; /* memory was lacking: it must not be run */
    ct_plan_stage at; /* of the start under way: complete receives, moves done, sends started */
    int stage, sends_done;
} ct_plan;

/* Collective. `choice` is in normal form and equal on all ranks but for its batch. *plan is NULL, on all ranks alike, where
 * any rank lacks memory. The team may go while the plan stays. */
int ct_plan_make(ct_team *team, const ct_exchange *x, const ct_alltoallv_choice *choice, int tag, ct_plan **plan);
int ct_plan_free(ct_plan *plan);

/* Starts what can be started. Local, and nothing waits in it. */
int ct_plan_begin(ct_plan *plan);
/* Goes on as far as messages have come; *done: all blocks have arrived, and the send buffer may be used again. */
int ct_plan_advance(ct_plan *plan, bool *done);
/* After it is done: ready to begin again. Returns what went wrong with its messages. */
int ct_plan_end(ct_plan *plan);

/* ---- plan_parts.c: what a plan is put together of. Where memory lacks they note it, and the plan is not run. ---- */

/* Never NULL. */
char *ct_plan_buffer(ct_plan *plan, int64_t bytes);
void ct_plan_copy(ct_plan *plan, void *to, const void *from, int64_t bytes);
void ct_plan_pack(ct_plan *plan, const ct_side *side, int block, char *to);
void ct_plan_unpack(ct_plan *plan, const ct_side *side, int block, const char *from);
int ct_plan_send(ct_plan *plan, const void *from, int64_t bytes, int to);
int ct_plan_receive(ct_plan *plan, void *into, int64_t bytes, int from);
/* Blocks between user buffers, with the user's types; `forwarded`: under the tag of forwarded messages. */
int ct_plan_send_block(ct_plan *plan, const ct_side *side, int block, int to, bool forwarded);
int ct_plan_receive_block(ct_plan *plan, const ct_side *side, int block, int from, bool forwarded);
/* Ends a stage: it holds the moves and sends since the one before, and waits for `receives` of those so far. */
void ct_plan_stage_end(ct_plan *plan, int receives);

/* ---- plan_steps.c, plan_hieata.c: the algorithms as plans ---- */

/* What is needed while a plan is made. */
typedef struct {
    ct_plan *plan;
    ct_team *team;
    const ct_exchange *x;
    ct_alltoallv_choice choice;
    ct_steps steps;      /* of ParAta, or of HieAta within the node; its parcels' data are in buffers of the plan */
    uint16_t *sizes;     /* all sizes that this rank is told */
    uint16_t *out_sizes; /* those that it tells in one step */
    int64_t *eaten;      /* HieAta: bytes of each local source's parcel that went out already */
} ct_plan_build;

/* Memory for the above. Local; false where it lacks. */
bool ct_plan_build_begin(ct_plan_build *b);
void ct_plan_build_end(ct_plan_build *b);
/* Straight to the destinations, `batch` peers in flight. */
int ct_plan_linear(ct_plan_build *b);
int ct_plan_steps(ct_plan_build *b);
int ct_plan_hieata(ct_plan_build *b);

#endif
