/* Control variables of the MPI library (MPI_T): found by name once, written between calls.
 *
 * MPICH checks no value that is written, so only values that the catalogue vouches for may come here; a name that the
 * library lacks is reported, never ignored. All algorithm variables must be equal on all ranks. */
#pragma once

#include <mpi.h>
#include <stdbool.h>

typedef struct {
    int variable; /* of ct_variable_find; < 0: the library has none of the name */
    int value;
} ct_setting;

enum { CT_VARIABLE_MISSING = -1, CT_VARIABLE_NO_MEMORY = -2 };

/* A variable by its name, or one of these; MISSING: not there, or not a number that can be set. MPI_T must be initialised. */
int ct_variable_find(const char *name);
int ct_variable_initial(int variable); /* its value when it was found, or what the program has written since */
/* Makes a write of the program's own by `write`. */
int ct_variable_written(MPI_T_cvar_handle handle, const void *value, int (*write)(MPI_T_cvar_handle, const void *));

int ct_settings_write(const ct_setting *settings, int count); /* up to the first that fails; MPI error code */
/* Whether they choose a mock-up (mock_ups.h), which no library has to be told of: they hold for calls, in both. */
bool ct_settings_ours(const ct_setting *settings, int count);
/* Back to the initial values, all of them; the first error. */
int ct_settings_restore(const ct_setting *settings, int count);

/* Whether settings hold for communicators made under them, not for calls: MPICH looks a variable up in every call, Open MPI
 * once, when a communicator is made. For calls that do not block libnbc looks its own up in every call. */
static inline bool ct_settings_by_communicator(bool nonblocking)
{
#ifdef OPEN_MPI
    return !nonblocking;
#else
    (void)nonblocking;
    return false;
#endif
}
