/* Spread-out: every block straight to its destination, at most `batch` peers in flight.
 *
 * Offset k + batch starts once offset k is done. Ranks may differ in `batch`: of all offsets that are not complete take
 * the smallest, k; the sender and the receiver of i -> i+k wait for smaller offsets only, which are complete, so both
 * have posted it, and it completes. */
#include "algorithms.h"

#include <stdlib.h>

static int ct__post(ct_team *team, const ct_exchange *x, int offset, MPI_Request pair[2])
{
    int to = (team->rank + offset) % team->size, from = (team->rank - offset + team->size) % team->size;
    pair[0] = pair[1] = MPI_REQUEST_NULL;
    if (ct_side_bytes(&x->receive, from) > 0)
        CT_TRY(ct_block_receive(&x->receive, from, from, CT_TAG_LINEAR, team->comm, &pair[0]));
    if (ct_side_bytes(&x->send, to) > 0)
        CT_TRY(ct_block_send(&x->send, to, to, CT_TAG_LINEAR, team->comm, &pair[1]));
    return MPI_SUCCESS;
}

static int ct__window(ct_team *team, const ct_exchange *x, int batch, MPI_Request *requests)
{
    int failed = MPI_SUCCESS; /* of a block that is longer than its room: the others go on */
    for (int offset = 1; offset < team->size; offset++) {
        MPI_Request *pair = &requests[2 * ((offset - 1) % batch)];
        if (offset > batch && (pair[0] != MPI_REQUEST_NULL || pair[1] != MPI_REQUEST_NULL))
            ct_keep_first(&failed, ct_wait_all(2, pair));
        CT_TRY(ct__post(team, x, offset, pair));
    }
    ct_keep_first(&failed, ct_wait_all(2 * batch, requests));
    return failed;
}

int ct_linear(ct_team *team, const ct_exchange *x, int batch)
{
    if (team->size == 1)
        return MPI_SUCCESS;
    if (batch <= 0 || batch > team->size - 1)
        batch = team->size - 1;
    MPI_Request *requests = malloc(sizeof *requests * 2 * (size_t)batch);
    int code = requests ? ct__window(team, x, batch, requests) : MPI_ERR_NO_MEM;
    free(requests);
    return code;
}
