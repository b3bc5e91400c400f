/* Preloaded into ranks that share cores: round robin of equal turns between MPI_Init and MPI_Finalize.
 *
 * Not before: MPICH spins within MPI_Init, where turns may take minutes. Without the right to real-time
 * scheduling nothing happens. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>

static void ct__turns(int on)
{
    struct sched_param parameters = {.sched_priority = on ? 1 : 0};
    if (sched_setscheduler(0, on ? SCHED_RR : SCHED_OTHER, &parameters) != 0)
        fprintf(stderr, "realtime: the kernel does not grant real-time scheduling\n");
    if (on)
        prctl(PR_SET_TIMERSLACK, 1UL); /* a rank that sleeps for microseconds is not to wake up 50 us late */
}

int MPI_Init(int *argc, char ***argv)
{
    int (*next)(int *, char ***) = (int (*)(int *, char ***))dlsym(RTLD_NEXT, "MPI_Init");
    int code = next(argc, argv);
    ct__turns(1);
    return code;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int (*next)(int *, char ***, int, int *) =
        (int (*)(int *, char ***, int, int *))dlsym(RTLD_NEXT, "MPI_Init_thread");
    int code = next(argc, argv, required, provided);
    ct__turns(1);
    return code;
}

int MPI_Finalize(void)
{
    int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "MPI_Finalize");
    ct__turns(0);
    return next();
}
