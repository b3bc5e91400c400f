/* The algorithms, a file each. All exchange every block but the rank's own, which the caller copies. */
#pragma once

#include "team.h"

/* Messages of one algorithm carry one tag: on the private communicator two ranks never have two of them mixed up.
 * Direct messages have one for each call, up to the last tag that every MPI
 * has: a receive for one that does not come must not meet that of a later call before it is cancelled. */
enum { CT_TAG_LINEAR = 11, CT_TAG_STEP, CT_TAG_NODE, CT_TAG_DIRECT = 1 << 14, CT_TAG_LAST = 32767 };
static inline int ct_tag_direct(const ct_team *team)
{
    return CT_TAG_DIRECT + (int)(team->calls % (CT_TAG_LAST - CT_TAG_DIRECT + 1));
}

int ct_linear(ct_team *team, const ct_exchange *x, int batch);
/* These also leave in `statistic`, this rank's on entry, the maximum over all ranks. */
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
    MPI_Request *requests; /* what comes, then what goes */
    int *sources;          /* of what comes */
    int received, count;
} ct_direct;
int ct_direct_begin(ct_team *team, const ct_exchange *x, int64_t above, ct_direct *direct);
/* A receiver may have room for more than it is sent, so its sender's word counts, which is told with the forwarded blocks:
 * the block from `source` comes straight, or it does not. */
int ct_direct_comes(ct_team *team, const ct_exchange *x, ct_direct *direct, int source);
int ct_direct_does_not_come(ct_direct *direct, int source);
int ct_direct_end(ct_direct *direct);
