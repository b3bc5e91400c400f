/* What a program does with signals of its own, in the midst of collectives: `guest_signals MODE`. */
#define _GNU_SOURCE
#include "guest_cases.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int ct__rank;
static volatile sig_atomic_t ct__signals;
static char *ct__page;
static long ct__page_size;

static void ct__checkpoint(int number)
{
    (void)number;
    ct__signals++;
}

static void ct__let_in(int number, siginfo_t *about, void *context)
{
    (void)context;
    if (number != SIGSEGV || about->si_addr != ct__page)
        _exit(9);
    ct__signals++;
    mprotect(ct__page, (size_t)ct__page_size, PROT_READ | PROT_WRITE);
}

static struct sigaction ct__chain;

static void ct__chaining(int number, siginfo_t *about, void *context)
{
    ct__signals++;
    if (ct__chain.sa_flags & SA_SIGINFO)
        ct__chain.sa_sigaction(number, about, context);
    else if (ct__chain.sa_handler != SIG_DFL && ct__chain.sa_handler != SIG_IGN)
        ct__chain.sa_handler(number);
}

static int ct__exchanges(int count)
{
    int wrong = 0;
    for (int i = 0; i < count; i++) {
        MPI_Comm twin; /* on which the live selector has to set up anew */
        MPI_Comm_dup(MPI_COMM_WORLD, &twin);
        wrong += wrong_results(MPI_COMM_WORLD, i) + wrong_results(twin, i);
        MPI_Comm_free(&twin);
    }
    return wrong;
}

static void ct__take(const char *mode)
{
    struct sigaction own = {.sa_flags = SA_SIGINFO};
    if (strncmp(mode, "handled", 7) == 0)
        signal(SIGTERM, ct__checkpoint);
    if (strncmp(mode, "barrier", 7) == 0) {
        own.sa_sigaction = ct__let_in;
        sigaction(SIGSEGV, &own, NULL);
    }
    if (strcmp(mode, "chained-after") == 0) {
        own.sa_sigaction = ct__chaining;
        sigaction(SIGTERM, &own, &ct__chain);
    }
}

/* The signals that are caught, as the kernel knows them. */
static void ct__show(void)
{
    char line[200];
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "SigCgt:", 7) == 0)
            printf("caught=%s", line + 7);
    if (file != NULL)
        fclose(file);
}

static int ct__meet(const char *mode)
{
    struct sigaction old;
    if (strncmp(mode, "handled", 7) == 0 || strncmp(mode, "chained", 7) == 0)
        return raise(SIGTERM), ct__signals != 1;
    if (strncmp(mode, "barrier", 7) == 0)
        return ct__page[0] = 1, ct__signals != 1;
    if (strcmp(mode, "asked") == 0) { /* what a library does that leaves handlers of others alone */
        int other = sigaction(SIGTERM, NULL, &old) != 0 || (old.sa_flags & SA_SIGINFO) || old.sa_handler != SIG_DFL;
        other += signal(SIGTERM, ct__checkpoint) != SIG_DFL;
        raise(SIGTERM);
        return other + (ct__signals != 1);
    }
    if (strcmp(mode, "shown") == 0)
        ct__show();
    if (strcmp(mode, "crash") == 0)
        *(volatile char *)ct__page = 1;
    if (strcmp(mode, "fork") == 0)
        for (int ending = 0; ending < 2; ending++) {
            pid_t child = fork();
            int status;
            if (child == 0 && ending == 0)
                exit(0);
            if (child == 0)
                raise(SIGTERM);
            waitpid(child, &status, 0);
            if (ending == 1 && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM))
                return 1;
        }
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "none";
    bool before = strstr(mode, "before") != NULL;
    ct__page_size = sysconf(_SC_PAGESIZE);
    ct__page = mmap(NULL, (size_t)ct__page_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (before)
        ct__take(mode);
    MPI_Init(&argc, &argv);
    if (!before)
        ct__take(mode);
    MPI_Comm_rank(MPI_COMM_WORLD, &ct__rank);
    int wrong = ct__exchanges(4);
    if (ct__rank == 1)
        wrong += ct__meet(mode);
    wrong += ct__exchanges(4);
    printf("rank=%d wrong=%d\n", ct__rank, wrong);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
