/* What a process may be beside MPI: threads, signals, children, other stacks, traps; and the ways in which it may end. */
#define _GNU_SOURCE
#include "guest_cases.h"

#include <dlfcn.h>
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { THREADS = 3, STACK = 256 << 10 };

static pthread_mutex_t ct__turn = PTHREAD_MUTEX_INITIALIZER;
static MPI_Comm ct__comms[THREADS];
static long ct__sums[THREADS];
static bool ct__in_turn, ct__races;
static int ct__shared;

/* On communicators that come and go. */
static void *ct__work(void *number)
{
    int i = (int)(long)number;
    MPI_Comm comm = MPI_COMM_NULL;
    for (int round = 0; round < ROUNDS; round++) {
        if (ct__in_turn)
            pthread_mutex_lock(&ct__turn);
        if (round % 3 == 0)
            MPI_Comm_dup(ct__comms[i], &comm);
        ct__sums[i] += exchange_once(comm, round);
        if (round % 3 == 2)
            MPI_Comm_free(&comm);
        if (ct__in_turn)
            pthread_mutex_unlock(&ct__turn);
        if (ct__races)
            ct__shared++; /* for the tool that looks for races */
    }
    return NULL;
}

/* Each thread on a communicator of its own. */
static long ct__threads(bool at_once)
{
    pthread_t threads[THREADS];
    long sum = 0;
    for (int i = 0; i < THREADS; i++) {
        ct__sums[i] = 0;
        MPI_Comm_dup(MPI_COMM_WORLD, &ct__comms[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, ct__work, (void *)(long)i);
        if (!at_once)
            pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        if (at_once)
            pthread_join(threads[i], NULL);
        sum = (sum * 13 + ct__sums[i]) % 1000000007L;
        MPI_Comm_free(&ct__comms[i]);
    }
    return sum;
}

static long ct__threads_in_turn(int rank, int size)
{
    (void)rank, (void)size;
    ct__in_turn = true;
    return ct__threads(false);
}

static volatile sig_atomic_t ct__alarms;
static void ct__alarm(int number) { (void)number, ct__alarms++; }

/* A timer interrupts system calls every few hundred microseconds, and handlers stay what they are. */
static long ct__signals(int rank, int size)
{
    struct sigaction mine = {.sa_handler = ct__alarm}, before, after;
    struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    sigset_t blocked, there;
    (void)rank, (void)size;
    sigaction(SIGALRM, &mine, &before);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    long sum = exchange(MPI_COMM_WORLD);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, &after);
    pthread_sigmask(SIG_UNBLOCK, &blocked, &there);
    return sum + (after.sa_handler == ct__alarm) + 2 * sigismember(&there, SIGUSR2) + 4 * sigismember(&there, SIGTERM) +
           8 * (ct__alarms > 0);
}

static long ct__children(int rank, int size)
{
    long sum = 0;
    char *words[] = {"sh", "-c", "exit 3", NULL};
    (void)rank, (void)size;
    for (int round = 0; round < 3; round++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            _exit(round);
        sum += exchange_once(MPI_COMM_WORLD, round);
        waitpid(child, &status, 0);
        sum += WEXITSTATUS(status);
        posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ);
        waitpid(child, &status, 0);
        sum += WEXITSTATUS(status) + system("exit 2") / 256;
    }
    return sum;
}

static ucontext_t ct__main, ct__other;
static long ct__on_stack;
static void ct__run_there(void) { ct__on_stack = exchange(MPI_COMM_WORLD); }

static long ct__other_stacks(int rank, int size)
{
    pthread_attr_t small;
    pthread_t thread;
    (void)rank, (void)size;
    getcontext(&ct__other);
    ct__other.uc_stack.ss_sp = malloc(STACK);
    ct__other.uc_stack.ss_size = STACK;
    ct__other.uc_link = &ct__main;
    makecontext(&ct__other, ct__run_there, 0);
    swapcontext(&ct__main, &ct__other);
    free(ct__other.uc_stack.ss_sp);
    ct__sums[0] = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &ct__comms[0]);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    pthread_create(&thread, &small, ct__work, (void *)0L);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&small);
    MPI_Comm_free(&ct__comms[0]);
    return ct__on_stack + ct__sums[0];
}

