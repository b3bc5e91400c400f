/* Teams: the private communicator and the map of nodes. */
#include "team.h"

#include <stdlib.h>

static uint64_t ct__hash(const char *name, int length)
{
    uint64_t hash = 0xcbf29ce484222325ULL; /* FNV-1a */
    for (int i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3ULL;
    return hash;
}

/* The first rank of each rank's node, by the nodes' names, or pretended. A communicator of the node's ranks would tell as well,
 * but takes ten times as long. `names`: room for a number of each rank. */
static int ct__leaders(const ct_team *team, int every, uint64_t *names)
{
    int *leaders = team->nodes.node_of, *found = team->nodes.first; /* found: room for the leaders so far */
    if (every > 0) {
        for (int rank = 0; rank < team->size; rank++)
            leaders[rank] = rank - rank % every;
        return MPI_SUCCESS;
    }
    char name[MPI_MAX_PROCESSOR_NAME];
    int length, nodes = 0;
    CT_TRY(PMPI_Get_processor_name(name, &length));
    uint64_t mine = ct__hash(name, length);
    CT_TRY(PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, names, sizeof mine, MPI_BYTE, team->comm));
    for (int rank = 0; rank < team->size; rank++) {
        int node = 0;
        while (node < nodes && names[found[node]] != names[rank])
            node++;
        if (node == nodes)
            found[nodes++] = rank;
        leaders[rank] = found[node];
    }
    return MPI_SUCCESS;
}

/* Whether every rank has what it needs; asked together, so that all go on or none. */
static int ct__all_have(MPI_Comm comm, bool have, bool *all)
{
    int mine = have, least = 0;
    CT_TRY(PMPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, comm));
    *all = least != 0;
    return MPI_SUCCESS;
}

static int ct__team_fill(ct_team *team, int every, uint64_t *names)
{
    CT_TRY(ct__leaders(team, every, names));
    ct_nodes_number(&team->nodes, team->size);
    team->node = team->nodes.node_of[team->rank];
    return MPI_SUCCESS;
}

int ct_team_adopt(MPI_Comm comm, int every, ct_team **made)
{
    *made = NULL;
    int rank, size;
    CT_TRY(PMPI_Comm_rank(comm, &rank));
    CT_TRY(PMPI_Comm_size(comm, &size));
    ct_team *team = calloc(1, sizeof *team);
    uint64_t *names = calloc((size_t)size, sizeof *names);
    if (team != NULL)
        *team = (ct_team){.comm = comm, .rank = rank, .size = size};
    bool have = team != NULL && ct_nodes_make(&team->nodes, size) && names != NULL, all = false;
    int code = ct__all_have(comm, have, &all);
    if (code == MPI_SUCCESS)
        code = all ? ct__team_fill(team, every, names) : MPI_ERR_NO_MEM;
    free(names);
    if (code != MPI_SUCCESS) {
        if (team != NULL) {
            team->comm = MPI_COMM_NULL;
            ct_team_free(team);
        }
        return code;
    }
    *made = team;
    return MPI_SUCCESS;
}

int ct_team_free(ct_team *team)
{
    int code = team->comm == MPI_COMM_NULL ? MPI_SUCCESS : PMPI_Comm_free(&team->comm);
    ct_hieata_plan_free(team->plan);
    ct_pool_empty(&team->pool);
    ct_nodes_free(&team->nodes);
    free(team);
    return code;
}

/* A rank holds at most the blocks of one whole exchange three times: in transit, coming in and going out. */
int64_t ct_team_forwarded_most(const ct_team *team, const ct_alltoallv_choice *choice)
{
    int64_t blocks = (int64_t)team->nodes.count * team->nodes.widest;
    if (blocks < team->size)
        blocks = team->size;
    int64_t most = CT_TEAM_MEMORY / (3 * blocks);
    int64_t asked = choice->direct_above > 0 ? choice->direct_above : CT_ALLTOALLV_DIRECT_ABOVE;
    if (most >= UINT16_MAX) /* sizes travel as 16-bit numbers, and the largest says something else */
        most = UINT16_MAX - 1;
    return asked < most ? asked : most;
}
