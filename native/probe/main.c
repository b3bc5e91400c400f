/* Prints "library" and the name of the file from which this MPI is loaded, and a line for each function that this MPI has not:
 * libcolltune.so must not have it either, as a program may ask by a weak reference whether it is there (mpi4py does). Needs no
 * MPI_Init. */
#define _GNU_SOURCE
#include "collectives.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int (*ct_kept)(int *, char ***) = PMPI_Init; /* else a linker may leave the library out */

static void ct__check(const char *prefix, const char *name)
{
    char full[80];
    snprintf(full, sizeof full, "%s_%s", prefix, name);
    if (dlsym(RTLD_NEXT, full) == NULL)
        puts(full);
}

int main(void)
{
    Dl_info about;
    void *init = dlsym(RTLD_NEXT, "PMPI_Init");
    if (init == NULL || dladdr(init, &about) == 0)
        return 1;
    const char *slash = strrchr(about.dli_fname, '/');
    printf("library %s\n", slash == NULL ? about.dli_fname : slash + 1);
#define CT__CHECK(NAME, ...) ct__check("MPI", #NAME), ct__check("PMPI", #NAME);
    CT_EACH_FUNCTION(CT__CHECK) CT_EACH_OTHER(CT__CHECK)
#define CT__CHECK_OLD(NAME, UPPER, SIGNATURE, FORM, ...) CT__##FORM(NAME)
#define CT__BLOCKING(NAME)
#define CT__NONBLOCKING(NAME)
#define CT__PERSISTENT(NAME) ct__check("MPIX", #NAME), ct__check("PMPIX", #NAME);
    CT_EACH_FUNCTION(CT__CHECK_OLD)
#ifndef OPEN_MPI
    puts("PMIx_Init"); /* which Open MPI's part of it needs alone */
#endif
    return 0;
}
