/* The wrapper of each collective, in every form and width, and how they come into the program's way. */
#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <string.h>

ct_real_functions ct_real;

#pragma GCC diagnostic ignored "-Woverride-init" /* of CT_NO_CALL */
#define CT__WRAP(NAME, UPPER, SIGNATURE, FORM, COUNT, DISPL, LARGE)                                                    \
    static int ct__##NAME CT_PARAMETERS(SIGNATURE, FORM, COUNT, DISPL)                                                 \
    {                                                                                                                  \
        if (ct_passes())                                                                                               \
            return ct_real.NAME CT_ARGUMENTS(SIGNATURE, FORM);                                                         \
        ct_call call = {CT_NO_CALL, .function = CT_##UPPER, .form = CT_##FORM, .large = LARGE, .made_on = comm,        \
                        CT_FIELDS(SIGNATURE, FORM)};                                                                   \
        int code;                                                                                                      \
        if (!ct_enter(&call))                                                                                          \
            return ct_real.NAME CT_ARGUMENTS(SIGNATURE, FORM);                                                         \
        if (!ct_modules_before(&call, &code)) {                                                                        \
            comm = call.made_on;                                                                                       \
            code = ct_real.NAME CT_ARGUMENTS(SIGNATURE, FORM);                                                         \
            comm = call.comm;                                                                                          \
        }                                                                                                              \
        return ct_leave(&call, &code) ? code : ct_real.NAME CT_ARGUMENTS(SIGNATURE, FORM);                             \
    }
CT_EACH_FUNCTION(CT__WRAP)

static bool ct__starts(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* Whether `plain`, of MPI_X, belongs to another tool, which is loaded behind us and calls PMPI_X, `own`. A library may have its
 * PMPI_ functions in a file beside it. */
static bool ct__is_of_a_tool(ct_function_of_mpi *plain, ct_function_of_mpi *own)
{
    Dl_info theirs, library;
    void *address, *own_address;
    memcpy(&address, &plain, sizeof address);
    memcpy(&own_address, &own, sizeof own_address);
    if (plain == own || dladdr(address, &theirs) == 0 || dladdr(own_address, &library) == 0 ||
        theirs.dli_fbase == library.dli_fbase)
        return false;
    const char *slash = strrchr(theirs.dli_fname, '/'), *name = slash == NULL ? theirs.dli_fname : slash + 1;
    return !ct__starts(name, "libmpi.so") && !ct__starts(name, "libmpich.so");
}

void ct_wrap(ct_mpi *mpi, int at, ct_function_of_mpi *wrapper)
{
    if (!ct__is_of_a_tool(mpi->plain[at], mpi->library[at]))
        mpi->plain[at] = wrapper;
    mpi->profiling[at] = wrapper;
}

void ct_find_real(const ct_mpi *mpi)
{
#define CT__FIND(NAME, ...) memcpy(&ct_real.NAME, &mpi->library[CT_AT_##NAME], sizeof ct_real.NAME);
    CT_EACH_FUNCTION(CT__FIND) CT_EACH_OTHER(CT__FIND)
}

void ct_wrap_collectives(ct_mpi *mpi)
{
#define CT__PUT(NAME, UPPER, SIGNATURE, FORM, ...)                                                                     \
    if (ct_modules_want(CT_##UPPER, CT_##FORM))                                                                        \
        ct_wrap(mpi, CT_AT_##NAME, (ct_function_of_mpi *)ct__##NAME);
    CT_EACH_FUNCTION(CT__PUT)
}
