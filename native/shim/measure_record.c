#define _POSIX_C_SOURCE 200809L
#include "measure.h"
#include "profile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Rounds get longer and longer, so a long run has no more pairs than this. */
enum { CT__PAIRS = 1 << 16, CT__TEXT = 2048 };

static ct_measure_record *ct__records;
static int ct__record_count, ct__record_room, ct__pairs;
static uint64_t ct__lost;
static struct {
    char name[1200], head[256];
    int descriptor; /* -1: nothing was written yet, or it cannot be */
    bool failed;
} ct__file = {.descriptor = -1};

/* Lines that are written at once, so that no reader sees half of them. */
typedef struct {
    char text[CT__TEXT];
    size_t length;
} ct__lines;

int ct_measure_record_of(const ct_measure_record *like)
{
    for (int i = 0; i < ct__record_count; i++)
        if (memcmp(&ct__records[i], like, offsetof(ct_measure_record, calls)) == 0)
            return i;
    void *larger = ct_grown(ct__records, ct__record_count, &ct__record_room, sizeof *ct__records);
    if (larger == NULL)
        return -1;
    ct__records = larger;
    ct__records[ct__record_count] = *like;
    return ct__record_count++;
}

ct_measure_record *ct_measure_record_at(int number) { return &ct__records[number]; }

static void ct__add(ct__lines *lines, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int added = vsnprintf(lines->text + lines->length, sizeof lines->text - lines->length, format, values);
    va_end(values);
    lines->length += added > 0 ? (size_t)added : 0;
    if (lines->length >= sizeof lines->text)
        lines->length = sizeof lines->text - 1;
}

static void ct__put(ct__lines *lines, const char *name, uint64_t value)
{
    ct__add(lines, " %s=%llu", name, (unsigned long long)value);
}

static void ct__append(const ct__lines *lines)
{
    int error = errno;
    if (ct__file.descriptor < 0 && !ct__file.failed) {
        ct__file.descriptor = open(ct__file.name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        ct__file.failed = ct__file.descriptor < 0 || !ct_write_all(ct__file.descriptor, ct__file.head, strlen(ct__file.head));
    }
    if (!ct__file.failed)
        ct__file.failed = !ct_write_all(ct__file.descriptor, lines->text, lines->length);
    errno = error;
}

void ct_measure_open(const char *path, uint64_t job, unsigned percent)
{
    static const ct__lines NOTHING;
    snprintf(ct__file.name, sizeof ct__file.name, "%s.%llu.%d", path, (unsigned long long)job, ct_job.rank);
    snprintf(ct__file.head, sizeof ct__file.head, "colltune-measure 2\njob id=%llu rank=%d ranks=%d nodes=%d share=%u\n",
             (unsigned long long)job, ct_job.rank, ct_job.size, ct_job.nodes.count, percent);
    if (ct_job.rank == 0)
        ct__append(&NOTHING);
}

static void ct__put_record(ct__lines *lines, int number)
{
    const ct_measure_record *record = &ct__records[number];
    ct__add(lines, "cell id=%d function=%s choice=%d size=%d nodes=%d ppn=%d", number,
            ct_function_name((ct_function)record->function), record->choice, record->size, record->nodes, record->ppn);
    ct__put(lines, "least", record->least);
    ct__put(lines, "most", record->most);
    ct__put(lines, "tuned_calls", record->calls[0]);
    ct__put(lines, "default_calls", record->calls[1]);
    ct__put(lines, "communicators", record->cells);
    ct__put(lines, "off", record->off);
    ct__put(lines, "agree_ns", record->agree_ns);
    ct__add(lines, "\n");
}

void ct_measure_keep(const ct_measure_pair *pair)
{
    ct__lines lines = {.length = 0};
    if (ct__pairs >= CT__PAIRS) {
        ct__lost++;
        return;
    }
    ct__pairs++;
    ct__add(&lines, "pair cell=%d calls=%u default_first=%d", pair->record, pair->calls, pair->default_first);
    ct__put(&lines, "tuned_call_ns", pair->call_ns[0]);
    ct__put(&lines, "tuned_wall_ns", pair->wall_ns[0]);
    ct__put(&lines, "default_call_ns", pair->call_ns[1]);
    ct__put(&lines, "default_wall_ns", pair->wall_ns[1]);
    ct__put(&lines, "elapsed_ns", ct_now_ns() - ct_job.started_ns);
    ct__add(&lines, "\n");
    ct__put_record(&lines, pair->record);
    ct__append(&lines);
}

void ct_measure_close(void)
{
    if (ct_job.rank > 0 && ct__record_count == 0)
        return;
    for (int i = 0; i < ct__record_count; i++) {
        ct__lines lines = {.length = 0};
        ct__put_record(&lines, i);
        ct__append(&lines);
    }
    ct__lines lines = {.length = 0};
    ct__add(&lines, "end");
    ct__put(&lines, "elapsed_ns", ct_now_ns() - ct_job.started_ns);
    ct__put(&lines, "lost_pairs", ct__lost);
    ct__add(&lines, "\n");
    ct__append(&lines);
    if (ct__file.descriptor >= 0)
        close(ct__file.descriptor);
    ct__file.descriptor = -1;
    ct__file.failed = true;
}
