/* Pairwise: one exchange after the other, with rank XOR step where the number of ranks is a power of two. */
#include "algorithms.h"

static int ct__step(ct_team *team, const ct_exchange *x, int to, int from)
{
    MPI_Request requests[2];
    int count = 0;
    if (ct_side_bytes(&x->receive, from) > 0)
        CT_TRY(ct_block_receive(&x->receive, from, from, CT_TAG_PAIRWISE, team->comm, &requests[count++]));
    if (ct_side_bytes(&x->send, to) > 0)
        CT_TRY(ct_block_send(&x->send, to, to, CT_TAG_PAIRWISE, team->comm, &requests[count++]));
    return count == 0 ? MPI_SUCCESS : ct_wait_all(count, requests, NULL);
}

int ct_pairwise(ct_team *team, const ct_exchange *x)
{
    int size = team->size, rank = team->rank;
    int failed = MPI_SUCCESS; /* of a block that is longer than its room: the others go on */
    bool power_of_two = (size & (size - 1)) == 0;
    for (int step = 1; step < size; step++) {
        if (power_of_two)
            ct_keep_first(&failed, ct__step(team, x, rank ^ step, rank ^ step));
        else
            ct_keep_first(&failed, ct__step(team, x, (rank + step) % size, (rank - step + size) % size));
    }
    return failed;
}
