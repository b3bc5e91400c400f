#include "case.h"

#include <stdio.h>

#include "pattern.h"

static const char *const ct__shapes[CT_SHAPE_COUNT] = {"even", "ramp", "holes", "single"};

static int ct__root_rank(enum ct_root root, int size)
{
    return root == CT_ROOT_FIRST ? 0 : root == CT_ROOT_LAST ? size - 1 : size / 2;
}

void ct_case_format(const struct ct_case *c, int ranks, char text[CT_CASE_TEXT])
{
    const struct ct_collective *k = c->collective;
    size_t at = (size_t)snprintf(text, CT_CASE_TEXT, "%s comm=%s ranks=%d", k->name, c->comm->name, ranks);
    if (k->has_data)
        at += (size_t)snprintf(text + at, CT_CASE_TEXT - at, " type=%s count=%d", ct_type_get(c->type)->name, c->count);
    if (k->reduces)
        at += (size_t)snprintf(text + at, CT_CASE_TEXT - at, " op=%s", ct_op_name(c->op));
    if (k->has_shapes)
        at += (size_t)snprintf(text + at, CT_CASE_TEXT - at, " counts=%s", ct__shapes[c->shape]);
    if (k->has_in_place)
        at += (size_t)snprintf(text + at, CT_CASE_TEXT - at, " in_place=%s", c->in_place ? "yes" : "no");
    if (k->has_root) {
        struct ct_role role = ct_case_role(c);
        at += (size_t)snprintf(text + at, CT_CASE_TEXT - at, " root=%d", role.root_rank);
        if (c->comm->inter)
            snprintf(text + at, CT_CASE_TEXT - at, " root_side=%d", c->root_side);
    }
}

struct ct_view ct_case_view(const struct ct_case *c, enum ct_case_side side)
{
    if (c->type == CT_TYPE_MIXED && (c->number + side) % 2 != 0)
        return (struct ct_view){ct_type_get(CT_TYPE_INT), 2};
    return (struct ct_view){ct_type_get(c->type), 1};
}

struct ct_role ct_case_role(const struct ct_case *c)
{
    const struct ct_case_comm *comm = c->comm;
    bool on_root_side = !comm->inter || comm->side == c->root_side;
    int size = on_root_side ? comm->size : comm->peers;
    struct ct_role role = {.root_rank = ct__root_rank(c->root, size), .root_side = comm->inter ? c->root_side : 0};
    role.is_root = on_root_side && comm->rank == role.root_rank;
    role.is_leaf = !comm->inter || !on_root_side;
    role.root = !comm->inter || !on_root_side ? role.root_rank : role.is_root ? MPI_ROOT : MPI_PROC_NULL;
    return role;
}

struct ct_junk ct_case_junk(const struct ct_case *c)
{
    static unsigned char somewhere[16];
    switch (ct_pattern_mix((unsigned)c->number, (unsigned)c->comm->rank, 0, 0) % 3) {
    case 0:
        return (struct ct_junk){NULL, 0, MPI_DATATYPE_NULL};
    case 1:
        return (struct ct_junk){somewhere, -7, MPI_DATATYPE_NULL};
    default:
        return (struct ct_junk){NULL, 1 << 20, MPI_INT};
    }
}

int ct_shape_count(enum ct_case_shape shape, int count, int index, int blocks)
{
    switch (shape) {
    case CT_SHAPE_RAMP:
        return blocks > 1 ? (int)((long long)count * index / (blocks - 1)) : count;
    case CT_SHAPE_HOLES:
        return index % 2 ? 0 : count;
    case CT_SHAPE_SINGLE:
        return index == blocks / 2 ? count : 0;
    default:
        return count;
    }
}

size_t ct_shape_displace(enum ct_case_shape shape, const int *counts, int blocks, int *displacements)
{
    const int hole = shape == CT_SHAPE_RAMP;
    int at = 0;
    for (int i = 0; i < blocks; i++) {
        int block = shape == CT_SHAPE_HOLES ? blocks - 1 - i : i;
        displacements[block] = at;
        at += counts[block] + hole;
    }
    return (size_t)at;
}
