/* What plans are put together of: buffers, moves, messages, stages. */
#include "plan.h"

#include <limits.h>
#include <stdlib.h>

/* Room for `more` items behind `count`; the capacity is the next power of two. */
static void *ct__grown(ct_plan *plan, void *items, int count, int more, size_t item_bytes)
{
    int capacity = 8, needed = count + more;
    while (capacity < count)
        capacity *= 2;
    if (items != NULL && needed <= capacity)
        return items;
    while (capacity < needed)
        capacity *= 2;
    void *grown = plan->lacking ? NULL : realloc(items, item_bytes * (size_t)capacity);
    plan->lacking = plan->lacking || grown == NULL;
    return grown == NULL ? items : grown;
}

char *ct_plan_buffer(ct_plan *plan, int64_t bytes)
{
    plan->buffers = ct__grown(plan, plan->buffers, plan->buffer_count, 1, sizeof *plan->buffers);
    void *buffer = plan->lacking ? NULL : malloc((size_t)(bytes > 0 ? bytes : 1));
    if (buffer == NULL) {
        plan->lacking = true;
        return (char *)plan; /* any address: no move will be made */
    }
    plan->buffers[plan->buffer_count++] = buffer;
    return buffer;
}

static void ct__add_move(ct_plan *plan, ct_plan_move move)
{
    plan->moves = ct__grown(plan, plan->moves, plan->move_count, 1, sizeof *plan->moves);
    if (!plan->lacking)
        plan->moves[plan->move_count++] = move;
}

void ct_plan_copy(ct_plan *plan, void *to, const void *from, int64_t bytes)
{
    if (bytes > 0)
        ct__add_move(plan, (ct_plan_move){.kind = CT_MOVE_COPY, .to = to, .from = from, .bytes = bytes});
}

/* Our own copy of a type: the application may free its own as soon as MPI_Alltoallv_init has returned. */
static MPI_Datatype ct__own_type(ct_plan *plan, MPI_Datatype type)
{
    for (int i = 0; i < plan->type_count; i += 2)
        if (plan->types[i] == type)
            return plan->types[i + 1];
    plan->types = ct__grown(plan, plan->types, plan->type_count, 2, sizeof *plan->types);
    MPI_Datatype own;
    if (plan->lacking || PMPI_Type_dup(type, &own) != MPI_SUCCESS) {
        plan->lacking = true;
        return type;
    }
    plan->types[plan->type_count++] = type;
    plan->types[plan->type_count++] = own;
    return own;
}

static void ct__convert(ct_plan *plan, const ct_side *side, int block, ct_move_kind kind, char *packed)
{
    int64_t bytes = ct_side_bytes(side, block);
    void *user = ct_side_at(side, block);
    if (bytes == 0)
        return;
    ct_plan_move move = {.kind = side->plain ? CT_MOVE_COPY : kind, .to = kind == CT_MOVE_PACK ? packed : user,
                         .from = kind == CT_MOVE_PACK ? user : packed, .bytes = bytes};
    if (!side->plain) {
        move.count = (int)ct_side_count(side, block);
        move.type = ct__own_type(plan, ct_side_type(side, block));
    }
    ct__add_move(plan, move);
}

void ct_plan_pack(ct_plan *plan, const ct_side *side, int block, char *to) { ct__convert(plan, side, block, CT_MOVE_PACK, to); }

void ct_plan_unpack(ct_plan *plan, const ct_side *side, int block, const char *from)
{
    ct__convert(plan, side, block, CT_MOVE_UNPACK, (char *)(uintptr_t)from); /* only read */
}

/* Where the next of `count` messages goes; NULL: memory lacks. */
static MPI_Request *ct__new_request(ct_plan *plan, MPI_Request **requests, int count)
{
    *requests = ct__grown(plan, *requests, count, 1, sizeof **requests);
    return plan->lacking ? NULL : &(*requests)[count];
}

int ct_plan_send(ct_plan *plan, const void *from, int64_t bytes, int to)
{
    MPI_Request *request = bytes == 0 ? NULL : ct__new_request(plan, &plan->sends, plan->send_count);
    if (request == NULL)
        return MPI_SUCCESS;
    CT_TRY(PMPI_Send_init(from, (int)bytes, MPI_PACKED, to, plan->tag, plan->comm, request));
    plan->send_count++;
    return MPI_SUCCESS;
}

int ct_plan_receive(ct_plan *plan, void *into, int64_t bytes, int from)
{
    MPI_Request *request = bytes == 0 ? NULL : ct__new_request(plan, &plan->receives, plan->receive_count);
    if (request == NULL)
        return MPI_SUCCESS;
    CT_TRY(PMPI_Recv_init(into, (int)bytes, MPI_PACKED, from, plan->tag, plan->comm, request));
    plan->receive_count++;
    return MPI_SUCCESS;
}

int ct_plan_send_block(ct_plan *plan, const ct_side *side, int block, int to, bool forwarded)
{
    int64_t count = ct_side_count(side, block);
    int tag = forwarded ? plan->tag : plan->tag + 1;
    MPI_Request *request = ct__new_request(plan, &plan->sends, plan->send_count);
    if (request == NULL)
        return MPI_SUCCESS;
#if MPI_VERSION >= 4
    if (count > INT_MAX)
        CT_TRY(PMPI_Send_init_c(ct_side_at(side, block), (MPI_Count)count, ct_side_type(side, block), to, tag, plan->comm, request));
    else
#endif
        CT_TRY(PMPI_Send_init(ct_side_at(side, block), (int)count, ct_side_type(side, block), to, tag, plan->comm, request));
    plan->send_count++;
    return MPI_SUCCESS;
}

int ct_plan_receive_block(ct_plan *plan, const ct_side *side, int block, int from, bool forwarded)
{
    int64_t count = ct_side_count(side, block);
    int tag = forwarded ? plan->tag : plan->tag + 1;
    MPI_Request *request = ct__new_request(plan, &plan->receives, plan->receive_count);
    if (request == NULL)
        return MPI_SUCCESS;
#if MPI_VERSION >= 4
    if (count > INT_MAX)
        CT_TRY(PMPI_Recv_init_c(ct_side_at(side, block), (MPI_Count)count, ct_side_type(side, block), from, tag, plan->comm, request));
    else
#endif
        CT_TRY(PMPI_Recv_init(ct_side_at(side, block), (int)count, ct_side_type(side, block), from, tag, plan->comm, request));
    plan->receive_count++;
    return MPI_SUCCESS;
}

void ct_plan_stage_end(ct_plan *plan, int receives)
{
    plan->stages = ct__grown(plan, plan->stages, plan->stage_count, 1, sizeof *plan->stages);
    if (!plan->lacking)
        plan->stages[plan->stage_count++] =
            (ct_plan_stage){.receives = receives, .moves = plan->move_count, .sends = plan->send_count};
}
