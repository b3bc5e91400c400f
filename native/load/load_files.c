#define _GNU_SOURCE
#include "load_files.h"

#include "load.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CT__CPUS = 4096, CT__PATH = 600, CT__TEXT = 1 << 16,
    CT__DEPTH = 32,   /* ancestors of a rank, and levels of its control group, that are looked at */
    CT__LIMITS = 8,   /* control groups that may hold the ranks */
    CT__TASKS = 400   /* threads whose files stay open: a process may have 1,024 */
};

typedef struct {
    int descriptor;
    bool rank;    /* of a rank, so that its waiting counts */
    bool by_tick; /* the file is /proc/PID/stat: this kernel has no schedstat */
    double used_s, waited_s; /* when it was read last: the file of a thread that has ended says nothing */
} ct__task;

struct ct_files {
    char root[CT__PATH / 2];
    int rank_count, task_count, limit_count, cpu_count;
    bool whole; /* all of the job's processes here are among the tasks */
    pid_t known[4 * CT__DEPTH]; /* processes beside the ranks that are looked at */
    int known_count;
    ct__task tasks[CT__TASKS];
    int stat, pressure, limits[CT__LIMITS]; /* < 0: there is none */
    bool allowed[CT__CPUS];
    char text[CT__TEXT];
};

static int ct__open(const ct_files *files, const char *path)
{
    char whole[CT__PATH];
    int length = snprintf(whole, sizeof whole, "%s%s", files->root, path);
    return length < (int)sizeof whole ? open(whole, O_RDONLY | O_CLOEXEC) : -1;
}

/* The beginning of a file, as text; NULL: it cannot be read. */
static const char *ct__text(ct_files *files, int descriptor)
{
    ssize_t length = descriptor < 0 ? -1 : pread(descriptor, files->text, CT__TEXT - 1, 0);
    if (length <= 0)
        return NULL;
    files->text[length] = '\0';
    return files->text;
}

static const char *ct__content(ct_files *files, const char *path)
{
    int descriptor = ct__open(files, path);
    const char *text = ct__text(files, descriptor);
    if (descriptor >= 0)
        close(descriptor);
    return text;
}

static void ct__add_task(ct_files *files, const char *path, bool rank, bool by_tick)
{
    bool fits = files->task_count < CT__TASKS;
    int descriptor = fits ? ct__open(files, path) : -1;
    if (descriptor < 0)
        files->whole = files->whole && fits && !by_tick && errno == ENOENT; /* a thread has ended since it was listed */
    else
        files->tasks[files->task_count++] = (ct__task){.descriptor = descriptor, .rank = rank, .by_tick = by_tick};
}

/* Every thread of a process, so that those of a library count too; where there is no schedstat, the process as a whole. */
static void ct__add_process(ct_files *files, pid_t pid, bool rank)
{
    char path[CT__PATH];
    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
    if (ct__content(files, path) == NULL) {
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        ct__add_task(files, path, rank, true);
        return;
    }
    snprintf(path, sizeof path, "%s/proc/%d/task", files->root, (int)pid);
    DIR *directory = opendir(path);
    files->whole = files->whole && directory != NULL;
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", (int)pid, entry->d_name);
        ct__add_task(files, path, rank, false);
    }
    if (directory != NULL)
        closedir(directory);
}

static pid_t ct__parent(ct_files *files, pid_t pid)
{
    char path[64];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    const char *text = ct__content(files, path), *rest = text == NULL ? NULL : strrchr(text, ')');
    return rest != NULL && sscanf(rest + 1, " %*c %d", &parent) == 1 ? (pid_t)parent : 0;
}

static bool ct__is_new(ct_files *files, pid_t pid, const pid_t *ranks, int count)
{
    for (int i = 0; i < count; i++)
        if (ranks[i] == pid)
            return false;
    for (int i = 0; i < files->known_count; i++)
        if (files->known[i] == pid)
            return false;
    if (files->known_count < (int)(sizeof files->known / sizeof *files->known))
        files->known[files->known_count++] = pid;
    return true;
}

