#define _GNU_SOURCE
#include "mpis.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

_Atomic(ct_mpi *) ct_mpis_single;

enum { CT__MAX_MPIS = 4, CT__MAX_CALLERS = 256 };

/* Where code is, of an object that has called. `mpi` NULL: not looked for. */
typedef struct {
    uintptr_t start, end;
    bool of_mpi;
    ct_mpi *mpi;
} ct__caller;

/* Written under the lock; the first `count` of callers are read without it, and stay. */
static ct__caller ct__callers[CT__MAX_CALLERS];
static _Atomic(const ct__caller *) ct__latest;
static atomic_int ct__caller_count;
static ct_mpi ct__mpis[CT__MAX_MPIS];
static int ct__mpi_count;
static atomic_flag ct__lock = ATOMIC_FLAG_INIT;

static void ct__acquire(void)
{
    while (atomic_flag_test_and_set_explicit(&ct__lock, memory_order_acquire))
        usleep(10);
}

static void ct__release(void) { atomic_flag_clear_explicit(&ct__lock, memory_order_release); }

/* --- the object that code belongs to */

typedef struct {
    uintptr_t at;
    ct__caller caller;
    char path[CT_MPIS_PATH]; /* "": the program */
} ct__object;

static const char *ct__base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static bool ct__is_mpi(const char *path)
{
    const char *name = ct__base(path);
    /* Fortran layers call on behalf of the program: they are not the library itself. */
    if (strstr(name, "fort") != NULL || strstr(name, "mpifh") != NULL || strstr(name, "usempi") != NULL)
        return false;
    static const char *const NAMES[] = {"libmpi.so",  "libmpich.so", "libmpi_abi.so", "libmpi_cray", "libmpi_gnu", "libmpi_intel",
                                        "libmpi_amd", "libmpi_nvid", "libpmpi.so",    "libmpi-",     "mca_",       "libopen-"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (strncmp(name, NAMES[i], strlen(NAMES[i])) == 0)
            return true;
    return false;
}

static int ct__look_at(struct dl_phdr_info *about, size_t size, void *given)
{
    ct__object *object = given;
    (void)size;
    for (int i = 0; i < about->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &about->dlpi_phdr[i];
        uintptr_t start = about->dlpi_addr + part->p_vaddr, end = start + part->p_memsz;
        if (part->p_type != PT_LOAD || object->at < start || object->at >= end)
            continue;
        snprintf(object->path, sizeof object->path, "%s", about->dlpi_name == NULL ? "" : about->dlpi_name);
        object->caller = (ct__caller){.start = start, .end = end, .of_mpi = ct__is_mpi(object->path)};
        return 1;
    }
    return 0;
}

/* Whether the code at `address` is of an object that was loaded: else it was made while the program runs. */
static bool ct__object_at(const void *address, ct__object *object)
{
    *object = (ct__object){.at = (uintptr_t)address};
    return dl_iterate_phdr(ct__look_at, object) == 1;
}

/* --- the MPI of an object */

static void *ct__in(void *handle, const char *prefix, const char *name)
{
    char full[80];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    return dlsym(handle, full);
}

static int ct__absent(void)
{
    fprintf(stderr, "colltune: this program calls a function that its MPI does not have\n");
    _exit(127); /* as the dynamic linker does */
}

/* Functions as `handle` has them. */
static void ct__fill(ct_mpi *mpi, void *handle)
{
    static const char *const NAMES[CT_ENTRIES] = {
#define CT__NAME(NAME, ...) #NAME,
        CT_EACH_FUNCTION(CT__NAME) CT_EACH_OTHER(CT__NAME)
#undef CT__NAME
    };
    for (int at = 0; at < CT_ENTRIES; at++) {
        void *plain = ct__in(handle, "MPI_", NAMES[at]), *own = ct__in(handle, "PMPI_", NAMES[at]);
        if (plain == NULL)
            plain = ct__in(handle, "MPIX_", NAMES[at]);
        if (own == NULL)
            own = ct__in(handle, "PMPIX_", NAMES[at]);
        memcpy(&mpi->plain[at], &plain, sizeof plain);
        memcpy(&mpi->library[at], &own, sizeof own);
        if (mpi->plain[at] == NULL)
            mpi->plain[at] = (ct_function_of_mpi *)ct__absent;
        if (mpi->library[at] == NULL)
            mpi->library[at] = (ct_function_of_mpi *)ct__absent;
        mpi->profiling[at] = mpi->library[at];
    }
}

/* That whose PMPI_Init `handle` has. */
static ct_mpi *ct__mpi_in(void *handle)
{
    void *init = dlsym(handle, "PMPI_Init");
    for (int i = 0; i < ct__mpi_count && init != NULL; i++)
        if (memcmp(&ct__mpis[i].library[CT_AT_Init], &init, sizeof init) == 0)
            return &ct__mpis[i];
    if (init == NULL || ct__mpi_count == CT__MAX_MPIS)
        return NULL;
    ct__fill(&ct__mpis[ct__mpi_count], handle);
    return &ct__mpis[ct__mpi_count++];
}

static ct_mpi *ct__mpi_of(const char *path)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    ct_mpi *mpi = handle == NULL ? NULL : ct__mpi_in(handle);
    if (handle != NULL)
        dlclose(handle);
    return mpi;
}

typedef struct {
    int skipped;
    char path[CT_MPIS_PATH];
} ct__library;

