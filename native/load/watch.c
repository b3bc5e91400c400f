#define _GNU_SOURCE
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Who measures here, where it is on this machine: it may be no ancestor of the ranks. */
static pid_t ct__host(unsigned long long machine)
{
    unsigned long long of;
    long pid;
    const char *text = getenv("COLLTUNE_HOST");
    return text != NULL && sscanf(text, "%llx:%ld", &of, &pid) == 2 && of == machine && pid > 1 ? (pid_t)pid : 0;
}

/* Ranks in another process namespace are known by number alone: what they use cannot be told from what others use. */
int ct_watch_make(MPI_Comm world, ct_watch *watch)
{
    enum { MACHINE, NAMESPACE, PID, FACTS };
    struct stat space = {0};
    stat("/proc/self/ns/pid", &space);
    unsigned long long own[FACTS] = {ct_load_machine(), space.st_ino, (unsigned long long)getpid()};
    *watch = (ct_watch){.whole = true};
    MPI_Comm_rank(world, &watch->rank);
    MPI_Comm_size(world, &watch->size);
    size_t size = (size_t)watch->size;
    unsigned long long *all = malloc(sizeof own * size);
    watch->pids = malloc(sizeof *watch->pids * size);
    watch->machine_of = malloc(sizeof *watch->machine_of * size);
    int code = all && watch->pids && watch->machine_of ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (code == MPI_SUCCESS)
        code = MPI_Allgather(own, FACTS, MPI_UNSIGNED_LONG_LONG, all, FACTS, MPI_UNSIGNED_LONG_LONG, world);
    for (int rank = 0; rank < watch->size && code == MPI_SUCCESS; rank++) {
        const unsigned long long *facts = all + FACTS * rank;
        watch->machine_of[rank] = facts[MACHINE];
        if (facts[MACHINE] != own[MACHINE])
            continue;
        if (facts[NAMESPACE] == own[NAMESPACE])
            watch->pids[watch->count++] = (pid_t)facts[PID];
        else
            watch->whole = false;
    }
    free(all);
    return code;
}

static void ct__open(ct_watch *watch, bool leads)
{
    unsigned long long machine = watch->machine_of[watch->rank];
    if (leads && watch->load == NULL && machine != 0)
        watch->load = ct_load_open("", watch->pids, watch->count, watch->whole, ct__host(machine), MPI_Wtime());
}

/* Whether this rank is the first of all on its machine. */
static bool ct__is_first(const ct_watch *watch)
{
    int first = 0;
    while (watch->machine_of[first] != watch->machine_of[watch->rank])
        first++;
    return first == watch->rank;
}

void ct_watch_start(ct_watch *watch) { ct__open(watch, ct__is_first(watch)); }

void ct_watch_free(ct_watch *watch)
{
    ct_load_close(watch->load);
    free(watch->pids);
    free(watch->machine_of);
    *watch = (ct_watch){0};
}

bool ct_watch_leads(const ct_watch *watch, const int *members, int count)
{
    for (int i = 0; i < count; i++)
        if (watch->machine_of[members[i]] == watch->machine_of[watch->rank])
            return members[i] == watch->rank;
    return false;
}

static double ct__switches(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_nivcsw : 0.0;
}

double ct_watch_begin(ct_watch *watch, bool leads)
{
    ct__open(watch, leads);
    if (leads && watch->load != NULL)
        ct_load_begin(watch->load, MPI_Wtime());
    return ct__switches();
}

static int ct__tell(const ct_load_shares *shares, int node, double switches, MPI_Comm comm, char *text, int size)
{
    static const char *const NAMES[] = {"waited", "others", "stolen", "throttled", "pressure", "switches"};
    enum { COUNT = sizeof NAMES / sizeof *NAMES };
    struct {
        double value;
        int node;
    } own[COUNT], worst[COUNT];
    double values[COUNT] = {shares->waited, shares->others, shares->stolen, shares->throttled, shares->pressure, switches};
    for (int i = 0; i < COUNT; i++)
        own[i].value = values[i], own[i].node = node;
    int rank, used = 0, code = MPI_Reduce(own, worst, COUNT, MPI_DOUBLE_INT, MPI_MAXLOC, 0, comm);
    MPI_Comm_rank(comm, &rank);
    text[0] = '\0';
    for (int i = 0; i < COUNT && code == MPI_SUCCESS && rank == 0 && used < size; i++)
        if (worst[i].value >= 0.0)
            used += snprintf(text + used, (size_t)(size - used), " %s=%.4g@%d", NAMES[i], worst[i].value, worst[i].node);
    return code;
}

int ct_watch_tell(ct_watch *watch, bool leads, int node, double begun, MPI_Comm comm, char *text, int size)
{
    ct_load_shares shares = CT_LOAD_UNKNOWN;
    if (leads && watch->load != NULL)
        ct_load_end(watch->load, MPI_Wtime(), &shares);
    return ct__tell(&shares, node, ct__switches() - begun, comm, text, size);
}

/* No rank goes before all have looked: what a process used that has ended is not known, and would count as others'. */
int ct_watch_tell_whole(ct_watch *watch, int node, MPI_Comm world, char *text, int size)
{
    ct_load_shares shares = CT_LOAD_UNKNOWN;
    if (ct__is_first(watch) && watch->load != NULL) {
        for (double left_s; (left_s = ct_load_missing_s(watch->load, MPI_Wtime())) > 0.0;)
            nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * left_s) + 1000}, NULL);
        ct_load_whole(watch->load, MPI_Wtime(), &shares);
    }
    int code = MPI_Barrier(world);
    return code == MPI_SUCCESS ? ct__tell(&shares, node, ct__switches(), world, text, size) : code;
}

void ct_watch_glance(ct_watch *watch, int node, char *text, int size)
{
    ct_load_shares shares = CT_LOAD_UNKNOWN;
    text[0] = '\0';
    if (watch->load != NULL)
        ct_load_end(watch->load, MPI_Wtime(), &shares);
    if (shares.others >= 0.0)
        snprintf(text, (size_t)size, " others=%.4g@%d", shares.others, node);
}
