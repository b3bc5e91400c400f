/* Large blocks, beside an algorithm that forwards the small ones. Both ends know a block's bytes, so neither asks. */
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
    int most = ct__count(team, &x->send, above) + ct__count(team, &x->receive, above);
    if (most == 0)
        return MPI_SUCCESS;
    direct->requests = malloc(sizeof(MPI_Request) * (size_t)most);
    if (direct->requests == NULL)
        return MPI_ERR_NO_MEM;
    for (int offset = 1; offset < team->size; offset++) {
        int from = (team->rank - offset + team->size) % team->size;
        if (ct_side_bytes(&x->receive, from) > above)
            CT_TRY(ct_block_receive(&x->receive, from, from, CT_TAG_DIRECT, team->comm, &direct->requests[direct->count++]));
    }
    for (int offset = 1; offset < team->size; offset++) {
        int to = (team->rank + offset) % team->size;
        if (ct_side_bytes(&x->send, to) > above)
            CT_TRY(ct_block_send(&x->send, to, to, CT_TAG_DIRECT, team->comm, &direct->requests[direct->count++]));
    }
    return MPI_SUCCESS;
}

int ct_direct_end(ct_direct *direct)
{
    int code = direct->count == 0 ? MPI_SUCCESS : PMPI_Waitall(direct->count, direct->requests, MPI_STATUSES_IGNORE);
    free(direct->requests);
    *direct = (ct_direct){0};
    return code;
}
