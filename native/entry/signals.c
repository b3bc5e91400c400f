/* A program that is ended from outside, or by its own fault, still leaves what was noted.
 *
 * Only signals that would end the program are taken: those that nobody handles when MPI_Init returns, and only if the
 * core has something to write. The handler writes, and then the signal does what it would have done without us.
 * A program, or a library, that asks for the handler of such a signal is told SIG_DFL, which is what holds for it: a
 * handler that it installs later, and what it chains to, are as without us. */
#define _GNU_SOURCE
#include "entry.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    int number;
    const char *name;
} CT__SIGNALS[] = {{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"},   {SIGHUP, "SIGHUP"}, {SIGSEGV, "SIGSEGV"},
                   {SIGBUS, "SIGBUS"},   {SIGABRT, "SIGABRT"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}};
enum { CT__COUNT = sizeof CT__SIGNALS / sizeof *CT__SIGNALS };

typedef void ct__handler(int);
typedef int ct__set_action(int, const struct sigaction *, struct sigaction *);
typedef ct__handler *ct__set_handler(int, ct__handler *);

static _Atomic(ct__set_action *) ct__sigaction;
static pid_t ct__owner; /* a process that the program forks has our handlers, but no ranks of its own */
static void (*_Atomic ct__last_words)(const char *);
static atomic_flag ct__writing = ATOMIC_FLAG_INIT;

/* sigaction may be called before a sanitizer, with which all this is compiled in tests, is ready. */
#define CT__EARLY __attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))

CT__EARLY static void *ct__next(const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    if (symbol == NULL)
        abort(); /* no libc without it */
    return symbol;
}

CT__EARLY static int ct__act(int number, const struct sigaction *new, struct sigaction *old)
{
    ct__set_action *real = atomic_load(&ct__sigaction);
    if (real == NULL) {
        void *symbol = ct__next("sigaction");
        memcpy(&real, &symbol, sizeof real);
        atomic_store(&ct__sigaction, real);
    }
    return real(number, new, old);
}

static void ct__write(const char *why)
{
    void (*last_words)(const char *) = atomic_load(&ct__last_words);
    if (last_words == NULL || getpid() != ct__owner || atomic_flag_test_and_set(&ct__writing))
        return;
    last_words(why);
    atomic_flag_clear(&ct__writing);
}

static const char *ct__name(int number)
{
    for (int i = 0; i < CT__COUNT; i++)
        if (CT__SIGNALS[i].number == number)
            return CT__SIGNALS[i].name;
    return "signal";
}

/* Of an instruction that failed: it fails again when the handler returns. */
static bool ct__is_fault(int number, const siginfo_t *about)
{
    return about->si_code > 0 && (number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL);
}

static void ct__handle(int number, siginfo_t *about, void *context)
{
    struct sigaction now, plain = {.sa_handler = SIG_DFL};
    int error = errno;
    (void)context;
    ct__write(ct__name(number));
    /* Whoever set a handler of its own by other means than sigaction, and calls this one from it, goes on; but from a
     * fault nobody can go on. */
    bool ours = ct__act(number, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == ct__handle;
    if (ours || ct__is_fault(number, about)) {
        sigemptyset(&plain.sa_mask);
        ct__act(number, &plain, NULL);
        if (!ct__is_fault(number, about) &&
            syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), number, about) != 0)
            raise(number);
    }
    errno = error;
}

void ct_signals_take(void (*last_words)(const char *))
{
    ct__owner = getpid();
    atomic_store(&ct__last_words, last_words);
    if (last_words == NULL)
        return;
    for (int i = 0; i < CT__COUNT; i++) {
        /* SA_ONSTACK: of a stack that is full nothing could be written. The mask: nothing interrupts the writing. */
        struct sigaction own = {.sa_sigaction = ct__handle, .sa_flags = SA_SIGINFO | SA_ONSTACK}, before;
        sigfillset(&own.sa_mask);
        if (ct__act(CT__SIGNALS[i].number, NULL, &before) == 0 && !(before.sa_flags & SA_SIGINFO) &&
            before.sa_handler == SIG_DFL)
            ct__act(CT__SIGNALS[i].number, &own, NULL);
    }
}

void ct_signals_give_back(void)
{
    struct sigaction now, plain = {.sa_handler = SIG_DFL};
    atomic_store(&ct__last_words, NULL);
    sigemptyset(&plain.sa_mask);
    for (int i = 0; i < CT__COUNT; i++)
        if (ct__act(CT__SIGNALS[i].number, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
            now.sa_sigaction == ct__handle)
            ct__act(CT__SIGNALS[i].number, &plain, NULL);
}

CT__EARLY CT_EXPORT int sigaction(int number, const struct sigaction *restrict new, struct sigaction *restrict old)
{
    int code = ct__act(number, new, old);
    if (code == 0 && old != NULL && (old->sa_flags & SA_SIGINFO) && old->sa_sigaction == ct__handle) {
        *old = (struct sigaction){.sa_handler = SIG_DFL};
        sigemptyset(&old->sa_mask);
    }
    return code;
}

CT__EARLY static ct__handler *ct__signal(const char *name, int number, ct__handler *handler)
{
    ct__set_handler *real;
    void *symbol = ct__next(name);
    memcpy(&real, &symbol, sizeof real);
    ct__handler *old = real(number, handler);
    return old == (ct__handler *)(void (*)(void))ct__handle ? SIG_DFL : old;
}

CT__EARLY CT_EXPORT ct__handler *signal(int number, ct__handler *handler) { return ct__signal("signal", number, handler); }
/* signal() of a program that is compiled for System V or strictly for X/Open */
CT__EARLY CT_EXPORT ct__handler *__sysv_signal(int number, ct__handler *handler)
{
    return ct__signal("__sysv_signal", number, handler);
}

/* exit() without MPI_Finalize: also the way in which a library ends a program after an error. */
__attribute__((destructor)) static void ct__exit(void) { ct__write("exit without MPI_Finalize"); }

/* Nothing follows: what was written has to stay. */
void ct_signals_aborted(void)
{
    ct__write("MPI_Abort");
    atomic_store(&ct__last_words, NULL);
}
