/* What a tuning is worth in this program: an experiment by the live selector while the program works.
 *
 * The selector asks it about each call that meets a rule; what the calls took is added up by block, sums go to the first
 * rank of the communicator at the end of each round, and each such rank writes at once what it has heard: a program that is
 * killed leaves all that was measured by then. */
#pragma once

#include "shim.h"

/* Whether this call, which a rule would have run by `choice`, is to run by default. `size`: in bytes, as the rules
 * count. `candidate`: the choice is not proven. The same on all ranks; to be asked once for a call, right before it. Where
 * nothing is measured proven choices run, and candidates do not. */
bool ct_measure_by_default(ct_call *call, int choice, MPI_Count size, bool candidate);
/* What trying a candidate may cost, as a part of the time in its calls; 0: none is tried. The same on all ranks. */
double ct_measure_risk(void);