/* What started the ranks: launcher, shells, colltune. The first process of the machine starts everything, so it is not. */
static void ct__add_ancestors(ct_files *files, const pid_t *ranks, int count, pid_t host)
{
    for (int i = -1; i < count; i++) {
        pid_t pid = i < 0 ? host : ct__parent(files, ranks[i]);
        for (int depth = 0; pid > 1 && depth < CT__DEPTH && ct__is_new(files, pid, ranks, count); depth++) {
            ct__add_process(files, pid, false);
            pid = ct__parent(files, pid);
        }
    }
}

/* "0-3,8" */
static void ct__allow(ct_files *files, const char *list)
{
    for (int first, last, used; sscanf(list, "%d%n", &first, &used) == 1; list++) {
        list += used;
        last = first;
        if (*list == '-' && sscanf(list + 1, "%d%n", &last, &used) == 1)
            list += 1 + used;
        for (int cpu = first; cpu >= 0 && cpu <= last && cpu < CT__CPUS; cpu++)
            files->allowed[cpu] = true;
        if (*list != ',')
            return;
    }
}

static void ct__find_cpus(ct_files *files, const pid_t *pids, int count)
{
    for (int i = 0; i < count; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/status", (int)pids[i]);
        const char *text = ct__content(files, path), *line = text == NULL ? NULL : strstr(text, "Cpus_allowed_list:");
        if (line != NULL)
            ct__allow(files, line + strlen("Cpus_allowed_list:"));
    }
    ct_machine once;
    ct_files_machine(files, &once); /* counts those that there are */
}

static bool ct__add_limit(ct_files *files, const char *mount, const char *group)
{
    char path[CT__PATH];
    if (snprintf(path, sizeof path, "%s%s/cpu.stat", mount, group) >= (int)sizeof path)
        return false;
    int descriptor = files->limit_count < CT__LIMITS ? ct__open(files, path) : -1;
    const char *text = ct__text(files, descriptor);
    if (text != NULL && strstr(text, "throttled_") != NULL) {
        files->limits[files->limit_count++] = descriptor;
        return true;
    }
    if (descriptor >= 0)
        close(descriptor);
    return false;
}

/* The control groups of a rank that may be limited: its own, and those that it lies in. */
static void ct__find_limits(ct_files *files, pid_t pid)
{
    static const char *const MOUNTS[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu",
                                         "/sys/fs/cgroup/cpu,cpuacct"};
    char path[64], group[CT__PATH / 2];
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    const char *text = ct__content(files, path);
    char *lines = text == NULL ? NULL : strdup(text), *rest = lines;
    for (char *line; lines != NULL && (line = strsep(&rest, "\n")) != NULL;) {
        bool second = strncmp(line, "0::/", 4) == 0;
        char *controllers = strchr(line, ':'), *name = controllers == NULL ? NULL : strchr(controllers + 1, ':');
        if (name == NULL || strlen(name + 1) >= sizeof group)
            continue;
        *name = '\0';
        if (!second && strcmp(controllers + 1, "cpu") != 0 && strncmp(controllers + 1, "cpu,", 4) != 0)
            continue;
        strcpy(group, name + 1);
        for (int level = 0; level < CT__DEPTH; level++) {
            char *slash = strrchr(group, '/');
            int mount = second ? 0 : 2, last = mount + 1; /* one directory may be mounted under two names */
            if (!ct__add_limit(files, MOUNTS[mount], strcmp(group, "/") == 0 ? "" : group))
                ct__add_limit(files, MOUNTS[last], strcmp(group, "/") == 0 ? "" : group);
            if (slash == NULL || strcmp(group, "/") == 0)
                break;
            slash[slash == group] = '\0';
        }
    }
    free(lines);
}

ct_files *ct_files_open(const char *root, const pid_t *pids, int count, bool all, pid_t host)
{
    ct_files *files = calloc(1, sizeof *files);
    if (files == NULL || strlen(root) >= sizeof files->root) {
        free(files);
        return NULL;
    }
    strcpy(files->root, root);
    files->whole = all;
    files->rank_count = count;
    for (int i = 0; i < count; i++)
        ct__add_process(files, pids[i], true);
    ct__add_ancestors(files, pids, count, host);
    files->stat = ct__open(files, "/proc/stat");
    files->pressure = ct__open(files, "/proc/pressure/cpu");
    ct__find_cpus(files, pids, count);
    if (count > 0)
        ct__find_limits(files, pids[0]);
    return files;
}