/* Faults of floating point end the program, as with -ffpe-trap, and it rounds in a way of its own. */
static long ct__floating_point(int rank, int size)
{
    (void)rank, (void)size;
    feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
    fesetround(FE_UPWARD);
    double in[2] = {0.1 * rank, 1e300}, out[2];
    long sum = exchange(MPI_COMM_WORLD);
    for (int round = 0; round < 200; round++)
        MPI_Allreduce(in, out, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    sum += (fegetround() == FE_UPWARD) + 2 * (fegetexcept() == (FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW));
    fesetround(FE_TONEAREST);
    fedisableexcept(FE_ALL_EXCEPT);
    return sum;
}

/* What the C library keeps for the program alone. */
static long ct__own_state(int rank, int size)
{
    long sum = 0;
    char text[] = "a,b,c", *word = strtok(text, ",");
    (void)size;
    srand(5 + (unsigned)rank);
    srandom(7), srand48(9);
    errno = 0;
    sum += exchange(MPI_COMM_WORLD) + rand() % 1000 + random() % 1000 + lrand48() % 1000;
    word = strtok(NULL, ",");
    sum += word != NULL && *word == 'b';
    sum += getenv("COLLTUNE_OF_NOBODY") != NULL;
    setenv("LD_PRELOAD", "/nothing", 1);
    sum += exchange_once(MPI_COMM_WORLD, 2);
    return sum;
}

static const guest_case CASES[] = {
    {"threads_in_turn", ct__threads_in_turn},
    {"signals", ct__signals},
    {"children", ct__children},
    {"other_stacks", ct__other_stacks},
    {"floating_point", ct__floating_point},
    {"own_state", ct__own_state},
};

static void *ct__abort(void *argument)
{
    (void)argument;
    MPI_Abort(MPI_COMM_WORLD, 9);
    return NULL;
}

static void ct__finalize(void)
{
    int ended;
    MPI_Finalized(&ended);
    if (!ended)
        MPI_Finalize();
}

/* Nothing but sessions, two of them, of which the first ends before the second. */
static long ct__sessions(void)
{
    MPI_Session sessions[2];
    MPI_Group group;
    MPI_Comm comms[2];
    long sum = 0;
    for (int i = 0; i < 2; i++) {
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &sessions[i]);
        MPI_Group_from_session_pset(sessions[i], "mpi://WORLD", &group);
        MPI_Comm_create_from_group(group, "guest", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comms[i]);
        MPI_Group_free(&group);
        sum += exchange(comms[i]);
    }
    for (int i = 0; i < 2; i++) {
        MPI_Comm_free(&comms[i]);
        MPI_Session_finalize(&sessions[i]);
    }
    return sum;
}

/* For another program that opens this one as a library. */
__attribute__((visibility("default"))) long guest_plugged(void);
long guest_plugged(void) { return exchange(MPI_COMM_WORLD); }

static long ct__plug_in(const char *path)
{
    long (*plugged)(void), sum = -1;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return -2;
    *(void **)&plugged = dlsym(library, "guest_plugged");
    sum = plugged() + exchange(MPI_COMM_WORLD);
    dlclose(library);
    return sum + exchange(MPI_COMM_WORLD);
}

static void ct__end(const char *way, int argc, char **argv)
{
    int rank, provided;
    pthread_t thread;
    if (strcmp(way, "sessions_alone") == 0) {
        printf("%ld\n", ct__sessions());
        return;
    }
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("rank=%d %ld\n", rank, exchange(MPI_COMM_WORLD));
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(way, "abort_by_a_thread") == 0 && rank == 1) {
        pthread_create(&thread, NULL, ct__abort, NULL);
        pthread_join(thread, NULL);
    } else if (strcmp(way, "killed") == 0 && rank == 1)
        kill(getpid(), SIGKILL);
    else if (strcmp(way, "exit_without_finalize") == 0)
        exit(3);
    else if (strcmp(way, "quick_exit") == 0)
        quick_exit(4);
    else if (strcmp(way, "finalize_at_exit") == 0)
        atexit(ct__finalize), exit(0);
    else if (strcmp(way, "sessions_beside") == 0)
        printf("%ld\n", ct__sessions());
    else if ((ct__races = strcmp(way, "threads_that_race") == 0) || strcmp(way, "threads_at_once") == 0)
        printf("rank=%d %ld\n", rank, ct__threads(true));
    else if (strcmp(way, "plug_in") == 0 && argc > 2)
        printf("rank=%d %ld\n", rank, ct__plug_in(argv[2]));
    else
        MPI_Barrier(MPI_COMM_WORLD); /* of those that wait for the rank that ends */
    MPI_Finalize();
}

int main(int argc, char **argv)
{
    int provided;
    if (strcmp(argv[1], "all") != 0) {
        ct__end(argv[1], argc, argv);
        return 0;
    }
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    return run_cases(CASES, sizeof CASES / sizeof *CASES, argc, argv);
}
