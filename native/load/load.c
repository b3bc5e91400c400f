#define _GNU_SOURCE
#include "load.h"

#include "load_files.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The least time that is told of: the machine's clock ticks every 10 ms. What began longer ago than the second is of another
 * time. */
static double const CT__WINDOW_S = 0.1, CT__OLD_S = 2.0;
/* So many times what a look costs lie between two of them. */
static double const CT__COST = 100.0;

typedef struct {
    double at_s, cost_s;
    ct_own own;
    ct_machine machine;
} ct__reading;

struct ct_load {
    ct_files *files;
    ct__reading first, latest;
    double told_s; /* when `shares` were told */
    ct_load_shares shares;
};

static double ct__clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static ct__reading ct__read(ct_load *load, double now_s)
{
    ct__reading reading = {.at_s = now_s};
    double began_s = ct__clock();
    ct_files_own(load->files, &reading.own);
    ct_files_machine(load->files, &reading.machine);
    reading.cost_s = ct__clock() - began_s;
    return reading;
}

ct_load *ct_load_open(const char *root, const pid_t *pids, int count, bool all, pid_t host, double now_s)
{
    ct_load *load = calloc(1, sizeof *load);
    if (load != NULL)
        load->files = ct_files_open(root, pids, count, all, host);
    if (load == NULL || load->files == NULL) {
        ct_load_close(load);
        return NULL;
    }
    load->first = load->latest = ct__read(load, now_s);
    load->told_s = -1e9;
    return load;
}

void ct_load_close(ct_load *load)
{
    if (load != NULL)
        ct_files_close(load->files);
    free(load);
}

static double ct__share(double part_s, double whole_s)
{
    return part_s <= 0.0 ? 0.0 : part_s >= whole_s ? 1.0 : part_s / whole_s;
}

static double ct__grown(double before, double now, double whole)
{
    return before < 0.0 || now < 0.0 ? -1.0 : ct__share(now - before, whole);
}

/* What others used for certain: each processor's time is known to a tick. The ranks wait for the job's own processes too,
 * so of their waiting counts what others used at most; ranks that are more than their processors wait for one another. */
static ct_load_shares ct__between(const ct_load *load, const ct__reading *before, const ct__reading *now)
{
    int cpus = ct_files_cpus(load->files), ranks = ct_files_ranks(load->files);
    double wall_s = now->at_s - before->at_s, whole_s = wall_s * cpus;
    const ct_machine *then = &before->machine, *machine = &now->machine;
    ct_load_shares shares = CT_LOAD_UNKNOWN;
    if (now->own.used_s >= 0.0 && machine->busy_s >= 0.0 && then->busy_s >= 0.0) {
        double own_s = now->own.used_s - before->own.used_s;
        double others_s = machine->busy_s - then->busy_s - own_s - cpus * ct_files_tick_s();
        double waited_s = now->own.waited_s - before->own.waited_s;
        shares.others = ct__share(others_s, whole_s);
        if (ranks <= cpus && now->own.waited_s >= 0.0)
            shares.waited = ct__share(waited_s < others_s ? waited_s : others_s, ranks * wall_s);
    }
    shares.stolen = ct__grown(then->stolen_s, machine->stolen_s, whole_s);
    shares.throttled = ct__grown(then->throttled_s, machine->throttled_s, wall_s);
    shares.pressure = ct__grown(then->pressure_s, machine->pressure_s, wall_s);
    return shares;
}

void ct_load_begin(ct_load *load, double now_s)
{
    if (now_s - load->latest.at_s > CT__OLD_S)
        load->latest = ct__read(load, now_s);
}

void ct_load_end(ct_load *load, double now_s, ct_load_shares *shares)
{
    double costly_s = CT__COST * load->latest.cost_s, window_s = costly_s > CT__WINDOW_S ? costly_s : CT__WINDOW_S;
    if (now_s - load->latest.at_s >= window_s) {
        ct__reading now = ct__read(load, now_s);
        load->shares = ct__between(load, &load->latest, &now);
        load->latest = now;
        load->told_s = now_s;
    }
    *shares = now_s - load->told_s <= 2.0 * window_s ? load->shares : CT_LOAD_UNKNOWN;
}

double ct_load_missing_s(const ct_load *load, double now_s)
{
    double missing_s = CT__WINDOW_S - (now_s - load->first.at_s);
    return missing_s > 0.0 ? missing_s : 0.0;
}

void ct_load_whole(ct_load *load, double now_s, ct_load_shares *shares)
{
    ct__reading now = ct__read(load, now_s);
    *shares = ct__between(load, &load->first, &now);
}