void ct_files_close(ct_files *files)
{
    if (files == NULL)
        return;
    for (int i = 0; i < files->task_count; i++)
        close(files->tasks[i].descriptor);
    for (int i = 0; i < files->limit_count; i++)
        close(files->limits[i]);
    if (files->stat >= 0)
        close(files->stat);
    if (files->pressure >= 0)
        close(files->pressure);
    free(files);
}

int ct_files_cpus(const ct_files *files) { return files->cpu_count; }

int ct_files_ranks(const ct_files *files) { return files->rank_count; }

static double ct__ticks(void) { return (double)sysconf(_SC_CLK_TCK); }

double ct_files_tick_s(void) { return 1.0 / ct__ticks(); }

static void ct__look(ct_files *files, ct__task *task)
{
    unsigned long long run, other;
    const char *text = ct__text(files, task->descriptor), *rest = text == NULL ? NULL : strrchr(text, ')');
    if (task->by_tick && rest != NULL &&
        sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &run, &other) == 2) {
        task->used_s = (double)(run + other) / ct__ticks();
    } else if (!task->by_tick && text != NULL && sscanf(text, "%llu %llu", &run, &other) == 2) {
        task->used_s = 1e-9 * (double)run;
        task->waited_s = 1e-9 * (double)other;
    }
}

void ct_files_own(ct_files *files, ct_own *own)
{
    bool waiting_known = files->task_count > 0;
    own->used_s = own->waited_s = 0.0;
    for (int i = 0; i < files->task_count; i++) {
        ct__task *task = &files->tasks[i];
        ct__look(files, task);
        own->used_s += task->used_s;
        own->waited_s += task->rank ? task->waited_s : 0.0;
        waiting_known = waiting_known && !(task->rank && task->by_tick);
    }
    own->used_s = files->whole ? own->used_s : -1.0;
    own->waited_s = waiting_known ? own->waited_s : -1.0;
}

static double ct__throttled(ct_files *files)
{
    double found_s = files->limit_count > 0 ? 0.0 : -1.0;
    for (int i = 0; i < files->limit_count; i++) {
        unsigned long long time;
        const char *text = ct__text(files, files->limits[i]), *at = text == NULL ? NULL : strstr(text, "throttled_");
        if (at != NULL && sscanf(at, "throttled_usec %llu", &time) == 1)
            found_s += 1e-6 * (double)time;
        else if (at != NULL && sscanf(at, "throttled_time %llu", &time) == 1)
            found_s += 1e-9 * (double)time;
    }
    return found_s;
}

void ct_files_machine(ct_files *files, ct_machine *machine)
{
    unsigned long long user, nice, system, stolen, microseconds, busy = 0, all_stolen = 0;
    const char *text = ct__text(files, files->stat);
    int cpus = 0;
    for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n'), line += line != NULL) {
        int cpu;
        if (strncmp(line, "cpu", 3) != 0)
            break;
        stolen = 0;
        if (line[3] != ' ' && sscanf(line, "cpu%d %llu %llu %llu %*u %*u %*u %*u %llu", &cpu, &user, &nice, &system, &stolen) >= 4 && cpu >= 0 &&
            cpu < CT__CPUS && files->allowed[cpu]) {
            cpus++;
            busy += user + nice + system;
            all_stolen += stolen;
        }
    }
    files->cpu_count = cpus;
    machine->busy_s = cpus > 0 ? (double)busy / ct__ticks() : -1.0;
    machine->stolen_s = cpus > 0 ? (double)all_stolen / ct__ticks() : -1.0;
    machine->throttled_s = ct__throttled(files);
    text = ct__text(files, files->pressure);
    const char *total = text == NULL ? NULL : strstr(text, "total=");
    machine->pressure_s = total != NULL && sscanf(total, "total=%llu", &microseconds) == 1 ? 1e-6 * (double)microseconds : -1.0;
}

unsigned long long ct_load_machine(void)
{
    char id[64] = "";
    int descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = descriptor < 0 ? -1 : read(descriptor, id, sizeof id - 1);
    if (descriptor >= 0)
        close(descriptor);
    unsigned long long hash = 14695981039346656037ULL; /* FNV-1a */
    for (ssize_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)id[i]) * 1099511628211ULL;
    return length > 0 ? hash : 0;
}
