/* Teams: the private communicator, the map of nodes, and buffers for messages, kept from call to call: registration and page faults
 * are paid once. */
#include "team.h"

#include <stdlib.h>

int ct_team_make(MPI_Comm comm, ct_team_nodes *leaders, const void *of, ct_team **made)
{
    *made = NULL;
    int rank, size;
    CT_TRY(PMPI_Comm_rank(comm, &rank));
    CT_TRY(PMPI_Comm_size(comm, &size));
    ct_team *team = calloc(1, sizeof *team);
    if (team != NULL)
        *team = (ct_team){.comm = comm, .rank = rank, .size = size};
    bool have = team != NULL && ct_nodes_make(&team->nodes, size);
    int code = ct_all(comm, have) ? leaders(of, comm, team->nodes.node_of) : MPI_ERR_NO_MEM; /* on all ranks alike */
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

static ct_chunk *ct__chunk_make(size_t bytes)
{
    size_t capacity = 4096;
    while (capacity < bytes)
        capacity *= 2;
    ct_chunk *chunk = malloc(sizeof *chunk + capacity);
    if (chunk != NULL)
        chunk->capacity = capacity;
    return chunk;
}

ct_chunk *ct_pool_take(ct_pool *pool, size_t bytes)
{
    int best = -1;
    for (int i = 0; i < pool->idle_count; i++)
        if (pool->idle[i]->capacity >= bytes && (best < 0 || pool->idle[i]->capacity < pool->idle[best]->capacity))
            best = i;
    ct_chunk *chunk = best < 0 ? ct__chunk_make(bytes) : pool->idle[best];
    if (best >= 0) {
        pool->idle[best] = pool->idle[--pool->idle_count];
        pool->idle_bytes -= chunk->capacity;
    }
    if (chunk != NULL)
        chunk->live = 0;
    return chunk;
}

void ct_pool_give(ct_pool *pool, ct_chunk *chunk)
{
    if (pool->idle_count == CT_POOL_MOST || pool->idle_bytes + chunk->capacity > CT_TEAM_MEMORY) {
        free(chunk);
        return;
    }
    pool->idle[pool->idle_count++] = chunk;
    pool->idle_bytes += chunk->capacity;
}

void ct_pool_empty(ct_pool *pool)
{
    while (pool->idle_count > 0)
        free(pool->idle[--pool->idle_count]);
    pool->idle_bytes = 0;
}
