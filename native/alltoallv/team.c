/* Teams: the private communicator and the map of nodes. */
#include "team.h"
#include "hieata.h"

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
static int ct__leaders(const ct_team *team, int every, uint64_t *names, int *leaders)
{
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
        int node = 0; /* first[]: leaders so far, until it is made the list of members */
        while (node < nodes && names[team->first[node]] != names[rank])
            node++;
        if (node == nodes)
            team->first[nodes++] = rank;
        leaders[rank] = team->first[node];
    }
    memset(team->first, 0, sizeof *team->first * (size_t)nodes);
    return MPI_SUCCESS;
}

/* Numbers nodes by their leaders; `leaders` becomes node_of. */
static void ct__number_nodes(ct_team *team)
{
    for (int rank = 0; rank < team->size; rank++) {
        int leader = team->node_of[rank];
        team->node_of[rank] = leader == rank ? team->node_count++ : team->node_of[leader];
    }
    team->node = team->node_of[team->rank];
}

static void ct__list_members(ct_team *team)
{
    for (int rank = 0; rank < team->size; rank++)
        team->first[team->node_of[rank] + 1]++;
    for (int node = 0; node < team->node_count; node++) {
        if (team->first[node + 1] > team->widest)
            team->widest = team->first[node + 1];
        team->first[node + 1] += team->first[node];
    }
    for (int rank = 0; rank < team->size; rank++) { /* ascending ranks: the index on a node is the number seen before */
        int node = team->node_of[rank];
        int index = team->local_of[node]; /* not yet overwritten: node <= rank, and see below */
        team->member[team->first[node] + index] = rank;
        team->local_of[node]++;
    }
    for (int node = 0; node < team->node_count; node++)
        for (int i = team->first[node]; i < team->first[node + 1]; i++)
            team->local_of[team->member[i]] = i - team->first[node];
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
    CT_TRY(ct__leaders(team, every, names, team->node_of));
    ct__number_nodes(team);
    ct__list_members(team);
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
    if (team != NULL) {
        *team = (ct_team){.comm = comm, .rank = rank, .size = size};
        team->node_of = calloc((size_t)size, sizeof(int));
        team->local_of = calloc((size_t)size, sizeof(int));
        team->first = calloc((size_t)size + 1, sizeof(int));
        team->member = calloc((size_t)size, sizeof(int));
    }
    bool have = team != NULL && names && team->node_of && team->local_of && team->first && team->member, all = false;
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
    ct_hieata_forget(team);
    ct_pool_empty(&team->pool);
    free(team->node_of);
    free(team->local_of);
    free(team->first);
    free(team->member);
    free(team);
    return code;
}

/* A rank holds at most the blocks of one whole exchange three times: in transit, coming in and going out. */
int64_t ct_team_forwarded_most(const ct_team *team, const ct_alltoallv_choice *choice)
{
    int64_t blocks = (int64_t)team->node_count * team->widest;
    if (blocks < team->size)
        blocks = team->size;
    int64_t most = CT_TEAM_MEMORY / (3 * blocks);
    int64_t asked = choice->direct_above > 0 ? choice->direct_above : CT_ALLTOALLV_DIRECT_ABOVE;
    if (most >= UINT16_MAX) /* sizes travel as 16-bit numbers, and the largest says something else */
        most = UINT16_MAX - 1;
    return asked < most ? asked : most;
}
