#include "plan.h"
#include "codes.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool ct__number(const char *text, char end, long long least, long long most, long long *value, const char **rest)
{
    char *stop;
    errno = 0;
    *value = strtoll(text, &stop, 10);
    *rest = stop;
    return errno == 0 && stop != text && (*stop == '\0' || *stop == end) && *value >= least && *value <= most;
}

static bool ct__parse_ranks(const char *text, struct ct_options *options)
{
    for (options->ranks = 0;; text++) {
        long long value;
        if (!ct__number(text, ',', 1, 1 << 20, &value, &text) || options->ranks == CT_MOST_RANK_COUNTS)
            return false;
        if (options->ranks > 0 && value <= options->rank_counts[options->ranks - 1])
            return false;
        options->rank_counts[options->ranks++] = (int)value;
        if (*text == '\0')
            return true;
    }
}

/* COLLECTIVE=BYTES,BYTES,... */
static bool ct__parse_sizes(const char *text, bool total, struct ct_options *options)
{
    const char *equals = strchr(text, '=');
    int collective = equals == NULL ? -1 : ct_collective_find(text, (size_t)(equals - text));
    if (collective < 0)
        return false;
    for (text = equals + 1;; text++) {
        struct ct_size size = {collective, total, 0};
        if (!ct__number(text, ',', 0, 1LL << 40, &size.bytes, &text) || options->size_count == CT_MOST_SIZES)
            return false;
        options->sizes[options->size_count++] = size;
        if (*text == '\0')
            return true;
    }
}

static bool ct__parse_names(const char *text, bool named[CT_REPLAYED])
{
    memset(named, 0, sizeof(bool) * CT_REPLAYED);
    for (;; text++) {
        size_t length = strcspn(text, ",");
        int collective = ct_collective_find(text, length);
        if (collective < 0)
            return false;
        named[collective] = true;
        text += length;
        if (*text == '\0')
            return true;
    }
}

static bool ct__parse_value(const char *name, const char *value, struct ct_options *options)
{
    const char *rest;
    long long number = 0;
    if (strcmp(name, "--ranks") == 0)
        return ct__parse_ranks(value, options);
    if (strcmp(name, "--sizes") == 0 || strcmp(name, "--totals") == 0)
        return ct__parse_sizes(value, strcmp(name, "--totals") == 0, options);
    if (strcmp(name, "--only") == 0)
        return ct__parse_names(value, options->selected);
    if (strcmp(name, "--often") == 0)
        return options->has_often = ct__parse_names(value, options->often);
    if (strcmp(name, "--thread-level") == 0)
        return (options->thread_level = ct_thread_level(value)) >= 0;
    if (strcmp(name, "--progress") == 0)
        return (options->progress_path = value) != NULL;
    if (strcmp(name, "--max-bytes") == 0)
        return ct__number(value, '\0', 1, 1LL << 40, &options->max_bytes, &rest);
    if ((strcmp(name, "--case") == 0 || strcmp(name, "--from") == 0) &&
        ct__number(value, '\0', 1, 1LL << 40, &number, &rest)) {
        options->first_case = (long)number;
        options->last_case = strcmp(name, "--case") == 0 ? (long)number : LONG_MAX;
        return true;
    }
    if (strcmp(name, "--without") == 0 && options->left_out_count < CT_MOST_LEFT_OUT)
        return (options->left_out[options->left_out_count++] = value) != NULL;
    if (strcmp(name, "--case-limit") == 0 && ct__number(value, '\0', 1, 86400, &number, &rest))
        return (options->case_limit_s = (unsigned)number) > 0;
    return false;
}

static bool ct__parse_flag(const char *name, struct ct_options *options)
{
    if (strcmp(name, "--short") == 0)
        return options->is_short = true;
    if (strcmp(name, "--twice") == 0)
        return options->is_twice = true;
    return strcmp(name, "--nonblocking") == 0 && memset(options->selected, true, sizeof options->selected) != NULL;
}

bool ct_options_parse(int argc, char **argv, struct ct_options *options)
{
    *options = (struct ct_options){.case_limit_s = 60, .thread_level = MPI_THREAD_SINGLE, .last_case = LONG_MAX};
    for (int i = 0; i < CT_REPLAYED; i++)
        options->selected[i] = !ct_collectives[i].is_nonblocking;
    for (int i = 1; i < argc; i++) {
        if (ct__parse_flag(argv[i], options))
            continue;
        if (i + 1 == argc || !ct__parse_value(argv[i], argv[i + 1], options)) {
            fprintf(stderr, "conformance: cannot use %s %s\n", argv[i], i + 1 == argc ? "" : argv[i + 1]);
            return false;
        }
        i++;
    }
    if (options->max_bytes == 0)
        options->max_bytes = options->is_short ? 1 << 18 : 1 << 22;
    return true;
}
