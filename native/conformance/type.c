#include "type.h"

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

static bool ct__is_derived(int name)
{
    return name >= CT_TYPE_CONTIGUOUS;
}

/* A pair of ints, resized so that `extent` bytes lie between two elements. */
static int ct__make_resized(int ints, size_t extent, MPI_Datatype *handle)
{
    MPI_Datatype plain;
    int rc = MPI_Type_contiguous(ints, MPI_INT, &plain);
    if (rc == MPI_SUCCESS)
        rc = MPI_Type_create_resized(plain, 0, (MPI_Aint)extent, handle);
    if (rc == MPI_SUCCESS)
        rc = MPI_Type_free(&plain);
    return rc;
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
    int rc = MPI_Type_create_struct(type->pieces, lengths, offsets, members, &plain);
    if (rc == MPI_SUCCESS)
        rc = MPI_Type_create_resized(plain, 0, (MPI_Aint)type->extent, handle);
    if (rc == MPI_SUCCESS)
        rc = MPI_Type_free(&plain);
    return rc;
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
    for (int name = 0; name < CT_TYPE_COUNT; name++) {
        if (!ct__is_derived(name))
            continue;
        int rc = ct__make_handle((enum ct_type_name)name, &ct__types[name].handle);
        if (rc == MPI_SUCCESS)
            rc = MPI_Type_commit(&ct__types[name].handle);
        if (rc != MPI_SUCCESS)
            return rc;
    }
    return MPI_SUCCESS;
}

void ct_types_free(void)
{
    for (int name = 0; name < CT_TYPE_COUNT; name++)
        if (ct__is_derived(name) && ct__types[name].handle != MPI_DATATYPE_NULL)
            MPI_Type_free(&ct__types[name].handle);
}

const struct ct_type *ct_type_get(enum ct_type_name name)
{
    return &ct__types[name];
}

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
