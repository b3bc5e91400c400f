/* MPI_Allreduce by recursive doubling, as MPI libraries reduce a few bytes: the ranks beyond a power of two first give theirs to others. */
#include "cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CT__MOST_BYTES = 64, CT__TAG = 1 }; /* what every message carries; of the algorithms no tag is so low */

#define CT__JOIN(type)                                                                                                                   \
    for (int i = 0; i < count; i++) {                                                                                                    \
        type a = ((type *)into)[i], b = ((const type *)other)[i];                                                                        \
        ((type *)into)[i] = op == MPI_SUM ? (type)(a + b) : (op == MPI_MAX) == (a > b) ? a : b;                                          \
    }

static void ct__join(void *into, const void *other, int count, MPI_Datatype type, MPI_Op op)
{
    if (type == MPI_INT) {
        CT__JOIN(int)
    } else if (type == MPI_UINT32_T) {
        CT__JOIN(uint32_t)
    } else if (type == MPI_INT64_T) {
        CT__JOIN(int64_t)
    } else if (type == MPI_UINT64_T) {
        CT__JOIN(uint64_t)
    } else if (type == MPI_DOUBLE) {
        CT__JOIN(double)
    } else {
        fprintf(stderr, "sweep: no reduction of bytes\n");
        exit(1);
    }
}

int PMPI_Allreduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int me = ct_cluster_me(), ranks = ct_cluster_ranks(), power = 1;
    size_t bytes = (size_t)count * ct_type_bytes(type);
    double other[CT__MOST_BYTES / sizeof(double)];
    if (bytes > CT__MOST_BYTES)
        return MPI_ERR_ARG;
    memcpy(all, mine, bytes);
    while (2 * power <= ranks)
        power *= 2;
    if (me >= power) {
        MPI_Request request;
        PMPI_Isend(all, count, type, me - power, CT__TAG, comm, &request);
        PMPI_Wait(&request, MPI_STATUS_IGNORE);
        return PMPI_Recv(all, count, type, me - power, CT__TAG, comm, MPI_STATUS_IGNORE);
    }
    if (me + power < ranks) {
        PMPI_Recv(other, count, type, me + power, CT__TAG, comm, MPI_STATUS_IGNORE);
        ct__join(all, other, count, type, op);
    }
    for (int distance = 1; distance < power; distance *= 2) {
        MPI_Request requests[2];
        PMPI_Irecv(other, count, type, me ^ distance, CT__TAG, comm, &requests[0]);
        PMPI_Isend(all, count, type, me ^ distance, CT__TAG, comm, &requests[1]);
        PMPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        ct__join(all, other, count, type, op);
    }
    if (me + power < ranks) {
        MPI_Request request;
        PMPI_Isend(all, count, type, me + power, CT__TAG, comm, &request);
        PMPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return MPI_SUCCESS;
}
