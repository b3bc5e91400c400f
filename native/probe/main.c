/* Prints the names of the collectives that this MPI has not: libcolltune.so must not have them either, as a program may
 * ask by a weak reference whether they are there (mpi4py does). Needs no MPI_Init. */
#include "names.h"

#include <stddef.h>
#include <stdio.h>

#define CT__DECLARE(NAME)                                     \
    extern char MPI_##NAME __attribute__((weak));             \
    extern char PMPI_##NAME __attribute__((weak));            \
    extern char MPIX_##NAME __attribute__((weak));            \
    extern char PMPIX_##NAME __attribute__((weak));
CT_REAL_NAMES(CT__DECLARE)

/* A weak reference alone does not make a linker keep the library. */
extern char PMPI_Init;
const char *ct_kept = &PMPI_Init;

static void ct__check(const char *volatile address, const char *prefix, const char *name)
{
    if (address == NULL)
        printf("%s_%s\n", prefix, name);
}

int main(void)
{
#define CT__CHECK(NAME)                                       \
    ct__check(&MPI_##NAME, "MPI", #NAME);                     \
    ct__check(&PMPI_##NAME, "PMPI", #NAME);                   \
    ct__check(&MPIX_##NAME, "MPIX", #NAME);                   \
    ct__check(&PMPIX_##NAME, "PMPIX", #NAME);
    CT_REAL_NAMES(CT__CHECK)
    return 0;
}
