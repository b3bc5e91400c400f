/* Two-phase Bruck: radix 2, and in each step a message of sizes before the message of blocks. */
#include "parata.h"

int ct_bruck(ct_team *team, const ct_exchange *x, const ct_alltoallv_choice *choice, ct_statistic *statistic)
{
    ct_alltoallv_choice two = {.algorithm = choice->algorithm, .radix = 2, .batch = 1, .direct_above = choice->direct_above};
    return ct_parata_flat(team, x, &two, true, statistic);
}
