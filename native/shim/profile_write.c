/* The file: lines of `word name=value ...`. Written with nothing but open, write and rename, as it may have to be in a
 * signal handler. */
#define _GNU_SOURCE
#include "profile_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    int file;
    bool failed;
    size_t length;
    char text[8192];
} ct__out;

static void ct__flush(ct__out *out)
{
    for (size_t done = 0; done < out->length && !out->failed;) {
        ssize_t written = write(out->file, out->text + done, out->length - done);
        if (written < 0 && errno != EINTR)
            out->failed = true;
        done += written > 0 ? (size_t)written : 0;
    }
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

static void ct__put_number(ct__out *out, const char *name, uint64_t value)
{
    char digits[24], *at = digits + sizeof digits;
    *--at = '\0';
    do
        *--at = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    ct__put(out, " ");
    ct__put(out, name);
    ct__put(out, "=");
    ct__put(out, at);
}

static void ct__put_word(ct__out *out, const char *name, const char *value)
{
    ct__put(out, " ");
    ct__put(out, name);
    ct__put(out, "=");
    ct__put(out, value);
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
    char digits[16], *at = digits + sizeof digits;
    *--at = '\0';
    for (unsigned left = rank < 0 ? 0 : (unsigned)rank; rank >= 0; left /= 10) {
        *--at = (char)('0' + left % 10);
        if (left < 10)
            break;
    }
    strcpy(name, ct_profile.path);
    strcat(name, rank < 0 ? ".all" : ".");
    strcat(name, at);
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
    bool fine = close(out.file) == 0 && !out.failed;
    return fine && rename(beside, name) == 0;
}

void ct_profile_unwrite(int rank)
{
    static char name[sizeof ct_profile.path + 32];
    ct__name(name, rank, "");
    unlink(name);
}
