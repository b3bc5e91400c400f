/* Which cases are run: the axes of each collective, crossed where they matter and taken in turn elsewhere. */
#pragma once

#include "comm.h"
#include "options.h"

/* The state of a replay; the same on all ranks that take part. number: of the last case that was numbered. */
struct ct_case_run {
    const struct ct_options *options;
    int rank, ranks;
    long number;
};

/* FULL: everything, on the communicator whose ranks count; SHORT: one of each kind; THIN: for communicators that are
 * made from one that had its turn already. */
enum ct_depth { CT_DEPTH_FULL, CT_DEPTH_SHORT, CT_DEPTH_THIN };

/* Runs every case of every selected collective on `comm`. All ranks of run->ranks call it together. */
void ct_plan_run(struct ct_case_run *run, const struct ct_case_comm *comm, enum ct_depth depth);

/* Numbers, announces, runs and reports one case; `work` makes it. Skips it if another was asked for by number and
 * `always` is false. */
void ct_run_step(struct ct_case_run *run, const char *text, bool always,
                 void (*work)(void *context, struct ct_verdict *verdict), void *context);
