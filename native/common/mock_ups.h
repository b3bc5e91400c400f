/* Collectives made of others of the same library, in place of its own algorithms.
 *
 * Both libraries can be told by a variable which algorithm a collective takes; "COLLTUNE_GATHER_MOCK_UP" is such a variable
 * of ours. Its value 1 makes MPI_Gather of MPI_Gatherv, and that of "COLLTUNE_SCATTER_MOCK_UP" MPI_Scatter of MPI_Scatterv:
 * the root exchanges a message with each rank, where MPICH knows a binomial tree alone. Buffers, types (with gaps as well)
 * and MPI_IN_PLACE mean the same to both, and nothing is copied. */
#pragma once

#include <mpi.h>
#include <stdbool.h>

typedef enum {
    CT_MOCK_UP_GATHER, CT_MOCK_UP_SCATTER, CT_MOCK_UPS,
    /* Likewise how the agent exchanges blocks (native/alltoallv_measure): the members of ct_alltoallv_choice. */
    CT_ALLTOALLV_ALGORITHM = CT_MOCK_UPS, CT_ALLTOALLV_RADIX, CT_ALLTOALLV_BATCH, CT_ALLTOALLV_DIRECT, CT_OUR_VARIABLES
} ct_mock_up;

/* Of all blocks together, in bytes: displacements are ints, and calls beyond it take as long as their bytes. */
enum { CT_MOCK_UP_MOST = 16 << 20 };

int ct_mock_up_find(const char *name); /* of its variable; -1: there is none */
int ct_mock_up_get(ct_mock_up which);
void ct_mock_up_set(ct_mock_up which, int value); /* equal on all ranks */

/* Whether a call of `total` bytes, of all blocks together, is made by the mock-up: the same on all ranks. Blocks of no bytes
 * are the library's: their counts may be of any size. */
bool ct_mock_up_takes(ct_mock_up which, MPI_Count total);

/* The calls, on communicators of one group; the arguments mean what they do in MPI_Gather and MPI_Scatter. */
int ct_mock_up_gather(const void *send, int sent, MPI_Datatype from, void *recv, int got, MPI_Datatype to, int root,
                      MPI_Comm comm);
int ct_mock_up_scatter(const void *send, int sent, MPI_Datatype from, void *recv, int got, MPI_Datatype to, int root,
                       MPI_Comm comm);
