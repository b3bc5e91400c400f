/* ParAta's engine, which two-phase Bruck shares. */
#ifndef CT_PARATA_H
#define CT_PARATA_H

#include "steps.h"

int ct_parata_flat(ct_team *team, const ct_exchange *x, const ct_alltoallv_choice *choice, bool two_phase,
                   ct_statistic *statistic);

#endif
