#define _POSIX_C_SOURCE 200809L
#include "report.h"

#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CT__MOST_LINES 2000
/* MPICH's launcher has missed, one time in fifty on a busy machine, that rank 0 ended: then the other ranks end too. */
#define CT__GRACE_S 5

static struct {
    bool speaks;
    int progress;
    unsigned case_limit_s;
    long cases, failures, skipped;
    double began_s, again_s; /* the first case; the first one of the second time, 0: there is none */
    char hang[CT_CASE_TEXT + 64];
    size_t hang_length;
} ct__report = {.progress = -1};

void ct_verdict_fail(struct ct_verdict *verdict, const char *format, ...)
{
    va_list arguments;
    if (verdict->failed)
        return;
    verdict->failed = 1;
    va_start(arguments, format);
    vsnprintf(verdict->text, sizeof verdict->text, format, arguments);
    va_end(arguments);
}

void ct_verdict_check(struct ct_verdict *verdict, int rc, const char *function)
{
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    if (rc == MPI_SUCCESS)
        return;
    MPI_Error_string(rc, text, &length);
    for (char *c = text; *c != '\0'; c++)
        if (*c == '\n')
            *c = ' ';
    fprintf(stderr, "conformance: %s: %s\n", function, text);
    ct_verdict_fail(verdict, "%s: %.150s", function, text);
}

/* Runs as a signal handler: write and _exit only. Ranks that do not speak have nothing to write. */
static void ct__on_alarm(int number)
{
    (void)number;
    ssize_t written = write(STDOUT_FILENO, ct__report.hang, ct__report.hang_length);
    (void)written;
    _exit(3);
}

void ct_report_open(bool speaks, const char *progress_path, unsigned case_limit_s)
{
    struct sigaction action = {.sa_handler = ct__on_alarm};
    ct__report.speaks = speaks;
    ct__report.case_limit_s = speaks || case_limit_s == 0 ? case_limit_s : case_limit_s + CT__GRACE_S;
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    if (!speaks || progress_path == NULL)
        return;
    ct__report.progress = open(progress_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (ct__report.progress < 0)
        fprintf(stderr, "conformance: cannot write %s: cases go to stdout\n", progress_path);
}

void ct_report_start(long number, const char *text)
{
    char line[CT_CASE_TEXT + 64];
    alarm(ct__report.case_limit_s);
    if (!ct__report.speaks)
        return;
    if (ct__report.cases++ == 0)
        ct__report.began_s = MPI_Wtime();
    /* Every record has one length, so that a shorter one leaves nothing of the one before. */
    snprintf(line, sizeof line, "case %ld %-*s\n", number, CT_CASE_TEXT, text);
    ct__report.hang_length =
        (size_t)snprintf(ct__report.hang, sizeof ct__report.hang, "HANG %ld %s\n", number, text);
    if (ct__report.progress < 0) {
        printf("case %ld %s\n", number, text);
        fflush(stdout);
    } else if (pwrite(ct__report.progress, line, strlen(line), 0) < 0) {
        perror("conformance: the progress file");
    }
}

void ct_report_finish(long number, const char *text, const struct ct_verdict *verdict)
{
    alarm(0);
    if (!ct__report.speaks || !verdict->failed)
        return;
    ct__report.failures++;
    if (ct__report.failures <= CT__MOST_LINES)
        printf("FAIL %ld %s | rank %d: %s\n", number, text, verdict->rank, verdict->text);
    fflush(stdout);
}

void ct_report_skip(const char *collective, int ranks, long long bytes)
{
    if (!ct__report.speaks)
        return;
    ct__report.skipped++;
    printf("skip %s ranks=%d bytes=%lld\n", collective, ranks, bytes);
}

void ct_report_again(void) { ct__report.again_s = MPI_Wtime(); }

int ct_report_close(void)
{
    if (ct__report.speaks) {
        double ended_s = MPI_Wtime();
        printf("done cases=%ld failures=%ld skipped=%ld seconds=%.3f again=%.3f\n", ct__report.cases,
               ct__report.failures, ct__report.skipped, ct__report.cases > 0 ? ended_s - ct__report.began_s : 0.0,
               ct__report.again_s > 0.0 ? ended_s - ct__report.again_s : 0.0);
        fflush(stdout);
        if (ct__report.progress >= 0)
            close(ct__report.progress);
    }
    return ct__report.failures > 0;
}
