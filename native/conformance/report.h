/* What the replay says: verdicts of single cases, the case that is running, failures and totals. */
#pragma once

#include <stdbool.h>

#define CT_CASE_TEXT 256

/* The outcome of one case on one rank, and, once collected, on all of them. */
struct ct_verdict {
    int failed, rank;
    char text[200];
};

/* Notes the first thing that went wrong; later ones follow from it more often than not. */
__attribute__((format(printf, 2, 3))) void ct_verdict_fail(struct ct_verdict *verdict, const char *format, ...);

/* Notes an MPI error, on stderr too: the other ranks may wait for ever for the one that got it. */
void ct_verdict_check(struct ct_verdict *verdict, int rc, const char *function);

/* Only rank 0 reports; on the others these end the rank where a case lasts longer than rank 0 lets it.
 * progress_path: a file that always holds the running case, NULL: each case is a line on stdout instead.
 * case_limit_s: after so many seconds in one case it is named as hung and the program ends with code 3. */
void ct_report_open(bool speaks, const char *progress_path, unsigned case_limit_s);
void ct_report_start(long number, const char *text);
void ct_report_finish(long number, const char *text, const struct ct_verdict *verdict);
void ct_report_skip(const char *collective, int ranks, long long bytes);

/* What comes now is what was already: how long it takes is told apart from the first time, which opens connections. */
void ct_report_again(void);

/* Writes the last line. Returns the exit code: 0, or 1 if a case failed. */
int ct_report_close(void);

/* Ranks 0 to ranks - 1 of MPI_COMM_WORLD call these. No rank leaves release before rank 0 has entered it, and each
 * leaves with rank 0's `word`. patient: wait with naps of a millisecond, so that a rank with no part in a test
 * disturbs nobody. */
void ct_meet_release(int rank, int ranks, bool patient, long *word);

/* Rank 0 gets the verdict of the lowest rank that failed, or that all is well. */
void ct_meet_collect(int rank, int ranks, struct ct_verdict *verdict);
