/* The command line. */
#pragma once

#include <stdbool.h>

#include "collectives.h"

#define CT_MOST_RANK_COUNTS 256
#define CT_MOST_SIZES 1024

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
    bool selected[CT_COLLECTIVES];
    bool is_short;
    long long max_bytes;
    long only_case; /* 0: all */
    unsigned case_limit_s;
    int thread_level;
    const char *progress_path;
};

/* False, with a line on stderr, for anything that cannot be used. */
bool ct_options_parse(int argc, char **argv, struct ct_options *options);
