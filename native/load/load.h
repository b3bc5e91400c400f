/* What else ran on this machine's processors while something was measured, as Linux tells it in /proc and /sys.
 *
 * The job's own are its ranks and the processes that started them: launcher, shells, and us. Ranks that share processors
 * with each other are not disturbed. Whatever a machine does not tell is not known, and nothing fails for it. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

typedef struct ct_load ct_load;

/* Shares of a time; < 0: not known. */
typedef struct {
    double waited;    /* ranks were ready to run, and something else than the job had their processors */
    double others;    /* of the processors that the ranks may use, what other programs took */
    double stolen;    /* of the same, what a hypervisor gave to other machines */
    double throttled; /* a limit of the ranks' control group held them */
    double pressure;  /* something on this machine waited for a processor; ranks that share them do, too */
} ct_load_shares;
#define CT_LOAD_UNKNOWN ((ct_load_shares){-1.0, -1.0, -1.0, -1.0, -1.0})

/* Of the job's `count` ranks on this machine, whose processes are `pids`. `all`: whether these are all of them. `host`: a
 * process that counts as the job's own; 0: none. `root` stands for the root directory, "" for itself. NULL: no memory. */
ct_load *ct_load_open(const char *root, const pid_t *pids, int count, bool all, pid_t host, double now_s);
void ct_load_close(ct_load *load);
/* A measurement begins and ends; `now_s` is of any steady clock. Short ones share the time that is told of, a tenth of a
 * second or more: the last that ended. What reading costs is below a hundredth of the time. */
void ct_load_begin(ct_load *load, double now_s);
void ct_load_end(ct_load *load, double now_s, ct_load_shares *shares);
/* Since it was opened, which is to be so long ago that `ct_load_missing_s` is 0: the clock ticks say nothing of less. */
void ct_load_whole(ct_load *load, double now_s, ct_load_shares *shares);
double ct_load_missing_s(const ct_load *load, double now_s);

/* A number for the machine that this process is on, the same for all that share its processors; 0: not known. */
unsigned long long ct_load_machine(void);
