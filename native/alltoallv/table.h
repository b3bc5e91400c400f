/* The look-up table: from the agreed statistic to a choice, for one number of ranks and ranks per node. */
#pragma once

#include "exchange.h"
#include "rules.h"

#include <stddef.h>

enum {
    CT_SIZE_CLASSES = 64, /* of the average block, two for each power of two */
    CT_FILL_CLASSES = 5,  /* of the blocks that are not empty: up to 1/16, 1/4, 1/2, 3/4, more */
    CT_CHOICES_MOST = 32
};

/* Plain values: broadcast as it is. Choice 0 is the library's own. */
typedef struct {
    int32_t choice_count;
    ct_alltoallv_choice choices[CT_CHOICES_MOST];
    uint8_t choice_at[CT_FILL_CLASSES][CT_SIZE_CLASSES];
} ct_table;

static inline int ct_size_class(uint64_t average_bytes)
{
    if (average_bytes < 2)
        return (int)average_bytes;
    int exponent = 63 - __builtin_clzll(average_bytes);
    int at = 2 * exponent + (int)(average_bytes >> (exponent - 1) & 1);
    return at < CT_SIZE_CLASSES ? at : CT_SIZE_CLASSES - 1;
}

/* The least average block of a class; of class CT_SIZE_CLASSES, what lies beyond all. */
int64_t ct_size_class_low(int size_class);

/* Of the rank with the fewest blocks: so at least this share of all pairs of ranks has something to send. */
static inline int ct_fill_class(int64_t idle, int size)
{
    int64_t most = 2 * ((int64_t)size - 1), has = most - idle;
    return has * 16 <= most ? 0 : has * 4 <= most ? 1 : has * 2 <= most ? 2 : has * 4 <= most * 3 ? 3 : 4;
}

/* The choice's index for what was agreed, the library's for data with gaps; `size` is 2 at the least. */
static inline int ct_table_find(const ct_table *table, const ct_statistic *statistic, int size)
{
    if (statistic->bytes & CT_GAPS)
        return 0;
    int fill = ct_fill_class(statistic->idle, size);
    return table->choice_at[fill][ct_size_class((uint64_t)statistic->bytes / (unsigned)(size - 1))];
}

/* A file's rules, the first that holds deciding. */
typedef struct {
    ct_rules_range ranks, ppn, size;
    unsigned fill;  /* bits of its classes; 0: any */
    int first_call; /* 2 at the least */
    int choice;     /* -1: the library's own */
} ct_table_rule;

typedef struct {
    int count;
    ct_table_rule *rules;
    ct_alltoallv_choice choices[CT_RULES_CHOICES];
} ct_table_rules;

/* Reads a file's text, which that changes. False, `why`, and no rules if it is faulty. */
bool ct_table_parse(char *text, ct_table_rules *rules, char *why, size_t why_size);
void ct_table_forget(ct_table_rules *rules);
/* The call on a communicator of so many ranks at which the rules take over from the library; 0: there are none for it. `ppn`: the ranks
 * on its fullest node, 0 if that is not known: then the latest of what it may be, since what is set up too early may be for nothing. */
int ct_table_first_call(const ct_table_rules *rules, int ranks, int ppn);
/* What holds for a communicator, its choices in the form that is run; the library's own wherever there is no rule. */
void ct_table_fill(const ct_table_rules *rules, int ranks, int ppn, ct_table *table);
