/* The collectives by their numbers, and a call of any of them by its arguments. */
#pragma once

#include "collectives.h"

#include <mpi.h>
#include <stddef.h>

typedef enum {
    CT_BARRIER,
#define CT__NUMBER(X, NAME, LOWER, UPPER, SIGNATURE) CT_##UPPER,
    CT_COLLECTIVES(CT__NUMBER, )
#undef CT__NUMBER
    CT_FUNCTIONS
} ct_function;

/* One that a function has not is not looked at. */
typedef struct {
    const void *send;
    void *recv; /* of bcast: the buffer */
    int send_count, recv_count, root;
    const int *send_counts, *send_displs, *recv_counts, *recv_displs;
    MPI_Datatype send_type, recv_type;
    MPI_Op op;
} ct_arguments;

/* `request` NULL: the blocking form. Returns an MPI error code. */
static inline int ct_function_call(ct_function function, const ct_arguments *a, MPI_Comm comm, MPI_Request *request)
{
    const void *send = a->send, *send_counts = a->send_counts, *send_displs = a->send_displs, *recv_counts = a->recv_counts,
               *recv_displs = a->recv_displs;
    void *recv = a->recv, *buffer = a->recv;
    int send_count = a->send_count, recv_count = a->recv_count, count = a->recv_count, root = a->root;
    MPI_Datatype send_type = a->send_type, recv_type = a->recv_type, type = a->recv_type;
    const MPI_Datatype *send_types = NULL, *recv_types = NULL;
    MPI_Op op = a->op;
    switch (function) {
    case CT_BARRIER:
        return request == NULL ? MPI_Barrier(comm) : MPI_Ibarrier(comm, request);
#define CT__CALL(X, NAME, LOWER, UPPER, SIGNATURE)                                                                     \
    case CT_##UPPER:                                                                                                   \
        return request == NULL ? MPI_##NAME CT_ARGUMENTS(SIGNATURE, BLOCKING)                                          \
                               : MPI_I##LOWER CT_ARGUMENTS(SIGNATURE, NONBLOCKING);
        CT_COLLECTIVES(CT__CALL, )
#undef CT__CALL
    default:
        return MPI_ERR_OTHER;
    }
}