static int ct__next_library(struct dl_phdr_info *about, size_t size, void *given)
{
    ct__library *library = given;
    (void)size;
    if (about->dlpi_name == NULL || !ct__is_mpi(about->dlpi_name) || library->skipped-- > 0)
        return 0;
    snprintf(library->path, sizeof library->path, "%s", about->dlpi_name);
    return 1;
}

bool ct_mpis_library(int number, char path[CT_MPIS_PATH])
{
    ct__library library = {.skipped = number};
    bool there = dl_iterate_phdr(ct__next_library, &library) != 0;
    memcpy(path, library.path, sizeof library.path);
    return there;
}

/* Of a caller that names no MPI itself: it is the first that was loaded. */
static ct_mpi *ct__any_mpi(void)
{
    ct_mpi *mpi = NULL;
    char path[CT_MPIS_PATH];
    for (int i = 0; mpi == NULL && ct_mpis_library(i, path); i++)
        mpi = ct__mpi_of(path);
    return mpi;
}

/* --- callers */

static const ct__caller *ct__known(const void *address)
{
    const ct__caller *latest = atomic_load_explicit(&ct__latest, memory_order_acquire);
    uintptr_t at = (uintptr_t)address;
    if (latest != NULL && at >= latest->start && at < latest->end)
        return latest;
    int count = atomic_load_explicit(&ct__caller_count, memory_order_acquire);
    for (int i = 0; i < count; i++)
        if (at >= ct__callers[i].start && at < ct__callers[i].end) {
            atomic_store_explicit(&ct__latest, &ct__callers[i], memory_order_release);
            return &ct__callers[i];
        }
    return NULL;
}

static void ct__remember(const ct__caller *caller)
{
    int count = atomic_load(&ct__caller_count);
    uintptr_t init;
    if (count == CT__MAX_CALLERS)
        return;
    ct__callers[count] = *caller;
    memcpy(&init, &caller->mpi->library[CT_AT_Init], sizeof init);
    ct__callers[count].of_mpi |= init >= caller->start && init < caller->end; /* whatever its file is called */
    atomic_store_explicit(&ct__caller_count, count + 1, memory_order_release);
}

static ct_mpi *ct__look_for_mpi(const void *address)
{
    ct__object object;
    ct_mpi *mpi = ct__mpi_in(RTLD_NEXT);
    if (mpi != NULL && ct__mpi_count == 1) {
        atomic_store_explicit(&ct_mpis_single, mpi, memory_order_release);
        return mpi;
    }
    bool loaded = ct__object_at(address, &object);
    if (mpi == NULL && loaded && object.path[0] != '\0')
        mpi = ct__mpi_of(object.path);
    if (mpi == NULL)
        mpi = ct__any_mpi();
    object.caller.mpi = mpi;
    if (loaded && mpi != NULL)
        ct__remember(&object.caller);
    return mpi;
}

/* Of callers that have no MPI. */
static ct_mpi *ct__no_mpi(void)
{
    static ct_mpi none = {.refused = true};
    for (int at = 0; at < CT_ENTRIES && none.plain[at] == NULL; at++)
        none.plain[at] = none.profiling[at] = none.library[at] = (ct_function_of_mpi *)ct__absent;
    return &none;
}

bool ct_mpis_are_at(const void *address)
{
    const ct__caller *caller = ct__known(address);
    if (caller != NULL)
        return caller->of_mpi;
    ct__object object;
    if (!ct__object_at(address, &object))
        return false;
    ct__acquire();
    if (ct__known(address) == NULL) {
        object.caller.mpi = atomic_load(&ct_mpis_single); /* NULL: is looked for when it makes a call itself */
        if (object.caller.mpi != NULL)
            ct__remember(&object.caller);
    }
    ct__release();
    caller = ct__known(address);
    return caller != NULL ? caller->of_mpi : object.caller.of_mpi;
}

ct_mpi *ct_mpis_find(const void *address, int at)
{
    bool begins = at == CT_AT_Init || at == CT_AT_Init_thread;
    ct_mpi *mpi = atomic_load(&ct_mpis_single);
    const ct__caller *caller = mpi == NULL ? ct__known(address) : NULL;
    if (caller != NULL)
        mpi = caller->mpi;
    if (mpi != NULL && !begins)
        return mpi;
    ct__acquire();
    if (mpi == NULL)
        mpi = ct__look_for_mpi(address);
    if (mpi != NULL && begins)
        ct_core_begin(mpi);
    if (mpi == NULL)
        mpi = ct__no_mpi();
    ct__release();
    return mpi;
}

ct_function_of_mpi *ct_mpis_of_core(const char *name, const void *address)
{
    ct_mpi *mpi = ct_mpis_find(address, CT_ENTRIES);
    ct__acquire();
    ct_function_of_mpi *function = mpi->refused ? NULL : ct_core_function(mpi, name);
    ct__release();
    return function;
}

void *ct_mpis_next(const char *name, const void *address)
{
    void *symbol = dlsym(RTLD_NEXT, name), *handle;
    ct__object object;
    if (symbol != NULL || !ct__object_at(address, &object) || object.path[0] == '\0')
        return symbol;
    handle = dlopen(object.path, RTLD_LAZY | RTLD_NOLOAD);
    symbol = handle == NULL ? NULL : dlsym(handle, name);
    if (handle != NULL)
        dlclose(handle);
    return symbol;
}

