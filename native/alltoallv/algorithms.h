/* The algorithms, a file each. All exchange every block but the rank's own, which the caller copies. */
#ifndef CT_ALGORITHMS_H
#define CT_ALGORITHMS_H

#include "team.h"

/* Messages of one algorithm carry one tag: on the private communicator two ranks never have two of them mixed up. */
enum { CT_TAG_LINEAR = 11, CT_TAG_PAIRWISE, CT_TAG_STEP, CT_TAG_SIZES, CT_TAG_DIRECT, CT_TAG_NODE };

int ct_linear(ct_team *team, const ct_exchange *x, int batch);
int ct_pairwise(ct_team *team, const ct_exchange *x);
/* These also leave in `statistic`, this rank's on entry, the maximum over all ranks. */
int ct_bruck(ct_team *team, const ct_exchange *x, const ct_alltoallv_choice *choice, ct_statistic *statistic);
int ct_parata(ct_team *team, const ct_exchange *x, const ct_alltoallv_choice *choice, ct_statistic *statistic);
int ct_hieata(ct_team *team, const ct_exchange *x, const ct_alltoallv_choice *choice, ct_statistic *statistic);

/* The choice that is really run for these many ranks: radix within its range, one that moves nothing twice as linear. */
ct_alltoallv_choice ct_choice_normal(const ct_alltoallv_choice *choice, int size);
/* Whether the algorithm leaves the maximum of the statistic on all ranks. */
bool ct_choice_agrees(const ct_alltoallv_choice *normal);
/* Runs anything but the library's own. */
int ct_run(ct_team *team, const ct_exchange *x, const ct_alltoallv_choice *normal, ct_statistic *statistic);

/* Blocks larger than `above` bytes straight between user buffers; the requests are completed by ct_direct_end. */
typedef struct {
    MPI_Request *requests;
    int count;
} ct_direct;
int ct_direct_begin(ct_team *team, const ct_exchange *x, int64_t above, ct_direct *direct);
int ct_direct_end(ct_direct *direct);

#endif
