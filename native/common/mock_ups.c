#include "mock_ups.h"
#include "codes.h"

#include <stdlib.h>
#include <string.h>

static int ct__values[CT_OUR_VARIABLES];

int ct_mock_up_find(const char *name)
{
    static const char *const NAMES[CT_OUR_VARIABLES] = {"COLLTUNE_GATHER_MOCK_UP",      "COLLTUNE_SCATTER_MOCK_UP",
                                                        "COLLTUNE_ALLTOALLV_ALGORITHM", "COLLTUNE_ALLTOALLV_RADIX",
                                                        "COLLTUNE_ALLTOALLV_BATCH",     "COLLTUNE_ALLTOALLV_DIRECT_ABOVE"};
    for (int i = 0; i < CT_OUR_VARIABLES; i++)
        if (strcmp(name, NAMES[i]) == 0)
            return i;
    return -1;
}

int ct_mock_up_get(ct_mock_up which) { return ct__values[which]; }
void ct_mock_up_set(ct_mock_up which, int value) { ct__values[which] = value; }

bool ct_mock_up_takes(ct_mock_up which, MPI_Count total)
{
    return ct__values[which] != 0 && total > 0 && total <= CT_MOCK_UP_MOST;
}

/* The root's counts and displacements, in one piece that begins at `counts`: each block behind the one before. NULL on the
 * others, which need none. */
static int ct__lay_out(int count, int root, MPI_Comm comm, int **counts, int **places)
{
    int rank, size;
    *counts = *places = NULL;
    CT_TRY(PMPI_Comm_rank(comm, &rank));
    CT_TRY(PMPI_Comm_size(comm, &size));
    if (rank != root)
        return MPI_SUCCESS;
    *counts = malloc(sizeof **counts * 2 * (size_t)size);
    if (*counts == NULL)
        return MPI_ERR_NO_MEM;
    *places = *counts + size;
    for (int i = 0; i < size; i++)
        (*counts)[i] = count, (*places)[i] = i * count;
    return MPI_SUCCESS;
}

int ct_mock_up_gather(const void *send, int sent, MPI_Datatype from, void *recv, int got, MPI_Datatype to, int root,
                      MPI_Comm comm)
{
    int *counts, *places;
    CT_TRY(ct__lay_out(got, root, comm, &counts, &places));
    int code = PMPI_Gatherv(send, sent, from, recv, counts, places, to, root, comm);
    free(counts);
    return code;
}

int ct_mock_up_scatter(const void *send, int sent, MPI_Datatype from, void *recv, int got, MPI_Datatype to, int root,
                       MPI_Comm comm)
{
    int *counts, *places;
    CT_TRY(ct__lay_out(sent, root, comm, &counts, &places));
    int code = PMPI_Scatterv(send, counts, places, from, recv, got, to, root, comm);
    free(counts);
    return code;
}
