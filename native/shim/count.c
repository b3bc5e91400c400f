/* Counts the calls that meet a rule of a tuning, for `colltune run --prove`: each call is looked up in the
 * rules that the library's file was made of (COLLTUNE_COUNT_RULES, as the live selector's, without settings), or, where
 * the live selector is asked for, held against what it did. In MPI_Finalize rank 0 writes the sums of all ranks. */
#define _POSIX_C_SOURCE 200809L
#include "profile.h"
#include "select.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CT__ROWS = 1 << 10, CT__TAG = 79 };

/* Calls of one function, in one form, on communicators of one shape. */
typedef struct {
    uint32_t function, form, size, remote_size, nodes, ppn, even, unused;
    uint64_t calls, met; /* summed over the ranks */
    uint64_t least, most; /* bytes, as the rules of the function count them */
} ct__row;

enum { CT__KEY = offsetof(ct__row, calls) };

static ct__row *ct__rows; /* [2 * CT__ROWS]: those of another rank come behind */
static int ct__row_count;
static uint64_t ct__lost;
static bool ct__live;
static pthread_mutex_t ct__lock = PTHREAD_MUTEX_INITIALIZER;

static bool ct__start(void)
{
    ct__live = getenv("COLLTUNE_SELECT") != NULL;
    const char *path = getenv("COLLTUNE_COUNT_RULES");
    char *text = ct__live || path == NULL ? NULL : ct_select_read(path), why[CT_RULES_WHY];
    ct__rows = calloc(2 * CT__ROWS, sizeof *ct__rows);
    bool fine = ct__live || (text != NULL && ct_select_parse(text, ct_select_table.proven, why, sizeof why));
    fine = fine && ct__rows != NULL;
    free(text);
    return ct_all(ct_job.comm, fine);
}

static void ct__add(ct__row *to, const ct__row *row)
{
    to->calls += row->calls;
    to->met += row->met;
    to->least = to->least < row->least ? to->least : row->least;
    to->most = to->most > row->most ? to->most : row->most;
}

/* Adds `row` to the first `*count` rows, of which there may be CT__ROWS. */
static void ct__count(const ct__row *row, int *count)
{
    for (int i = 0; i < *count; i++)
        if (memcmp(&ct__rows[i], row, CT__KEY) == 0) {
            ct__add(&ct__rows[i], row);
            return;
        }
    if (*count < CT__ROWS)
        ct__rows[(*count)++] = *row;
    else
        ct__lost += row->calls;
}

static void ct__after(ct_call *call, int code)
{
    if (code != MPI_SUCCESS || call->known == NULL)
        return;
    const ct_comm *comm = call->known;
    ct__row row = {.function = call->function, .form = call->form, .size = (uint32_t)comm->size,
                   .remote_size = (uint32_t)comm->remote_size, .nodes = (uint32_t)comm->nodes,
                   .ppn = (uint32_t)comm->ppn, .even = comm->even, .calls = 1};
    MPI_Count size = 0, count;
    if (!ct_select_measure(call, ct_select_table.proven[ct_select_kind(call)].basis, &size, &count) || size < 0)
        size = 0;
    row.least = row.most = (uint64_t)size;
    const ct_select_choice *met = ct__live ? call->choice : ct_select_choose(call);
    row.met = met != NULL && !ct_select_is_candidate(met);
    pthread_mutex_lock(&ct__lock);
    ct__count(&row, &ct__row_count);
    pthread_mutex_unlock(&ct__lock);
}

/* The rows of another rank stand behind those of this one. */
static int ct__join(void *rows, int count, void *own)
{
    int kept = *(int *)own;
    for (int i = kept; i < count; i++) {
        ct__row row = ((ct__row *)rows)[i]; /* a copy: a row may come to stand where another stood */
        ct__count(&row, &kept);
    }
    return *(int *)own = kept;
}

static void ct__write(const char *path, uint64_t lost)
{
    char name[1200], beside[1210];
    /* A command may start several jobs, one after the other or at once. */
    snprintf(name, sizeof name, "%s.%ld-%llu", path, (long)getpid(), (unsigned long long)ct_job.started_ns);
    snprintf(beside, sizeof beside, "%s.new", name);
    FILE *file = fopen(beside, "w");
    if (file == NULL)
        return;
    fprintf(file, "colltune-count 1\njob ranks=%d nodes=%d threads_multiple=%d lost=%llu\n", ct_job.size, ct_job.nodes.count,
            ct_job.threads_multiple, (unsigned long long)lost);
    static const char *const FORMS[] = {"blocking", "nonblocking", "persistent"};
    for (int i = 0; i < ct__row_count; i++) {
        const ct__row *row = &ct__rows[i];
        fprintf(file,
                "call function=%s form=%s size=%u remote_size=%u nodes=%u ppn=%u even=%u calls=%llu met=%llu "
                "least=%llu most=%llu\n",
                ct_function_name((ct_function)row->function), FORMS[row->form], row->size, row->remote_size, row->nodes,
                row->ppn, row->even, (unsigned long long)row->calls, (unsigned long long)row->met,
                (unsigned long long)row->least, (unsigned long long)row->most);
    }
    fprintf(file, "end\n");
    if (fclose(file) == 0)
        rename(beside, name);
}

static void ct__stop(void)
{
    uint64_t lost = 0;
    int own = ct__row_count;
    ct_profile_collect(ct__rows, sizeof *ct__rows, own, CT__TAG, ct__join, &own);
    ct__row_count = own;
    PMPI_Reduce(&ct__lost, &lost, 1, MPI_UINT64_T, MPI_SUM, 0, ct_job.comm);
    const char *path = getenv("COLLTUNE_COUNT");
    if (ct_job.rank == 0 && path != NULL)
        ct__write(path, lost);
    free(ct__rows);
    ct__rows = NULL;
}

const ct_module ct_count_module = {
    .start = ct__start,
    .after = ct__after,
    .stop = ct__stop,
};
