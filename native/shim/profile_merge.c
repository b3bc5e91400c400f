/* The tables of all ranks become one, along a binomial tree. */
#include "profile_merge.h"
#include "profile_collect.h"

#include <stdlib.h>
#include <string.h>

enum { CT__TAG = 78 };
/* A merged table has a row for each form of communicator as well, so that it can be larger than a rank's. */
enum { CT__MOST = 4 * (CT_PROFILE_RECORDS + CT_PROFILE_CLASSES) };

static uint64_t ct__load(const _Atomic uint64_t *at) { return atomic_load_explicit(at, memory_order_relaxed); }

int ct_profile_rows(ct_profile_row *rows)
{
    int count = 0, classes = atomic_load(&ct_profile.class_count);
    for (int i = 0; i < CT_PROFILE_RECORDS; i++) {
        uint64_t key = ct__load(&ct_profile.records[i].key);
        int class = (int)(key >> 32) - 1;
        if (key == 0)
            continue;
        ct_profile_row *row = &rows[count++];
        memset(row, 0, sizeof *row);
        if (class >= 0 && class < classes)
            row->class = ct_profile.classes[class];
        row->class.count = 0;
        row->key = key & 0xffffffffu;
        for (int at = 0; at < CT_PROFILE_COUNTER_COUNT; at++)
            row->counters[at] = ct__load(&ct_profile.records[i].counters[at]);
    }
    /* Key 0: the form of communicator itself. */
    for (int i = 0; i < classes; i++) {
        memset(&rows[count], 0, sizeof *rows);
        rows[count++].class = ct_profile.classes[i];
    }
    return count;
}

static int ct__order(const void *left, const void *right)
{
    const ct_profile_row *a = left, *b = right;
    int class = memcmp(&a->class, &b->class, offsetof(ct_profile_class, count));
    return class != 0 ? class : (a->key > b->key) - (a->key < b->key);
}

static void ct__add(ct_profile_row *to, const ct_profile_row *row)
{
    to->class.count += row->class.count;
    for (int at = 0; at < CT_PROFILE_COUNTER_COUNT; at++)
        if (at == CT_PROFILE_size_least || at == CT_PROFILE_size_most)
            to->counters[at] = to->counters[at] > row->counters[at] ? to->counters[at] : row->counters[at];
        else if (at == CT_PROFILE_square_bytes) {
            double sum, more;
            memcpy(&sum, &to->counters[at], sizeof sum);
            memcpy(&more, &row->counters[at], sizeof more);
            sum += more;
            memcpy(&to->counters[at], &sum, sizeof sum);
        } else
            to->counters[at] += row->counters[at];
}

static int ct__unite(ct_profile_row *rows, int count, uint64_t *lost)
{
    int kept = 0;
    qsort(rows, (size_t)count, sizeof *rows, ct__order);
    for (int i = 0; i < count; i++)
        if (kept > 0 && ct__order(&rows[kept - 1], &rows[i]) == 0)
            ct__add(&rows[kept - 1], &rows[i]);
        else
            rows[kept++] = rows[i];
    for (; kept > CT__MOST / 2; kept--)
        *lost += rows[kept - 1].counters[CT_PROFILE_calls];
    return kept;
}

static int ct__join(void *rows, int count, void *lost) { return ct__unite(rows, count, lost); }

bool ct_profile_merge(void)
{
    ct_profile_row *rows = malloc(sizeof *rows * CT__MOST);
    int have = rows != NULL, all_have = 0;
    PMPI_Allreduce(&have, &all_have, 1, MPI_INT, MPI_MIN, ct_job.comm);
    if (!all_have) {
        free(rows);
        return false;
    }
    uint64_t own = atomic_load(&ct_profile.lost), lost, longest;
    int count = ct_profile_collect(rows, sizeof *rows, ct_profile_rows(rows), CT__TAG, ct__join, &own);
    PMPI_Reduce(&own, &lost, 1, MPI_UINT64_T, MPI_SUM, 0, ct_job.comm);
    PMPI_Reduce(&ct_profile.elapsed_ns, &longest, 1, MPI_UINT64_T, MPI_MAX, 0, ct_job.comm);
    if (ct_job.rank == 0)
        ct_profile_write(-1, "", rows, count, longest, lost);
    free(rows);
    return true;
}
