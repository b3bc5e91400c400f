/* ParAta: Bruck with any radix from 2 to the number of ranks, for blocks of any size.
 *
 * Radix 2 needs the fewest messages and moves most bytes; the larger the radix, the more messages and the fewer bytes. */
#include "steps_message.h"

#include <stdlib.h>

int ct_parata(ct_team *team, const ct_exchange *x, const ct_alltoallv_choice *choice, ct_statistic *statistic)
{
    int64_t most = ct_team_forwarded_most(team, choice);
    ct_steps steps = {.team = team, .x = x, .me = team->rank, .size = team->size, .radix = choice->radix,
                      .window = choice->batch, .forwarded_most = most, .statistic = statistic,
                      .slots = calloc((size_t)team->size, sizeof(ct_parcel))};
    if (steps.slots == NULL)
        return MPI_ERR_NO_MEM;
    ct_direct direct;
    steps.direct = &direct;
    int code = ct_direct_begin(team, x, most, &direct);
    if (code == MPI_SUCCESS)
        code = ct_steps_run(&steps);
    if (code == MPI_SUCCESS)
        code = ct_direct_end(&direct);
    free(steps.slots);
    return code == MPI_SUCCESS ? steps.failed : code;
}
