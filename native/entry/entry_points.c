/* The functions of MPI that a program meets first, where this library is preloaded. Each goes on to what its caller would have met
 * without it, or to the core (shim.h). Nothing of an MPI's mpi.h is in here, as any MPI may stand behind: its handles are words of
 * a register, which pass through as they came, be they `int` or pointers. All else is alike in all MPIs. */
#include "mpis.h"

#include <stdint.h>

typedef uintptr_t MPI_Comm, MPI_Datatype, MPI_Op, MPI_Info, MPI_Request, MPI_Errhandler, MPI_T_cvar_handle;
typedef int64_t MPI_Count, MPI_Aint;

/* Where the call is from that is on its way to a function below. */
static _Thread_local const void *ct__caller __attribute__((tls_model("initial-exec")));

/* As long as not all callers are known to mean one MPI, a call goes by a function of its own: so that the others are a jump. */
#define CT__ENTRY(NAME, AT, HOW, PARAMETERS, ARGUMENTS)                                                                \
    static __attribute__((noinline)) int ct__early_##NAME PARAMETERS                                                   \
    {                                                                                                                  \
        const void *caller = ct__caller;                                                                               \
        return ((int(*) PARAMETERS)ct_mpis_##HOW(ct_mpis_find(caller, AT), AT, caller)) ARGUMENTS;                     \
    }                                                                                                                  \
    CT_EXPORT int NAME PARAMETERS;                                                                                     \
    int NAME PARAMETERS                                                                                                \
    {                                                                                                                  \
        const void *caller = __builtin_return_address(0);                                                              \
        ct_mpi *mpi = atomic_load_explicit(&ct_mpis_single, memory_order_acquire);                                     \
        if (mpi == NULL || AT == CT_AT_Init || AT == CT_AT_Init_thread || !ct_mpis_##HOW##_is_direct(mpi)) {           \
            ct__caller = caller;                                                                                       \
            return ct__early_##NAME ARGUMENTS;                                                                         \
        }                                                                                                              \
        return ((int(*) PARAMETERS)mpi->HOW[AT]) ARGUMENTS;                                                            \
    }

#define CT__BOTH(PREFIX, NAME, PARAMETERS, ARGUMENTS)                                                                  \
    CT__ENTRY(PREFIX##_##NAME, CT_AT_##NAME, plain, PARAMETERS, ARGUMENTS)                                             \
    CT__ENTRY(P##PREFIX##_##NAME, CT_AT_##NAME, profiling, PARAMETERS, ARGUMENTS)

/* Open MPI 4 has persistent collectives as MPIX_. */
#define CT__PERSISTENT(NAME, PARAMETERS, ARGUMENTS) CT__BOTH(MPIX, NAME, PARAMETERS, ARGUMENTS)
#define CT__BLOCKING(NAME, PARAMETERS, ARGUMENTS)
#define CT__NONBLOCKING(NAME, PARAMETERS, ARGUMENTS)
#define CT__FUNCTION(NAME, UPPER, SIGNATURE, FORM, COUNT, DISPL, LARGE)                                                \
    CT__BOTH(MPI, NAME, CT_PARAMETERS(SIGNATURE, FORM, COUNT, DISPL), CT_ARGUMENTS(SIGNATURE, FORM))                   \
    CT__##FORM(NAME, CT_PARAMETERS(SIGNATURE, FORM, COUNT, DISPL), CT_ARGUMENTS(SIGNATURE, FORM))
#define CT__OTHER(NAME, PARAMETERS, ARGUMENTS) CT__BOTH(MPI, NAME, PARAMETERS, ARGUMENTS)

CT_EACH_FUNCTION(CT__FUNCTION)
CT_EACH_OTHER(CT__OTHER)

/* colltune_alltoallv.h: from the core, and without it nothing is tuned. */
#define CT__TUNED(NAME, PARAMETERS, ARGUMENTS, OTHERWISE)                                                              \
    CT_EXPORT int NAME PARAMETERS;                                                                                     \
    int NAME PARAMETERS                                                                                                \
    {                                                                                                                  \
        ct_function_of_mpi *tuned = ct_mpis_of_core(#NAME, __builtin_return_address(0));                               \
        return tuned != NULL ? ((int(*) PARAMETERS)tuned)ARGUMENTS : OTHERWISE;                                        \
    }
#define CT__DECLARED CT_PARAMETERS_ALLTOALLV(int, int) MPI_Comm comm
#define CT__NAMED CT_NAMES_ALLTOALLV comm

CT_EXPORT int MPI_Alltoallv(CT__DECLARED);
CT__TUNED(ct_alltoallv, (CT__DECLARED), (CT__NAMED), MPI_Alltoallv(CT__NAMED))
CT__TUNED(ct_alltoallv_by, (const void *choice, CT__DECLARED), (choice, CT__NAMED), MPI_Alltoallv(CT__NAMED))
CT__TUNED(ct_alltoallv_last, (MPI_Comm comm, int choice[4]), (comm, choice), (choice[0] = choice[1] = choice[2] = choice[3] = 0))
CT__TUNED(ct_alltoallv_find, (const char *name), (name), -1)

CT_EXPORT const char *ct_alltoallv_name(int algorithm);
const char *ct_alltoallv_name(int algorithm)
{
    ct_function_of_mpi *name = ct_mpis_of_core("ct_alltoallv_name", __builtin_return_address(0));
    return name != NULL ? ((const char *(*)(int))name)(algorithm) : NULL;
}
