#define _POSIX_C_SOURCE 200809L
#include "measure_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rounds get longer and longer, so a long run has no more pairs than this. */
enum { CT__PAIRS = 1 << 16 };

static ct_measure_record *ct__records;
static ct_measure_pair *ct__pairs;
static int ct__record_count, ct__record_room, ct__pair_count, ct__pair_room;
static uint64_t ct__lost;

/* Room for one more of `size` bytes; false: no memory. */
static bool ct__grow(void **rows, size_t size, int count, int *room)
{
    if (count < *room)
        return true;
    int more = *room > 0 ? 2 * *room : 64;
    void *larger = realloc(*rows, size * (size_t)more);
    if (larger == NULL)
        return false;
    *rows = larger;
    *room = more;
    return true;
}

int ct_measure_record_of(const ct_measure_record *like)
{
    for (int i = 0; i < ct__record_count; i++)
        if (memcmp(&ct__records[i], like, offsetof(ct_measure_record, calls)) == 0)
            return i;
    void *rows = ct__records;
    if (!ct__grow(&rows, sizeof *ct__records, ct__record_count, &ct__record_room))
        return -1;
    ct__records = rows;
    ct__records[ct__record_count] = *like;
    return ct__record_count++;
}

ct_measure_record *ct_measure_record_at(int number) { return &ct__records[number]; }

void ct_measure_keep(const ct_measure_pair *pair)
{
    void *rows = ct__pairs;
    if (ct__pair_count >= CT__PAIRS || !ct__grow(&rows, sizeof *ct__pairs, ct__pair_count, &ct__pair_room)) {
        ct__lost++;
        return;
    }
    ct__pairs = rows;
    ct__pairs[ct__pair_count++] = *pair;
}

static void ct__put(FILE *file, const char *name, uint64_t value)
{
    fprintf(file, " %s=%llu", name, (unsigned long long)value);
}

static void ct__put_record(FILE *file, int number)
{
    const ct_measure_record *record = &ct__records[number];
    fprintf(file, "cell id=%d function=%s choice=%d size=%d nodes=%d ppn=%d", number,
            ct_function_name((ct_function)record->function), record->choice, record->size, record->nodes, record->ppn);
    ct__put(file, "least", record->least);
    ct__put(file, "most", record->most);
    ct__put(file, "tuned_calls", record->calls[0]);
    ct__put(file, "default_calls", record->calls[1]);
    ct__put(file, "communicators", record->cells);
    ct__put(file, "off", record->off);
    ct__put(file, "rounds", record->rounds);
    ct__put(file, "agree_ns", record->agree_ns);
    fprintf(file, "\n");
}

static void ct__put_pair(FILE *file, const ct_measure_pair *pair)
{
    fprintf(file, "pair cell=%d calls=%u sampled=%u default_first=%d", pair->record, pair->calls, pair->sampled,
            pair->default_first);
    for (int i = 0; i < 2; i++) {
        static const char *const NAMES[2][4] = {
            {"tuned_call_ns", "tuned_wall_ns", "tuned_sampled_ns", "tuned_least_ns"},
            {"default_call_ns", "default_wall_ns", "default_sampled_ns", "default_least_ns"}};
        ct__put(file, NAMES[i][0], pair->call_ns[i]);
        ct__put(file, NAMES[i][1], pair->wall_ns[i]);
        ct__put(file, NAMES[i][2], pair->sampled_ns[i]);
        ct__put(file, NAMES[i][3], pair->least_ns[i]);
    }
    fprintf(file, "\n");
}

void ct_measure_write(const char *path, uint64_t job, unsigned percent, uint64_t elapsed_ns)
{
    char name[1200], beside[1210];
    if (ct_job.rank > 0 && ct__record_count == 0)
        return;
    snprintf(name, sizeof name, "%s.%llu.%d", path, (unsigned long long)job, ct_job.rank);
    snprintf(beside, sizeof beside, "%s.new", name);
    FILE *file = fopen(beside, "w");
    if (file == NULL)
        return;
    fprintf(file, "colltune-measure 1\njob id=%llu rank=%d ranks=%d nodes=%d share=%u", (unsigned long long)job,
            ct_job.rank, ct_job.size, ct_job.nodes.count, percent);
    ct__put(file, "elapsed_ns", elapsed_ns);
    ct__put(file, "lost_pairs", ct__lost);
    fprintf(file, "\n");
    for (int i = 0; i < ct__record_count; i++)
        ct__put_record(file, i);
    for (int i = 0; i < ct__pair_count; i++)
        ct__put_pair(file, &ct__pairs[i]);
    fprintf(file, "end\n");
    if (fclose(file) == 0)
        rename(beside, name);
}
