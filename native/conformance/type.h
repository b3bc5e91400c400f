/* What is moved and reduced in the replay: datatypes, described twice, as MPI datatypes and as plain offsets for the reference; and
 * operations, as MPI operations and as plain arithmetic. */
#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

enum ct_type_name {
    CT_TYPE_BYTE,
    CT_TYPE_INT,
    CT_TYPE_FLOAT,
    CT_TYPE_DOUBLE,
    CT_TYPE_CONTIGUOUS,
    CT_TYPE_VECTOR,
    CT_TYPE_GAPPED,
    CT_TYPE_STRUCT,
    CT_TYPE_MIXED, /* gapped pairs on one side of a call, twice as many ints on the other: one type signature */
    CT_TYPE_MOVED, /* the types above are used where data is only moved */
    CT_TYPE_PAIR = CT_TYPE_MOVED,
    CT_TYPE_PAIR_VECTOR,
    CT_TYPE_PAIR_GAPPED,
    CT_TYPE_PAIR_STRUCT,
    CT_TYPE_COUNT
};

enum ct_number { CT_NUMBER_BYTES, CT_NUMBER_INT, CT_NUMBER_FLOAT, CT_NUMBER_DOUBLE };

/* Some bytes of an element that hold data; what lies between pieces is a gap and must never be written. */
struct ct_piece {
    size_t offset, bytes;
    enum ct_number number;
};

/* size: bytes of data in an element; extent: distance of two elements in a buffer. */
struct ct_type {
    const char *name;
    MPI_Datatype handle;
    size_t size, extent;
    int pieces;
    struct ct_piece piece[3];
};

/* MPI_SUCCESS, or the first error of a call that makes a datatype. */
int ct_types_make(void);
void ct_types_free(void);

const struct ct_type *ct_type_get(enum ct_type_name name);

/* The reduction type whose extent is `extent`, NULL if there is none: each has an extent of its own, because a
 * library may hand a user's operation a duplicate of the datatype it was called with. */
const struct ct_type *ct_type_find_reducible(size_t extent);

/* Does byte `offset` of an element hold data? */
bool ct_type_holds(const struct ct_type *type, size_t offset);

enum ct_op {
    CT_OP_SUM,
    CT_OP_MAX,
    CT_OP_USER_COMMUTATIVE, /* sum modulo a prime */
    CT_OP_USER_ORDERED,     /* composition of the maps x -> a x + b modulo a prime: associative, not commutative */
    CT_OP_COUNT
};

/* An element in arithmetic form. Single numbers use part[0] only. */
struct ct_value {
    long part[2];
};

/* MPI_SUCCESS, or the first error of a call that makes an operation. */
int ct_ops_make(void);
void ct_ops_free(void);

MPI_Op ct_op_handle(enum ct_op op);
const char *ct_op_name(enum ct_op op);

/* The value that a contributor has at one index of its vector; small enough that sums are exact in a float. */
struct ct_value ct_op_value(enum ct_op op, const struct ct_type *type, unsigned contributor, size_t index,
                            unsigned salt);

/* left op right, in this order. */
struct ct_value ct_op_combine(enum ct_op op, const struct ct_type *type, struct ct_value left,
                              struct ct_value right);

struct ct_value ct_value_load(const struct ct_type *type, const unsigned char *element);
void ct_value_store(const struct ct_type *type, unsigned char *element, struct ct_value value);
