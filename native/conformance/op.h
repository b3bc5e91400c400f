/* Reduction operations, as MPI operations and as plain arithmetic for the reference. */
#pragma once

#include <mpi.h>

#include "type.h"

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
