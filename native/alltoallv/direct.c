/* Large blocks, beside an algorithm that forwards the small ones. */
#include "algorithms.h"

#include <stdlib.h>

static int ct__count(const ct_team *team, const ct_side *side, int64_t above)
{
    int count = 0;
    for (int peer = 0; peer < team->size; peer++)
        count += peer != team->rank && ct_side_bytes(side, peer) > above;
    return count;
}

int ct_direct_begin(ct_team *team, const ct_exchange *x, int64_t above, ct_direct *direct)
{
    *direct = (ct_direct){0};
    int receives = ct__count(team, &x->receive, above), most = receives + ct__count(team, &x->send, above);
    if (most == 0)
        return MPI_SUCCESS;
    direct->requests = malloc(sizeof(MPI_Request) * (size_t)most);
    direct->sources = malloc(sizeof(int) * ((size_t)receives + 1));
    if (direct->requests == NULL || direct->sources == NULL)
        return MPI_ERR_NO_MEM;
    for (int offset = 1; offset < team->size; offset++) {
        int from = (team->rank - offset + team->size) % team->size;
        if (ct_side_bytes(&x->receive, from) <= above)
            continue;
        direct->sources[direct->received++] = from;
        CT_TRY(ct_block_receive(&x->receive, from, from, ct_tag_direct(team), team->comm, &direct->requests[direct->count++]));
    }
    for (int offset = 1; offset < team->size; offset++) {
        int to = (team->rank + offset) % team->size;
        if (ct_side_bytes(&x->send, to) > above)
            CT_TRY(ct_block_send(&x->send, to, to, ct_tag_direct(team), team->comm, &direct->requests[direct->count++]));
    }
    return MPI_SUCCESS;
}

static MPI_Request *ct__from(ct_direct *direct, int source)
{
    for (int i = 0; i < direct->received; i++)
        if (direct->sources[i] == source)
            return &direct->requests[i];
    return NULL;
}

int ct_direct_comes(ct_team *team, const ct_exchange *x, ct_direct *direct, int source)
{
    if (ct__from(direct, source) != NULL)
        return MPI_SUCCESS;
    MPI_Request request; /* longer than its room, or it would be forwarded; taken so that its sender gets on */
    CT_TRY(ct_block_receive(&x->receive, source, source, ct_tag_direct(team), team->comm, &request));
    return PMPI_Wait(&request, MPI_STATUS_IGNORE);
}

int ct_direct_does_not_come(ct_direct *direct, int source)
{
    MPI_Request *request = ct__from(direct, source);
    if (request == NULL)
        return MPI_SUCCESS;
#ifndef CT_SIMULATED /* there both ends agree */
    CT_TRY(PMPI_Cancel(request));
#endif
    return PMPI_Wait(request, MPI_STATUS_IGNORE);
}

int ct_direct_end(ct_direct *direct)
{
    int code = ct_wait_all(direct->count, direct->requests);
    free(direct->requests);
    free(direct->sources);
    *direct = (ct_direct){0};
    return code;
}
