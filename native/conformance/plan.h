/* The command line, and which cases are run: the axes of each collective, crossed where they matter and taken in turn elsewhere. */
#pragma once

#include <stdbool.h>

#include "comm.h"
#include "collectives.h"

#define CT_MOST_RANK_COUNTS 256
#define CT_MOST_SIZES 1024
#define CT_MOST_LEFT_OUT 64

/* A size to try besides the usual ones. total: one block times the number of ranks, where there are blocks. */
struct ct_size {
    int collective;
    bool total;
    long long bytes;
};

struct ct_options {
    int rank_counts[CT_MOST_RANK_COUNTS], ranks; /* ascending; none: only the world's size */
    struct ct_size sizes[CT_MOST_SIZES];
    int size_count;
    bool selected[CT_REPLAYED], often[CT_REPLAYED]; /* often: at every count of ranks, where has_often; others at some */
    bool has_often, is_short, is_twice;
    long long max_bytes;
    long first_case, last_case;
    const char *left_out[CT_MOST_LEFT_OUT]; /* each some words: a case is left out whose text has them all */
    int left_out_count;
    unsigned case_limit_s;
    int thread_level;
    const char *progress_path;
};

/* False, with a line on stderr, for anything that cannot be used. */
bool ct_options_parse(int argc, char **argv, struct ct_options *options);

/* The state of a replay; the same on all ranks that take part. number: of the last case that was numbered. */
struct ct_case_run {
    const struct ct_options *options;
    int rank, ranks;
    long number;
    bool often_alone; /* at this count of ranks */
};

/* FULL: everything, on the communicator whose ranks count; SHORT: one of each kind; THIN: for communicators that are
 * made from one that had its turn already. */
enum ct_depth { CT_DEPTH_FULL, CT_DEPTH_SHORT, CT_DEPTH_THIN };

/* Runs every case of every selected collective on `comm`. All ranks of run->ranks call it together. */
void ct_plan_run(struct ct_case_run *run, const struct ct_case_comm *comm, enum ct_depth depth);

/* Whether what `text` says is left out by the words of `options`. */
bool ct_is_left_out(const struct ct_options *options, const char *text);

/* Numbers, announces, runs and reports one case; `work` makes it. Skips it if it is left out and `always` is false. */
void ct_run_step(struct ct_case_run *run, const char *text, bool always,
                 void (*work)(void *context, struct ct_verdict *verdict), void *context);
