/* The file: lines of `word name=value ...`. Written with nothing but open, write and rename, as it may have to be in a
 * signal handler. */
#define _GNU_SOURCE
#include "profile.h"
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CT__DIGITS = 24 };

typedef struct {
    int file;
    bool failed;
    size_t length;
    char text[8192];
} ct__out;

bool ct_write_all(int file, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t done = write(file, text, length);
        if (done < 0 && errno != EINTR)
            return false;
        text += done > 0 ? done : 0;
        length -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

static void ct__flush(ct__out *out)
{
    out->failed = out->failed || !ct_write_all(out->file, out->text, out->length);
    out->length = 0;
}

static void ct__put(ct__out *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (out->length == sizeof out->text)
            ct__flush(out);
        out->text[out->length++] = *text;
    }
}

/* Where in `digits` it begins; it ends with them. */
static char *ct__decimal(uint64_t value, char digits[CT__DIGITS])
{
    char *at = digits + CT__DIGITS;
    *--at = '\0';
    do
        *--at = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    return at;
}

static void ct__put_word(ct__out *out, const char *name, const char *value)
{
    ct__put(out, " ");
    ct__put(out, name);
    ct__put(out, "=");
    ct__put(out, value);
}

static void ct__put_number(ct__out *out, const char *name, uint64_t value)
{
    char digits[CT__DIGITS];
    ct__put_word(out, name, ct__decimal(value, digits));
}

static void ct__put_class(ct__out *out, const ct_profile_class *class)
{
    ct__put_number(out, "size", class->size);
    ct__put_number(out, "remote_size", class->remote_size);
    ct__put_number(out, "nodes", class->nodes);
    ct__put_number(out, "ppn", class->ppn);
    ct__put_number(out, "even", class->even);
}

static void ct__put_row(ct__out *out, const ct_profile_row *row)
{
    static const char *const FORMS[] = {"blocking", "nonblocking", "persistent"};
    static const char *const OPS[] = {"none", "arithmetic", "extremum", "logical", "bitwise", "location",
                                      "user_commutative", "user_ordered"};
    static const char *const COUNTERS[] = {
#define CT__NAME(NAME) #NAME,
        CT_PROFILE_COUNTERS(CT__NAME)
#undef CT__NAME
    };
    ct__put(out, row->key == 0 ? "communicators" : "call");
    ct__put_class(out, &row->class);
    if (row->key == 0)
        ct__put_number(out, "count", row->class.count);
    else {
        ct__put_word(out, "function", ct_function_name((ct_function)(row->key >> 8 & 0xff)));
        ct__put_word(out, "form", FORMS[row->key >> 16 & 0xf]);
        ct__put_word(out, "op", OPS[row->key >> 20 & 0xf]);
        ct__put_number(out, "bin", row->key >> 1 & 0x7f);
        for (int at = 0; at < CT_PROFILE_COUNTER_COUNT; at++) {
            uint64_t value = row->counters[at];
            if (at == CT_PROFILE_square_bytes) { /* of a double; whole bytes are fine enough */
                double squares;
                memcpy(&squares, &value, sizeof squares);
                value = squares < 1.8e19 ? (uint64_t)squares : UINT64_MAX;
            }
            if (value != 0)
                ct__put_number(out, COUNTERS[at], at == CT_PROFILE_size_least ? ~value : value);
        }
    }
    ct__put(out, "\n");
}

/* <path>.all or <path>.<rank> */
static void ct__name(char *name, int rank, const char *more)
{
    char digits[CT__DIGITS];
    strcpy(name, ct_profile.path);
    strcat(name, rank < 0 ? ".all" : ".");
    strcat(name, rank < 0 ? "" : ct__decimal((uint64_t)rank, digits));
    strcat(name, more);
}

bool ct_profile_write(int rank, const char *why, const ct_profile_row *rows, int count, uint64_t elapsed_ns,
                      uint64_t lost)
{
    /* Not on the stack: a signal's may be small. One at a time writes (signals.c). */
    static ct__out out;
    static char beside[sizeof ct_profile.path + 32], name[sizeof ct_profile.path + 32];
    ct__name(name, rank, "");
    ct__name(beside, rank, ".new");
    out = (ct__out){.file = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
    if (out.file < 0)
        return false;
    ct__put(&out, "colltune-profile 1\njob");
    ct__put_word(&out, "ranks_seen", rank < 0 ? "all" : "one");
    ct__put_number(&out, "ranks", (uint64_t)ct_job.size);
    ct__put_number(&out, "nodes", (uint64_t)ct_job.nodes.count);
    ct__put_number(&out, "elapsed_ns", elapsed_ns);
    ct__put_number(&out, "start_ns", ct_job.start_ns);
    ct__put_number(&out, "threads_multiple", ct_job.threads_multiple);
    ct__put_number(&out, "lost_calls", lost);
    ct__put(&out, "\n");
    if (*why != '\0') {
        ct__put(&out, "ended ");
        ct__put(&out, why);
        ct__put(&out, "\n");
    }
    for (int i = 0; i < count; i++)
        ct__put_row(&out, &rows[i]);
    ct__put(&out, "end\n");
    ct__flush(&out);
    return close(out.file) == 0 && !out.failed && rename(beside, name) == 0;
}

void ct_profile_unwrite(int rank)
{
    static char name[sizeof ct_profile.path + 32];
    ct__name(name, rank, "");
    unlink(name);
}

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
    /* The rank that came to its start last has waited for none. */
    uint64_t mine[] = {ct_now_ns() - ct_job.started_ns, ~ct_job.start_ns};
    if (!ct_all(ct_job.comm, rows != NULL)) {
        free(rows);
        return false;
    }
    uint64_t own = atomic_load(&ct_profile.lost), lost;
    int count = ct_profile_collect(rows, sizeof *rows, ct_profile_rows(rows), CT__TAG, ct__join, &own);
    PMPI_Reduce(&own, &lost, 1, MPI_UINT64_T, MPI_SUM, 0, ct_job.comm);
    PMPI_Allreduce(MPI_IN_PLACE, mine, 2, MPI_UINT64_T, MPI_MAX, ct_job.comm);
    ct_job.start_ns = ~mine[1];
    if (ct_job.rank == 0)
        ct_profile_write(-1, "", rows, count, mine[0], lost);
    free(rows);
    return true;
}

int ct_profile_collect(void *rows, size_t size, int count, int tag, ct_profile_join *join, void *context)
{
    for (int distance = 1; distance < ct_job.size; distance *= 2) {
        if (ct_job.rank % (2 * distance) == distance) {
            PMPI_Send(rows, count * (int)size, MPI_BYTE, ct_job.rank - distance, tag, ct_job.comm);
            return 0;
        }
        if (ct_job.rank + distance >= ct_job.size)
            continue;
        int bytes;
        MPI_Status status;
        PMPI_Probe(ct_job.rank + distance, tag, ct_job.comm, &status);
        PMPI_Get_count(&status, MPI_BYTE, &bytes);
        PMPI_Recv((char *)rows + (size_t)count * size, bytes, MPI_BYTE, ct_job.rank + distance, tag, ct_job.comm,
                  MPI_STATUS_IGNORE);
        count = join(rows, count + bytes / (int)size, context);
    }
    return count;
}
