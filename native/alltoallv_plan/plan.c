/* Plans: made together, run by each rank for itself. */
#include "plan.h"

#include <stdlib.h>

#include "progress.h"

/* Large blocks and this rank's own beside the algorithm's messages: sent at once, and waited for at the end. */
static int ct__send_beside(ct_plan_build *b, int64_t above)
{
    ct_plan *plan = b->plan;
    int me = b->team->rank;
    for (int offset = 1; offset < b->team->size; offset++) {
        int to = (me + offset) % b->team->size;
        if (ct_side_bytes(&b->x->send, to) > above)
            CT_TRY(ct_plan_send_block(plan, &b->x->send, to, to, false));
    }
    int64_t bytes = ct_side_bytes(&b->x->send, me);
    if (bytes == 0)
        return MPI_SUCCESS;
    if (!b->x->send.plain || !b->x->receive.plain)
        return ct_plan_send_block(plan, &b->x->send, me, me, false);
    ct_plan_copy(plan, ct_side_at(&b->x->receive, me), ct_side_at(&b->x->send, me), bytes);
    return MPI_SUCCESS;
}

static int ct__receive_beside(ct_plan_build *b, int64_t above)
{
    ct_plan *plan = b->plan;
    int me = b->team->rank;
    for (int offset = 1; offset < b->team->size; offset++) {
        int from = (me - offset + b->team->size) % b->team->size;
        if (ct_side_bytes(&b->x->receive, from) > above)
            CT_TRY(ct_plan_receive_block(plan, &b->x->receive, from, from, false));
    }
    if (ct_side_bytes(&b->x->receive, me) > 0 && (!b->x->send.plain || !b->x->receive.plain))
        CT_TRY(ct_plan_receive_block(plan, &b->x->receive, me, me, false));
    return MPI_SUCCESS;
}

static int ct__build(ct_plan_build *b)
{
    bool linear = b->choice.algorithm == CT_ALLTOALLV_LINEAR || b->choice.algorithm == CT_ALLTOALLV_PAIRWISE;
    int64_t above = linear ? INT64_MAX : ct_team_forwarded_most(b->team, &b->choice);
    CT_TRY(ct__send_beside(b, above));
    ct_plan_stage_end(b->plan, 0);
    switch (b->choice.algorithm) {
    case CT_ALLTOALLV_LINEAR:
    case CT_ALLTOALLV_PAIRWISE:
        CT_TRY(ct_plan_linear(b));
        break;
    case CT_ALLTOALLV_BRUCK:
    case CT_ALLTOALLV_PARATA:
        CT_TRY(ct_plan_steps(b));
        break;
    default:
        CT_TRY(ct_plan_hieata(b));
    }
    CT_TRY(ct__receive_beside(b, above));
    ct_plan_stage_end(b->plan, b->plan->receive_count);
    return MPI_SUCCESS;
}

static int ct__make(ct_plan_build *b, bool *made)
{
    CT_TRY(ct_team_all_have(b->team->comm, b->plan != NULL && ct_plan_build_begin(b), made));
    if (!*made)
        return MPI_SUCCESS;
    CT_TRY(ct__build(b));
    return ct_team_all_have(b->team->comm, !b->plan->lacking, made);
}

int ct_plan_make(ct_team *team, const ct_exchange *x, const ct_alltoallv_choice *choice, int tag, ct_plan **plan)
{
    bool made = false;
    ct_plan_build b = {.plan = calloc(1, sizeof(ct_plan)), .team = team, .x = x, .choice = *choice};
    if (choice->algorithm == CT_ALLTOALLV_BRUCK)
        b.choice.radix = 2, b.choice.batch = 1;
    if (choice->algorithm == CT_ALLTOALLV_PAIRWISE)
        b.choice.batch = 1;
    if (b.plan != NULL)
        b.plan->comm = team->comm, b.plan->tag = tag;
    int code = ct__make(&b, &made);
    ct_plan_build_end(&b);
    if (!made || code != MPI_SUCCESS) {
        int freed = b.plan == NULL ? MPI_SUCCESS : ct_plan_free(b.plan);
        b.plan = NULL;
        code = code == MPI_SUCCESS ? freed : code;
    }
    *plan = b.plan;
    return code;
}

static int ct__move(const ct_plan_move *move)
{
    int position = 0;
    switch (move->kind) {
    case CT_MOVE_PACK:
        return PMPI_Pack(move->from, move->count, move->type, move->to, (int)move->bytes, &position, MPI_COMM_SELF);
    case CT_MOVE_UNPACK:
        return PMPI_Unpack(move->from, (int)move->bytes, &position, move->to, move->count, move->type, MPI_COMM_SELF);
    default:
        memcpy(move->to, move->from, (size_t)move->bytes);
        return MPI_SUCCESS;
    }
}

/* Goes over requests from *done on as long as they are complete; whether `wanted` of them are. */
static bool ct__complete(const MPI_Request *requests, int *done, int wanted)
{
    while (*done < wanted && ct_progress_is_complete(requests[*done]))
        ++*done;
    return *done >= wanted;
}

int ct_plan_advance(ct_plan *plan, bool *done)
{
    *done = false;
    for (; plan->stage < plan->stage_count; plan->stage++) {
        const ct_plan_stage *stage = &plan->stages[plan->stage];
        if (!ct__complete(plan->receives, &plan->at.receives, stage->receives))
            return MPI_SUCCESS;
        for (; plan->at.moves < stage->moves; plan->at.moves++)
            CT_TRY(ct__move(&plan->moves[plan->at.moves]));
        for (; plan->at.sends < stage->sends; plan->at.sends++)
            CT_TRY(PMPI_Start(&plan->sends[plan->at.sends]));
    }
    *done = ct__complete(plan->sends, &plan->sends_done, plan->send_count);
    return MPI_SUCCESS;
}

int ct_plan_begin(ct_plan *plan)
{
    plan->at = (ct_plan_stage){0};
    plan->stage = plan->sends_done = 0;
    for (int i = 0; i < plan->receive_count; i++) /* one by one: two from one rank must be matched in order */
        CT_TRY(PMPI_Start(&plan->receives[i]));
    return MPI_SUCCESS;
}

int ct_plan_end(ct_plan *plan)
{
    int code = plan->receive_count == 0 ? MPI_SUCCESS : PMPI_Waitall(plan->receive_count, plan->receives, MPI_STATUSES_IGNORE);
    int sent = plan->send_count == 0 ? MPI_SUCCESS : PMPI_Waitall(plan->send_count, plan->sends, MPI_STATUSES_IGNORE);
    return code != MPI_SUCCESS ? code : sent;
}

static int ct__free_all(MPI_Request *requests, int count)
{
    int code = MPI_SUCCESS;
    for (int i = 0; i < count; i++) {
        int freed = PMPI_Request_free(&requests[i]);
        code = code != MPI_SUCCESS ? code : freed;
    }
    free(requests);
    return code;
}

int ct_plan_free(ct_plan *plan)
{
    int code = ct__free_all(plan->receives, plan->receive_count), sent = ct__free_all(plan->sends, plan->send_count);
    for (int i = 1; i < plan->type_count; i += 2)
        PMPI_Type_free(&plan->types[i]);
    for (int i = 0; i < plan->buffer_count; i++)
        free(plan->buffers[i]);
    free(plan->moves);
    free(plan->stages);
    free(plan->buffers);
    free(plan->types);
    free(plan);
    return code != MPI_SUCCESS ? code : sent;
}
