#include "nodes.h"
#include "codes.h"

#include <stdlib.h>
#include <string.h>

bool ct_nodes_make(ct_nodes *nodes, int size)
{
    *nodes = (ct_nodes){.node_of = calloc((size_t)size, sizeof(int)),
                        .local_of = calloc((size_t)size, sizeof(int)),
                        .first = calloc((size_t)size + 1, sizeof(int)),
                        .member = calloc((size_t)size, sizeof(int))};
    return nodes->node_of && nodes->local_of && nodes->first && nodes->member;
}

void ct_nodes_number(ct_nodes *nodes, int size)
{
    nodes->count = nodes->widest = 0;
    memset(nodes->first, 0, sizeof(int) * ((size_t)size + 1));
    for (int rank = 0; rank < size; rank++) { /* a node's first rank has its number when the others ask for it */
        int leader = nodes->node_of[rank];
        int node = leader == rank ? nodes->count++ : nodes->node_of[leader];
        nodes->node_of[rank] = node;
        nodes->local_of[rank] = nodes->first[node + 1]++;
        if (nodes->first[node + 1] > nodes->widest)
            nodes->widest = nodes->first[node + 1];
    }
    for (int node = 0; node < nodes->count; node++)
        nodes->first[node + 1] += nodes->first[node];
    for (int rank = 0; rank < size; rank++)
        nodes->member[nodes->first[nodes->node_of[rank]] + nodes->local_of[rank]] = rank;
}

#ifndef CT_SIMULATED /* there nodes are given */
int ct_nodes_leaders(MPI_Comm comm, int *leaders)
{
    MPI_Comm node;
    const char *every = getenv("COLLTUNE_ALLTOALLV_NODE");
    int rank, pretended = every == NULL ? 0 : atoi(every);
    CT_TRY(PMPI_Comm_rank(comm, &rank));
    int leader = pretended > 0 ? rank - rank % pretended : rank;
    if (pretended <= 0) {
        CT_TRY(PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node));
        int code = PMPI_Bcast(&leader, 1, MPI_INT, 0, node);
        PMPI_Comm_free(&node);
        CT_TRY(code);
    }
    return PMPI_Allgather(&leader, 1, MPI_INT, leaders, 1, MPI_INT, comm);
}

int ct_nodes_find(MPI_Comm comm, ct_nodes *nodes)
{
    int size, code = PMPI_Comm_size(comm, &size);
    if (code == MPI_SUCCESS && !ct_nodes_make(nodes, size))
        code = MPI_ERR_NO_MEM;
    if (code == MPI_SUCCESS)
        code = ct_nodes_leaders(comm, nodes->node_of);
    if (code == MPI_SUCCESS)
        ct_nodes_number(nodes, size);
    else
        ct_nodes_free(nodes);
    return code;
}
#endif

void ct_nodes_free(ct_nodes *nodes)
{
    free(nodes->node_of);
    free(nodes->local_of);
    free(nodes->first);
    free(nodes->member);
    *nodes = (ct_nodes){0};
}
