/* The MPI libraries of the process, and which of them a caller means.
 *
 * Without this library a call of MPI is bound to the first library in the global scope that has it, else to the one that the
 * caller's own object brought with it: a plug-in, or a module of Python, which is opened by dlopen. So it is looked for there,
 * when the first call comes; no MPI is loaded, and none is brought into the global scope. */
#pragma once

#include "entry.h"

#include <stdatomic.h>
#include <stddef.h>

/* The MPI that all callers mean; NULL: not known yet, or each caller has its own. */
extern _Atomic(ct_mpi *) ct_mpis_single;

/* The same for the code at `caller`, never NULL. Where it calls MPI_Init (CT_AT_Init), the core is loaded, if it is for that MPI. */
ct_mpi *ct_mpis_find(const void *caller, int at);
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

/* What MPI_X and PMPI_X are to the code at `caller`; and whether they are the same to all code. */
static inline ct_function_of_mpi *ct_mpis_plain(const ct_mpi *mpi, int at, const void *caller)
{
    (void)caller;
    return mpi->plain[at];
}

static inline ct_function_of_mpi *ct_mpis_profiling(const ct_mpi *mpi, int at, const void *caller)
{
    return mpi->watched && ct_mpis_are_at(caller) ? mpi->library[at] : mpi->profiling[at];
}

static inline bool ct_mpis_plain_is_direct(const ct_mpi *mpi) { return mpi != NULL; }
static inline bool ct_mpis_profiling_is_direct(const ct_mpi *mpi) { return !mpi->watched; }
