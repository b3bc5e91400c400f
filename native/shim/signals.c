/* A program that is ended from outside, or by its own fault, still leaves what was noted. */
#define _GNU_SOURCE
#include "shim.h"

#include <signal.h>
#include <stdlib.h>

static const struct {
    int number;
    const char *name;
} CT__SIGNALS[] = {{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"},   {SIGHUP, "SIGHUP"}, {SIGSEGV, "SIGSEGV"},
                   {SIGBUS, "SIGBUS"},   {SIGABRT, "SIGABRT"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}};
enum { CT__COUNT = sizeof CT__SIGNALS / sizeof *CT__SIGNALS };
static struct sigaction ct__before[CT__COUNT];

/* Leaves the rest to whoever handled the signal before us: it comes again once this returns. */
static void ct__handle(int number)
{
    for (int i = 0; i < CT__COUNT; i++)
        if (CT__SIGNALS[i].number == number) {
            if (ct_ready)
                ct_modules_die(CT__SIGNALS[i].name);
            sigaction(number, &ct__before[i], NULL);
        }
    raise(number);
}

void ct_signals_take(void)
{
    for (int i = 0; i < CT__COUNT; i++) {
        struct sigaction own = {.sa_handler = ct__handle};
        sigemptyset(&own.sa_mask);
        if (sigaction(CT__SIGNALS[i].number, NULL, &ct__before[i]) == 0 && ct__before[i].sa_handler != SIG_IGN)
            sigaction(CT__SIGNALS[i].number, &own, NULL);
    }
}

/* exit() without MPI_Finalize: also the way in which a library ends a program after an error. */
__attribute__((destructor)) static void ct__exit(void)
{
    if (ct_ready)
        ct_modules_die("exit without MPI_Finalize");
}
