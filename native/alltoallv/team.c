/* Teams: the private communicator and the map of nodes. */
#include "team.h"

#include <stdlib.h>

/* Whether every rank has what it needs; asked together, so that all go on or none. */
static int ct__all_have(MPI_Comm comm, bool have, bool *all)
{
    int mine = have, least = 0;
    CT_TRY(PMPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, comm));
    *all = least != 0;
    return MPI_SUCCESS;
}

int ct_team_make(MPI_Comm comm, ct_team_nodes *leaders, const void *of, ct_team **made)
{
    *made = NULL;
    int rank, size;
    CT_TRY(PMPI_Comm_rank(comm, &rank));
    CT_TRY(PMPI_Comm_size(comm, &size));
    ct_team *team = calloc(1, sizeof *team);
    if (team != NULL)
        *team = (ct_team){.comm = comm, .rank = rank, .size = size};
    bool have = team != NULL && ct_nodes_make(&team->nodes, size), all = false;
    int code = ct__all_have(comm, have, &all);
    if (code == MPI_SUCCESS)
        code = all ? leaders(of, comm, team->nodes.node_of) : MPI_ERR_NO_MEM;
    if (code != MPI_SUCCESS) {
        ct_team_free(team);
        return code;
    }
    ct_nodes_number(&team->nodes, size);
    team->node = team->nodes.node_of[rank];
    *made = team;
    return MPI_SUCCESS;
}

void ct_team_free(ct_team *team)
{
    if (team == NULL)
        return;
    ct_hieata_plan_free(team->plan);
    ct_pool_empty(&team->pool);
    ct_nodes_free(&team->nodes);
    free(team);
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
