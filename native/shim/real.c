/* Finds the library's own functions behind ours. */
#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

ct_real_functions ct_real, ct_tool;

enum { CT__MAX_RANGES = 256 };
/* Where the code of the MPI library and of its plug-ins is. Filled in before ct_ready; then only read. */
static struct {
    uintptr_t start, end;
} ct__ranges[CT__MAX_RANGES];
static int ct__range_count;

static void *ct__next(const char *prefix, const char *name)
{
    char full[80];
    strcpy(full, prefix);
    strncat(full, name, sizeof full - 8);
    return dlsym(RTLD_NEXT, full);
}

static bool ct__starts(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static const char *ct__base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* A library may have its PMPI_ functions in a file beside it. */
void *ct_real_of_a_tool(void *found, void *own)
{
    Dl_info theirs, library;
    if (found == NULL || found == own || dladdr(found, &theirs) == 0 || dladdr(own, &library) == 0 ||
        theirs.dli_fbase == library.dli_fbase || ct__starts(ct__base(theirs.dli_fname), "libmpi.so") ||
        ct__starts(ct__base(theirs.dli_fname), "libmpich.so"))
        return NULL;
    return found;
}

/* Runs before any code of the program can call MPI. */
__attribute__((constructor)) static void ct__find(void)
{
#define CT__FIND(NAME)                                          \
    {                                                           \
        void *own = ct__next("PMPI_", #NAME);                   \
        if (own == NULL)                                        \
            own = ct__next("PMPIX_", #NAME);                    \
        memcpy(&ct_real.NAME, &own, sizeof own);                \
        void *found = ct__next("MPI_", #NAME);                  \
        if (found == NULL)                                      \
            found = ct__next("MPIX_", #NAME);                   \
        found = ct_real_of_a_tool(found, own);                      \
        memcpy(&ct_tool.NAME, &found, sizeof found);            \
    }
    CT_REAL_NAMES(CT__FIND)
#undef CT__FIND
}

static bool ct__is_mpi(const char *path)
{
    const char *name = ct__base(path);
    /* Fortran layers call on behalf of the program: they are not the library itself. */
    if (strstr(name, "fort") != NULL || strstr(name, "mpifh") != NULL || strstr(name, "usempi") != NULL)
        return false;
    static const char *const NAMES[] = {"libmpi.so", "libmpich.so", "libmpi_abi.so", "libmpi-", "mca_", "libopen-"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (ct__starts(name, NAMES[i]))
            return true;
    return false;
}

static void ct__add_range(uintptr_t start, uintptr_t end)
{
    if (ct__range_count == CT__MAX_RANGES)
        return;
    int at = ct__range_count++;
    for (; at > 0 && ct__ranges[at - 1].start > start; at--)
        ct__ranges[at] = ct__ranges[at - 1];
    ct__ranges[at].start = start;
    ct__ranges[at].end = end;
}

static int ct__visit(struct dl_phdr_info *object, size_t size, void *own_library)
{
    (void)size;
    uintptr_t inside = (uintptr_t)own_library;
    bool wanted = object->dlpi_name != NULL && ct__is_mpi(object->dlpi_name);
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + part->p_vaddr, end = start + part->p_memsz;
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) && (wanted || (inside >= start && inside < end)))
            ct__add_range(start, end);
    }
    return 0;
}

bool ct_real_find(void)
{
    void *own_library;
    memcpy(&own_library, &ct_real.Barrier, sizeof own_library);
    if (own_library == NULL)
        return false;
    ct__range_count = 0;
    dl_iterate_phdr(ct__visit, own_library);
    return true;
}

bool ct_is_library(const void *address)
{
    uintptr_t at = (uintptr_t)address;
    int low = 0, high = ct__range_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (ct__ranges[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ct__range_count && ct__ranges[low].start <= at;
}
