/* The look-up table: from the agreed statistic to a choice, for one number of ranks and ranks per node. */
#ifndef CT_TABLE_H
#define CT_TABLE_H

#include "exchange.h"

#include <stddef.h>

enum {
    CT_SIZE_CLASSES = 64, /* of the average block, two for each power of two */
    CT_FILL_CLASSES = 3,  /* of the peers of the busiest rank: up to 1/16, up to 1/4, more */
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

static inline int ct_fill_class(int64_t peers, int size) { return peers * 16 <= size ? 0 : peers * 4 <= size ? 1 : 2; }

/* The choice's index for what was agreed. */
static inline int ct_table_find(const ct_table *table, const ct_statistic *statistic, int size)
{
    int fill = ct_fill_class(statistic->peers, size);
    return table->choice_at[fill][ct_size_class((uint64_t)statistic->bytes / (unsigned)size)];
}

/* Whether the file at `path` has an entry for these many ranks. Any fault in the file: none. */
bool ct_table_covers(const char *path, int ranks);
/* Fills the table from the file; the library's own wherever the file has no rule. False, and `why`, if it is faulty. */
bool ct_table_load(const char *path, int ranks, int ppn, ct_table *table, char *why, size_t why_size);

#endif
