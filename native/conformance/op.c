#include "op.h"

#include <stdint.h>
#include <string.h>

#include "pattern.h"

/* Packed into one int, a map has the value a * prime + b, so the prime's square must fit well into an int. */
#define CT__PRIME 251L

static MPI_Op ct__handles[CT_OP_COUNT] = {MPI_OP_NULL, MPI_OP_NULL, MPI_OP_NULL, MPI_OP_NULL};

static struct ct_value ct__compose(struct ct_value outer, struct ct_value inner)
{
    struct ct_value map;
    map.part[0] = outer.part[0] * inner.part[0] % CT__PRIME;
    map.part[1] = (outer.part[0] * inner.part[1] + outer.part[1]) % CT__PRIME;
    return map;
}

static struct ct_value ct__unpack(const struct ct_type *type, struct ct_value value)
{
    if (type->pieces > 1)
        return value;
    return (struct ct_value){{value.part[0] / CT__PRIME, value.part[0] % CT__PRIME}};
}

static struct ct_value ct__pack(const struct ct_type *type, struct ct_value value)
{
    if (type->pieces > 1)
        return value;
    return (struct ct_value){{value.part[0] * CT__PRIME + value.part[1], 0}};
}

struct ct_value ct_op_combine(enum ct_op op, const struct ct_type *type, struct ct_value left,
                              struct ct_value right)
{
    switch (op) {
    case CT_OP_SUM:
        return (struct ct_value){{left.part[0] + right.part[0], left.part[1] + right.part[1]}};
    case CT_OP_MAX:
        return (struct ct_value){{left.part[0] > right.part[0] ? left.part[0] : right.part[0],
                                  left.part[1] > right.part[1] ? left.part[1] : right.part[1]}};
    case CT_OP_USER_COMMUTATIVE:
        return (struct ct_value){{(left.part[0] + right.part[0]) % CT__PRIME,
                                  (left.part[1] + right.part[1]) % CT__PRIME}};
    default:
        return ct__pack(type, ct__compose(ct__unpack(type, left), ct__unpack(type, right)));
    }
}

struct ct_value ct_op_value(enum ct_op op, const struct ct_type *type, unsigned contributor, size_t index,
                            unsigned salt)
{
    uint64_t bits = ct_pattern_mix(contributor, (unsigned)op, index, salt);
    struct ct_value value = {{0, 0}};
    if (op == CT_OP_SUM || op == CT_OP_MAX) {
        value.part[0] = (long)(bits % 2001) - 1000;
        return value;
    }
    value.part[0] = 1 + (long)(bits % (CT__PRIME - 1));
    value.part[1] = (long)((bits >> 32) % CT__PRIME);
    if (op == CT_OP_USER_ORDERED)
        return ct__pack(type, value);
    if (type->pieces == 1)
        value.part[1] = 0;
    return value;
}

/* A number of any of the types that are reduced; a piece of one has its bytes. */
union ct__number {
    int integer;
    float single;
    double precise;
};

struct ct_value ct_value_load(const struct ct_type *type, const unsigned char *element)
{
    struct ct_value value = {{0, 0}};
    for (int i = 0; i < type->pieces && i < 2; i++) {
        const struct ct_piece *piece = &type->piece[i];
        union ct__number number;
        memcpy(&number, element + piece->offset, piece->bytes);
        value.part[i] = piece->number == CT_NUMBER_FLOAT    ? (long)number.single
                        : piece->number == CT_NUMBER_DOUBLE ? (long)number.precise
                                                            : number.integer;
    }
    return value;
}

void ct_value_store(const struct ct_type *type, unsigned char *element, struct ct_value value)
{
    for (int i = 0; i < type->pieces && i < 2; i++) {
        const struct ct_piece *piece = &type->piece[i];
        union ct__number number = {.integer = (int)value.part[i]};
        if (piece->number == CT_NUMBER_FLOAT)
            number.single = (float)value.part[i];
        else if (piece->number == CT_NUMBER_DOUBLE)
            number.precise = (double)value.part[i];
        memcpy(element + piece->offset, &number, piece->bytes);
    }
}

static void ct__apply(enum ct_op op, const void *in, void *inout, int length, MPI_Datatype datatype)
{
    const unsigned char *left = in;
    unsigned char *right = inout;
    MPI_Aint lower, extent;
    MPI_Type_get_extent(datatype, &lower, &extent);
    const struct ct_type *type = ct_type_find_reducible((size_t)extent);
    /* An unknown layout leaves the data as it is, and the comparison of the results reports that. */
    for (int i = 0; type != NULL && i < length; i++) {
        size_t at = (size_t)i * type->extent;
        ct_value_store(type, right + at,
                       ct_op_combine(op, type, ct_value_load(type, left + at), ct_value_load(type, right + at)));
    }
}

static void ct__user_commutative(void *in, void *inout, int *length, MPI_Datatype *datatype)
{
    ct__apply(CT_OP_USER_COMMUTATIVE, in, inout, *length, *datatype);
}

static void ct__user_ordered(void *in, void *inout, int *length, MPI_Datatype *datatype)
{
    ct__apply(CT_OP_USER_ORDERED, in, inout, *length, *datatype);
}

int ct_ops_make(void)
{
    ct__handles[CT_OP_SUM] = MPI_SUM;
    ct__handles[CT_OP_MAX] = MPI_MAX;
    int rc = MPI_Op_create(ct__user_commutative, 1, &ct__handles[CT_OP_USER_COMMUTATIVE]);
    if (rc == MPI_SUCCESS)
        rc = MPI_Op_create(ct__user_ordered, 0, &ct__handles[CT_OP_USER_ORDERED]);
    return rc;
}

void ct_ops_free(void)
{
    for (int op = CT_OP_USER_COMMUTATIVE; op < CT_OP_COUNT; op++)
        if (ct__handles[op] != MPI_OP_NULL)
            MPI_Op_free(&ct__handles[op]);
}

MPI_Op ct_op_handle(enum ct_op op)
{
    return ct__handles[op];
}

const char *ct_op_name(enum ct_op op)
{
    static const char *const names[CT_OP_COUNT] = {"sum", "max", "user_commutative", "user_ordered"};
    return names[op];
}
