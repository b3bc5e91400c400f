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

/* Calls of one rule and one class of sizes on communicators of one shape; by tuned and default: [0] and [1]. */
typedef struct {
    int function, choice, bin, size, nodes, ppn;
    uint64_t calls[2];
    uint64_t least, most; /* bytes */
    uint64_t cells, off;  /* communicators; those on which the rule was switched off */
    uint64_t agree_ns;
} ct_measure_record;

/* A pair of blocks of `calls` timed calls each. Means over the ranks, in ns for all calls of the block together. */
typedef struct {
    int record;
    uint32_t calls;
    uint64_t call_ns[2]; /* in the calls */
    uint64_t wall_ns[2]; /* of the whole blocks: all that lies between the calls, until all ranks are done */
    bool default_first;
} ct_measure_pair;

/* The number of the record of these; a new one if need be. -1: no memory. */
int ct_measure_record_of(const ct_measure_record *like);
ct_measure_record *ct_measure_record_at(int number);
/* Into <path>.<job>.<rank>, by the first rank at once, by others when they have anything. */
void ct_measure_open(const char *path, uint64_t job, unsigned percent);
/* Appends the pair, and its record as it is now. */
void ct_measure_keep(const ct_measure_pair *pair);
/* Appends all records as they are at the end. */
void ct_measure_close(void);
