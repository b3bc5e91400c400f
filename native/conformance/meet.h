/* Keeps the ranks together by point-to-point messages only, so that what is under test cannot upset it. */
#pragma once

#include <stdbool.h>

#include "report.h"

/* Ranks 0 to ranks - 1 of MPI_COMM_WORLD call these. No rank leaves release before rank 0 has entered it, and each
 * leaves with rank 0's `word`. patient: wait with naps of a millisecond, so that a rank with no part in a test
 * disturbs nobody. */
void ct_meet_release(int rank, int ranks, bool patient, long *word);

/* Rank 0 gets the verdict of the lowest rank that failed, or that all is well. */
void ct_meet_collect(int rank, int ranks, struct ct_verdict *verdict);
