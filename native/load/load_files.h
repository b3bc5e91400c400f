/* The files of /proc and /sys that load.c reads. They stay open: a reading takes some microseconds. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

typedef struct ct_files ct_files;

/* Seconds since some moment; < 0: not known. */
typedef struct {
    double used_s;   /* of processors, by the job's own processes */
    double waited_s; /* by ranks that could run, for a processor */
} ct_own;

typedef struct {
    double busy_s;      /* by whatever runs on the ranks' processors, interrupts left out */
    double stolen_s;    /* from the same */
    double throttled_s; /* by limits of control groups */
    double pressure_s;
} ct_machine;

ct_files *ct_files_open(const char *root, const pid_t *pids, int count, bool all, pid_t host); /* as ct_load_open */
void ct_files_close(ct_files *files); /* takes NULL */
void ct_files_own(ct_files *files, ct_own *own);
void ct_files_machine(ct_files *files, ct_machine *machine);
int ct_files_cpus(const ct_files *files);  /* that the ranks may use */
int ct_files_ranks(const ct_files *files);
double ct_files_tick_s(void); /* what processors' times are known to */
