/* Buffers for messages, kept from call to call: registration and page faults are paid once. */
#include "team.h"

#include <stdlib.h>

static ct_chunk *ct__chunk_make(size_t bytes)
{
    size_t capacity = 4096;
    while (capacity < bytes)
        capacity *= 2;
    ct_chunk *chunk = malloc(sizeof *chunk);
    if (chunk == NULL)
        return NULL;
    *chunk = (ct_chunk){.data = malloc(capacity), .capacity = capacity};
    if (chunk->data == NULL) {
        free(chunk);
        return NULL;
    }
    return chunk;
}

static void ct__chunk_free(ct_chunk *chunk)
{
    free(chunk->data);
    free(chunk);
}

ct_chunk *ct_pool_take(ct_pool *pool, size_t bytes)
{
    int best = -1;
    for (int i = 0; i < pool->idle_count; i++)
        if (pool->idle[i]->capacity >= bytes && (best < 0 || pool->idle[i]->capacity < pool->idle[best]->capacity))
            best = i;
    ct_chunk *chunk;
    if (best < 0) {
        chunk = ct__chunk_make(bytes);
        if (chunk == NULL)
            return NULL;
    } else {
        chunk = pool->idle[best];
        pool->idle[best] = pool->idle[--pool->idle_count];
        pool->idle_bytes -= chunk->capacity;
    }
    chunk->live = 0;
    pool->used_bytes += chunk->capacity;
    if (pool->used_bytes > pool->most_used_bytes)
        pool->most_used_bytes = pool->used_bytes;
    return chunk;
}

void ct_pool_give(ct_pool *pool, ct_chunk *chunk)
{
    pool->used_bytes -= chunk->capacity;
    if (pool->idle_count == CT_POOL_MOST || pool->idle_bytes + chunk->capacity > CT_TEAM_MEMORY) {
        ct__chunk_free(chunk);
        return;
    }
    pool->idle[pool->idle_count++] = chunk;
    pool->idle_bytes += chunk->capacity;
}

void ct_pool_empty(ct_pool *pool)
{
    while (pool->idle_count > 0)
        ct__chunk_free(pool->idle[--pool->idle_count]);
    pool->idle_bytes = 0;
}
