/* Preloaded into ranks that share cores of one machine: round robin of equal turns between MPI_Init and MPI_Finalize.
 *
 * Not before all ranks have left MPI_Init, where MPICH spins, and for all of them at once: a rank that waits in real time
 * leaves a twentieth of the cores to those that still lack it, and a launch then takes a second longer. So the last one
 * that leaves gives the turns to all, which sleep meanwhile. Without the right to real-time scheduling nothing happens. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { CT__RANKS = 1000 };

/* Of the ranks of a job, in a file beside this library. */
typedef struct {
    atomic_int numbered, waiting, started;
    pid_t pids[CT__RANKS];
} ct__job;

static void ct__turns(pid_t pid, int on)
{
    struct sched_param parameters = {.sched_priority = on ? 1 : 0};
    if (sched_setscheduler(pid, on ? SCHED_RR : SCHED_OTHER, &parameters) != 0)
        fprintf(stderr, "realtime: the kernel does not grant real-time scheduling\n");
}

/* Python opens the MPI for itself alone, so that it is not among the libraries that come next. */
static void *ct__next(const char *name)
{
    static const char *const libraries[] = {"libmpi.so.12", "libmpi.so.40"};
    void *symbol = dlsym(RTLD_NEXT, name), *library;
    for (int i = 0; i < 2 && symbol == NULL; i++)
        if ((library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD)) != NULL)
            symbol = dlsym(library, name);
    return symbol;
}

/* Of what all ranks of a job have in common: by PMIx, else the process number of their mpiexec. "": nothing. */
static void ct__name(char *name, size_t size)
{
    const char *space = getenv("PMIX_NAMESPACE");
    snprintf(name, size, "%s", space == NULL ? "" : space);
    int parent = getppid();
    while (name[0] == '\0' && parent > 1) {
        char path[64], program[64] = "";
        int pid = parent;
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        FILE *file = fopen(path, "r");
        if (file == NULL || fscanf(file, "%*d (%63[^)]) %*c %d", program, &parent) != 2)
            parent = 0;
        if (file != NULL)
            fclose(file);
        if (strncmp(program, "mpiexec", 7) == 0 || strncmp(program, "mpirun", 6) == 0)
            snprintf(name, size, "%d", pid);
    }
}

static void ct__start(void)
{
    const char *of_mpich = getenv("PMI_SIZE"), *of_openmpi = getenv("OMPI_COMM_WORLD_SIZE");
    int size = atoi(of_mpich != NULL ? of_mpich : of_openmpi != NULL ? of_openmpi : "1");
    char name[256], path[4096];
    Dl_info here;
    ct__name(name, sizeof name);
    prctl(PR_SET_TIMERSLACK, 1UL); /* a rank that sleeps for microseconds is not to wake up 50 us late */
    if (size < 2 || size > CT__RANKS || name[0] == '\0' || dladdr((void *)ct__start, &here) == 0) {
        ct__turns(0, 1);
        return;
    }
    snprintf(path, sizeof path, "%s-%s", here.dli_fname, name);
    int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ct__job *job = descriptor < 0 || ftruncate(descriptor, sizeof *job) != 0
                       ? MAP_FAILED
                       : mmap(NULL, sizeof *job, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (descriptor >= 0)
        close(descriptor);
    if (job == MAP_FAILED) {
        ct__turns(0, 1);
        return;
    }
    job->pids[atomic_fetch_add(&job->numbered, 1)] = getpid();
    if (atomic_fetch_add(&job->waiting, 1) + 1 == size) {
        unlink(path);
        for (int i = 0; i < size; i++)
            ct__turns(job->pids[i], 1);
        atomic_store(&job->started, 1);
    }
    while (atomic_load(&job->started) == 0)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    munmap(job, sizeof *job);
}

int MPI_Init(int *argc, char ***argv)
{
    int code = ((int (*)(int *, char ***))ct__next("MPI_Init"))(argc, argv);
    ct__start();
    return code;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int code = ((int (*)(int *, char ***, int, int *))ct__next("MPI_Init_thread"))(argc, argv, required, provided);
    ct__start();
    return code;
}

int MPI_Finalize(void)
{
    ct__turns(0, 0);
    return ((int (*)(void))ct__next("MPI_Finalize"))();
}
