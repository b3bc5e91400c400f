/* The MPI libraries of the process, and which of them a caller means.
 *
 * Without this library a call of MPI is bound to the first library in the global scope that has it, else to the one that the
 * caller's own object brought with it: a plug-in, or a module of Python, which is opened by dlopen. So it is looked for there,
 * when the first call comes; no MPI is loaded, and none is brought into the global scope. */
#ifndef CT_MPIS_H
#define CT_MPIS_H

#include "entry.h"

#include <stdatomic.h>
#include <stddef.h>

/* The MPI that all callers mean; NULL: not known yet, or each caller has its own. */
extern _Atomic(ct_mpi *) ct_mpis_single;

/* The same for the code at `caller`. Before MPI_Init, with `begins`, loads the core where that is its MPI. Never NULL. */
ct_mpi *ct_mpis_find(const void *caller, bool begins);
/* Whether the code at `caller` belongs to an MPI library itself. */
bool ct_mpis_are_at(const void *caller);
/* A function of the core, for the code at `caller`; NULL where its MPI is not that which the core was compiled for. */
ct_function_of_mpi *ct_mpis_of_core(const char *name, const void *caller);
/* `name` as the code at `caller` would have met it without this library; or NULL. */
void *ct_mpis_next(const char *name, const void *caller);

enum { CT_MPIS_PATH = 4096 };
/* The path of the MPI library of that number among those that the process has. */
bool ct_mpis_library(int number, char path[CT_MPIS_PATH]);
/* Before MPI_Init of `mpi`: loads the core where it was compiled for that, else says that it was not. */
void ct_core_begin(ct_mpi *mpi);
/* One of its functions, likewise. Both under the lock. */
ct_function_of_mpi *ct_core_function(ct_mpi *mpi, const char *name);

static inline ct_mpi *ct_mpis_at(int at, const void *caller)
{
    ct_mpi *mpi = atomic_load_explicit(&ct_mpis_single, memory_order_acquire);
    bool begins = at == CT_AT_Init || at == CT_AT_Init_thread;
    return __builtin_expect(mpi == NULL || begins, 0) ? ct_mpis_find(caller, begins) : mpi;
}

static inline ct_function_of_mpi *ct_mpis_plain(int at, const void *caller) { return ct_mpis_at(at, caller)->plain[at]; }

static inline ct_function_of_mpi *ct_mpis_profiling(int at, const void *caller)
{
    ct_mpi *mpi = ct_mpis_at(at, caller);
    return mpi->watched && ct_mpis_are_at(caller) ? mpi->library[at] : mpi->profiling[at];
}

#endif
