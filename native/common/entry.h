/* Between the library that is preloaded (native/entry), which is linked to no MPI, and its core (native/shim), which is linked to
 * the MPI that it was compiled for, and is loaded where the program has that very library. */
#pragma once

#include "collectives.h"

#include <stdbool.h>

/* The modules, in the order of `before` (shim.h). Each is at work where its variable of the environment is set; without any, the core
 * is not even loaded. */
#define CT_EACH_MODULE(X)                                                                                              \
    X(PROFILE, profile) X(MEASURE, measure) X(SELECT, select) X(ALLTOALLV, alltoallv) X(COUNT, count)
#define CT_MODULE_VARIABLE(UPPER, LOWER) "COLLTUNE_" #UPPER,

#define CT_EXPORT __attribute__((visibility("default")))

enum {
#define CT__AT(NAME, ...) CT_AT_##NAME,
    CT_EACH_FUNCTION(CT__AT) CT_EACH_OTHER(CT__AT) CT_ENTRIES
#undef CT__AT
};

typedef void ct_function_of_mpi(void);

/* An MPI in the process, as some of its callers see it. */
typedef struct {
    ct_function_of_mpi *plain[CT_ENTRIES];     /* what MPI_X comes to: another tool's that is loaded behind us, or the MPI's */
    ct_function_of_mpi *profiling[CT_ENTRIES]; /* and PMPI_X. The core puts its own in place of either */
    ct_function_of_mpi *library[CT_ENTRIES];   /* the MPI's own PMPI_X: for what the MPI calls itself */
    bool watched;                              /* the core has put its own */
    bool refused;                              /* the core is not for this MPI, or there is none */
} ct_mpi;

/* Of the core, before the MPI's own MPI_Init: puts its functions into `mpi`. */
CT_EXPORT void ct_core_open(ct_mpi *mpi);

/* What a core finds in the preloaded library. Thread-local memory of a library that is loaded later may not be to be had. */
extern CT_EXPORT _Thread_local int ct_depth __attribute__((tls_model("initial-exec")));
/* From MPI_Init to MPI_Finalize: `last_words`, with the reason, before the program is ended otherwise;
 * NULL: no signal is taken. */
CT_EXPORT void ct_signals_take(void (*last_words)(const char *why));
CT_EXPORT void ct_signals_give_back(void);
CT_EXPORT void ct_signals_aborted(void);
/* Called after each PMIx_Init of the MPI that succeeded, where it is not NULL. */
extern CT_EXPORT void (*ct_pmix_began)(void *process);
