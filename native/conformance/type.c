#include "type.h"
#include "codes.h"
#include "pattern.h"

#include <stdint.h>
#include <string.h>

#define INT_AT(place) {(place), sizeof(int), CT_NUMBER_INT}

static struct ct_type ct__types[CT_TYPE_COUNT] = {
    [CT_TYPE_BYTE] = {"byte", MPI_BYTE, 1, 1, 1, {{0, 1, CT_NUMBER_BYTES}}},
    [CT_TYPE_INT] = {"int", MPI_INT, 4, 4, 1, {INT_AT(0)}},
    [CT_TYPE_FLOAT] = {"float", MPI_FLOAT, 4, 4, 1, {{0, 4, CT_NUMBER_FLOAT}}},
    [CT_TYPE_DOUBLE] = {"double", MPI_DOUBLE, 8, 8, 1, {{0, 8, CT_NUMBER_DOUBLE}}},
    [CT_TYPE_CONTIGUOUS] = {"contiguous", MPI_DATATYPE_NULL, 12, 12, 1, {{0, 12, CT_NUMBER_BYTES}}},
    [CT_TYPE_VECTOR] = {"vector", MPI_DATATYPE_NULL, 8, 12, 2, {INT_AT(0), INT_AT(8)}},
    [CT_TYPE_GAPPED] = {"gapped", MPI_DATATYPE_NULL, 4, 20, 1, {INT_AT(0)}},
    [CT_TYPE_STRUCT] = {"struct", MPI_DATATYPE_NULL, 13, 16, 3,
                        {{0, 8, CT_NUMBER_DOUBLE}, INT_AT(8), {12, 1, CT_NUMBER_BYTES}}},
    [CT_TYPE_MIXED] = {"mixed", MPI_DATATYPE_NULL, 8, 16, 2, {INT_AT(0), INT_AT(4)}},
    [CT_TYPE_PAIR] = {"pair", MPI_DATATYPE_NULL, 8, 8, 2, {INT_AT(0), INT_AT(4)}},
    [CT_TYPE_PAIR_VECTOR] = {"pair_vector", MPI_DATATYPE_NULL, 8, 12, 2, {INT_AT(0), INT_AT(8)}},
    [CT_TYPE_PAIR_GAPPED] = {"pair_gapped", MPI_DATATYPE_NULL, 8, 16, 2, {INT_AT(0), INT_AT(4)}},
    [CT_TYPE_PAIR_STRUCT] = {"pair_struct", MPI_DATATYPE_NULL, 12, 24, 2, {INT_AT(0), {16, 8, CT_NUMBER_DOUBLE}}},
};

/* `plain`, which is freed, resized so that `extent` bytes lie between two elements. */
static int ct__resize(MPI_Datatype plain, size_t extent, MPI_Datatype *handle)
{
    CT_TRY(MPI_Type_create_resized(plain, 0, (MPI_Aint)extent, handle));
    return MPI_Type_free(&plain);
}

static int ct__make_resized(int ints, size_t extent, MPI_Datatype *handle)
{
    MPI_Datatype plain;
    CT_TRY(MPI_Type_contiguous(ints, MPI_INT, &plain));
    return ct__resize(plain, extent, handle);
}

static int ct__make_struct(const struct ct_type *type, MPI_Datatype *handle)
{
    int lengths[3];
    MPI_Aint offsets[3];
    MPI_Datatype members[3], plain;
    for (int i = 0; i < type->pieces; i++) {
        lengths[i] = 1;
        offsets[i] = (MPI_Aint)type->piece[i].offset;
        members[i] = type->piece[i].number == CT_NUMBER_DOUBLE ? MPI_DOUBLE
                     : type->piece[i].number == CT_NUMBER_INT  ? MPI_INT
                                                               : MPI_BYTE;
    }
    CT_TRY(MPI_Type_create_struct(type->pieces, lengths, offsets, members, &plain));
    return ct__resize(plain, type->extent, handle);
}

static int ct__make_handle(enum ct_type_name name, MPI_Datatype *handle)
{
    switch (name) {
    case CT_TYPE_CONTIGUOUS:
        return MPI_Type_contiguous(3, MPI_INT, handle);
    case CT_TYPE_PAIR:
        return MPI_Type_contiguous(2, MPI_INT, handle);
    case CT_TYPE_VECTOR:
    case CT_TYPE_PAIR_VECTOR:
        return MPI_Type_vector(2, 1, 2, MPI_INT, handle);
    case CT_TYPE_GAPPED:
        return ct__make_resized(1, ct__types[name].extent, handle);
    case CT_TYPE_MIXED:
    case CT_TYPE_PAIR_GAPPED:
        return ct__make_resized(2, ct__types[name].extent, handle);
    default:
        return ct__make_struct(&ct__types[name], handle);
    }
}

int ct_types_make(void)
{
    for (int name = CT_TYPE_CONTIGUOUS; name < CT_TYPE_COUNT; name++) { /* those before are MPI's own */
        CT_TRY(ct__make_handle((enum ct_type_name)name, &ct__types[name].handle));
        CT_TRY(MPI_Type_commit(&ct__types[name].handle));
    }
    return MPI_SUCCESS;
}

void ct_types_free(void)
{
    for (int name = CT_TYPE_CONTIGUOUS; name < CT_TYPE_COUNT; name++)
        if (ct__types[name].handle != MPI_DATATYPE_NULL)
            MPI_Type_free(&ct__types[name].handle);
}

const struct ct_type *ct_type_get(enum ct_type_name name) { return &ct__types[name]; }

const struct ct_type *ct_type_find_reducible(size_t extent)
{
    for (int name = CT_TYPE_PAIR; name < CT_TYPE_COUNT; name++)
        if (ct__types[name].extent == extent)
            return &ct__types[name];
    return extent == ct__types[CT_TYPE_INT].extent ? &ct__types[CT_TYPE_INT] : NULL;
}

bool ct_type_holds(const struct ct_type *type, size_t offset)
{
    for (int i = 0; i < type->pieces; i++)
        if (offset >= type->piece[i].offset && offset < type->piece[i].offset + type->piece[i].bytes)
            return true;
    return false;
}

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
    CT_TRY(MPI_Op_create(ct__user_commutative, 1, &ct__handles[CT_OP_USER_COMMUTATIVE]));
    return MPI_Op_create(ct__user_ordered, 0, &ct__handles[CT_OP_USER_ORDERED]);
}

void ct_ops_free(void)
{
    for (int op = CT_OP_USER_COMMUTATIVE; op < CT_OP_COUNT; op++)
        if (ct__handles[op] != MPI_OP_NULL)
            MPI_Op_free(&ct__handles[op]);
}

MPI_Op ct_op_handle(enum ct_op op) { return ct__handles[op]; }

const char *ct_op_name(enum ct_op op)
{
    static const char *const names[CT_OP_COUNT] = {"sum", "max", "user_commutative", "user_ordered"};
    return names[op];
}
