#define _GNU_SOURCE
#include "mpis.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local int ct_depth;
void (*ct_pmix_began)(void *);

static void *ct__core;       /* handle */
static ct_mpi *ct__of_core;  /* the MPI that it is for */
static bool ct__begun;       /* MPI_Init came by here */

/* The MPI libraries that there are cores for, by name and number, one after another. A ready-made file has them written into it later:
 * so it is no constant. */
char ct_core_libraries[] = CT_MPI_LIBRARY "\0";

static bool ct__is_wanted(void)
{
    static const char *const VARIABLES[] = {CT_EACH_MODULE(CT_MODULE_VARIABLE)};
    for (size_t i = 0; i < sizeof VARIABLES / sizeof *VARIABLES; i++)
        if (getenv(VARIABLES[i]) != NULL)
            return true;
    return false;
}

/* Rank 0, as launchers number ranks, or a program that none started. */
static bool ct__speaks(void)
{
    static const char *const RANKS[] = {"PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PALS_RANKID", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof RANKS / sizeof *RANKS; i++)
        if (getenv(RANKS[i]) != NULL)
            return strcmp(getenv(RANKS[i]), "0") == 0;
    return true;
}

static const char *ct__file_of(ct_function_of_mpi *function)
{
    Dl_info about;
    void *address;
    memcpy(&address, &function, sizeof address);
    return dladdr(address, &about) != 0 ? about.dli_fname : "?";
}

/* The name by which `mpi` is in the process, if there is a core that is linked to it; or NULL. */
static const char *ct__name_with_core(ct_mpi *mpi)
{
    for (const char *name = ct_core_libraries; *name != '\0'; name += strlen(name) + 1) {
        void *handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD), *init = handle == NULL ? NULL : dlsym(handle, "PMPI_Init");
        if (handle != NULL)
            dlclose(handle);
        if (init != NULL && memcmp(&mpi->library[CT_AT_Init], &init, sizeof init) == 0)
            return name;
    }
    return NULL;
}

/* libX.NAME.core.so beside this libX.so, linked to the library of that name, which is in the process already. */
static bool ct__load_core(const char *name)
{
    char path[CT_MPIS_PATH];
    const char *own = ct__file_of((ct_function_of_mpi *)ct_core_begin);
    size_t stem = strlen(own) > 3 ? strlen(own) - 3 : 0;
    if ((size_t)snprintf(path, sizeof path, "%.*s.%s.core.so", (int)stem, own, name) < sizeof path)
        ct__core = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (ct__core == NULL && ct__speaks())
        fprintf(stderr, "colltune: %s cannot be loaded (%s); it does nothing here\n", path, dlerror());
    return ct__core != NULL;
}

static void ct__open_core(ct_mpi *mpi)
{
    static bool open;
    void (*give)(ct_mpi *);
    void *symbol = open ? NULL : dlsym(ct__core, "ct_core_open");
    memcpy(&give, &symbol, sizeof give);
    open = true;
    if (symbol != NULL)
        give(mpi);
}

/* Loads the core for `mpi` where there is one. */
static bool ct__need_core(ct_mpi *mpi)
{
    const char *name = ct__core == NULL ? ct__name_with_core(mpi) : NULL;
    if (name != NULL && ct__load_core(name))
        ct__of_core = mpi;
    return ct__core != NULL && ct__of_core == mpi;
}

/* A tool's MPI_Init comes back as PMPI_Init. */
void ct_core_begin(ct_mpi *mpi)
{
    ct__begun = true;
    if (mpi->refused || !ct__is_wanted())
        return;
    mpi->refused = !ct__need_core(mpi);
    if (!mpi->refused)
        ct__open_core(mpi);
    else if (ct__speaks() && ct__name_with_core(mpi) == NULL)
        fprintf(stderr, "colltune: this program uses %s, and libcolltune.so was compiled for another MPI, %s; it does nothing here\n",
                ct__file_of(mpi->library[CT_AT_Init]), ct_core_libraries);
}

ct_function_of_mpi *ct_core_function(ct_mpi *mpi, const char *name)
{
    ct_function_of_mpi *function;
    void *symbol = ct__need_core(mpi) ? dlsym(ct__core, name) : NULL;
    memcpy(&function, &symbol, sizeof function);
    return function;
}

/* A language that has its own linker asks the MPI's library for each function, and its calls do not come by here. */
__attribute__((destructor)) static void ct__say_unseen(void)
{
    char path[CT_MPIS_PATH];
    int flag = 0, (*initialized)(int *);
    for (int i = 0; !ct__begun && ct__is_wanted() && ct__speaks() && ct_mpis_library(i, path); i++) {
        void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD), *symbol = handle == NULL ? NULL : dlsym(handle, "PMPI_Initialized");
        memcpy(&initialized, &symbol, sizeof initialized);
        if (symbol == NULL || initialized(&flag) != 0 || !flag)
            continue;
        fprintf(stderr, "colltune: this program asks %s itself for MPI_Init: libcolltune.so saw none of its calls\n", path);
        break;
    }
}

/* Open MPI's call. The core may need to know when it was made (keys.h). */
CT_EXPORT int PMIx_Init(void *process, void *infos, size_t count);
int PMIx_Init(void *process, void *infos, size_t count)
{
    int (*next)(void *, void *, size_t);
    void *symbol = ct_mpis_next("PMIx_Init", __builtin_return_address(0));
    memcpy(&next, &symbol, sizeof next);
    int code = symbol == NULL ? -47 /* PMIX_ERR_NOT_SUPPORTED */ : next(process, infos, count);
    if (code == 0 && process != NULL && ct_pmix_began != NULL)
        ct_pmix_began(process);
    return code;
}
