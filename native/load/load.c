#define _GNU_SOURCE
#include "load.h"

#include "load_files.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A reading that is older than this when a measurement begins is of another time; so much for a look at the ranks, and for
 * one at the machine. */
static double const CT__OLD_S = 0.05, CT__OLD_MACHINE_S = 2.0;
/* The least time between two looks at the machine: its clock ticks every 10 ms. */
static double const CT__WINDOW_S = 0.25;
/* So many times what a look costs lie between two of them. */
static double const CT__COST = 100.0;

typedef struct {
    double at_s, cost_s; /* at_s < 0: never read */
    ct_own own;
    ct_machine machine;
} ct__reading;

struct ct_load {
    ct_files *files;
    ct__reading ranks, machine; /* the latest: of the processes alone, and with the machine */
    double told_s;              /* when `shares` were told that need a look at the machine */
    ct_load_shares shares;
};

static double ct__clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static ct__reading ct__read(ct_load *load, double now_s, bool machine)
{
    ct__reading found = {.at_s = now_s};
    double began_s = ct__clock();
    ct_files_own(load->files, &found.own);
    if (machine)
        ct_files_machine(load->files, &found.machine);
    found.cost_s = ct__clock() - began_s;
    return found;
}

ct_load *ct_load_open(const char *root, const pid_t *pids, int count, bool all, pid_t host)
{
    ct_load *load = calloc(1, sizeof *load);
    if (load != NULL)
        load->files = ct_files_open(root, pids, count, all, host);
    if (load == NULL || load->files == NULL) {
        ct_load_close(load);
        return NULL;
    }
    load->ranks.at_s = load->machine.at_s = load->told_s = -1e9;
    load->shares = (ct_load_shares){-1.0, -1.0, -1.0, -1.0, -1.0};
    return load;
}

void ct_load_close(ct_load *load)
{
    if (load != NULL)
        ct_files_close(load->files);
    free(load);
}

void ct_load_begin(ct_load *load, double now_s)
{
    if (now_s - load->machine.at_s > CT__OLD_MACHINE_S)
        load->machine = load->ranks = ct__read(load, now_s, true);
    else if (now_s - load->ranks.at_s > CT__OLD_S)
        load->ranks = ct__read(load, now_s, false);
}

static double ct__share(double part_s, double whole_s)
{
    return part_s <= 0.0 ? 0.0 : part_s >= whole_s ? 1.0 : part_s / whole_s;
}

/* Ranks that are more than their processors wait for one another, and their waiting says nothing of others. Nor does the
 * rest of a time in which the job itself had all of its processors. */
static double ct__waited(const ct_load *load, const ct__reading *before, const ct__reading *now)
{
    int cpus = ct_files_cpus(load->files), ranks = ct_files_ranks(load->files);
    double wall_s = now->at_s - before->at_s;
    if (ranks > cpus || now->own.waited_s < 0.0 || now->own.used_s < 0.0)
        return -1.0;
    double waited_s = now->own.waited_s - before->own.waited_s;
    double left_s = cpus * wall_s - (now->own.used_s - before->own.used_s);
    return ct__share(waited_s < left_s ? waited_s : left_s, ranks * wall_s);
}

static double ct__grown(double before, double now, double whole)
{
    return before < 0.0 || now < 0.0 ? -1.0 : ct__share(now - before, whole);
}

static void ct__tell_machine(ct_load *load, const ct__reading *now)
{
    const ct__reading *before = &load->machine;
    double wall_s = now->at_s - before->at_s, whole_s = wall_s * ct_files_cpus(load->files);
    ct_load_shares *shares = &load->shares;
    bool known = now->own.used_s >= 0.0 && before->own.used_s >= 0.0 && now->machine.busy_s >= 0.0 && before->machine.busy_s >= 0.0;
    double own_s = now->own.used_s - before->own.used_s;
    shares->others = known ? ct__share(now->machine.busy_s - before->machine.busy_s - own_s, whole_s) : -1.0;
    shares->stolen = ct__grown(before->machine.stolen_s, now->machine.stolen_s, whole_s);
    shares->throttled = ct__grown(before->machine.throttled_s, now->machine.throttled_s, wall_s);
    shares->pressure = ct__grown(before->machine.pressure_s, now->machine.pressure_s, wall_s);
    load->told_s = now->at_s;
}

void ct_load_end(ct_load *load, double now_s, ct_load_shares *shares)
{
    double window_s = CT__COST * load->machine.cost_s > CT__WINDOW_S ? CT__COST * load->machine.cost_s : CT__WINDOW_S;
    bool machine = now_s - load->machine.at_s >= window_s;
    if (machine || now_s - load->ranks.at_s >= CT__COST * load->ranks.cost_s) {
        ct__reading now = ct__read(load, now_s, machine);
        load->shares.waited = ct__waited(load, &load->ranks, &now);
        if (machine) {
            /* Short measurements fall between two turns of the scheduler; what all of a window waited does not. */
            double lately = ct__waited(load, &load->machine, &now);
            load->shares.waited = lately > load->shares.waited ? lately : load->shares.waited;
            ct__tell_machine(load, &now);
            load->machine = now;
        }
        load->ranks = now;
    }
    if (now_s - load->told_s > 2.0 * window_s + CT__OLD_MACHINE_S)
        load->shares.others = load->shares.stolen = load->shares.throttled = load->shares.pressure = -1.0;
    *shares = load->shares;
}
