/* Beginning and end of the program's use of MPI. */
#define _GNU_SOURCE
#include "private_comm.h"
#include "shim.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct ct_job ct_job;

/* [0]: the next tool's or the library's MPI_, [1]: the library's PMPI_ */
static int (*ct__init[2])(int *, char ***);
static int (*ct__init_thread[2])(int *, char ***, int, int *);
static int (*ct__finalize[2])(void);
static int ct__inside; /* calls of MPI_Init that have not returned: a tool's MPI_Init calls PMPI_Init */
/* [0]: the tool's behind us, or NULL, [1]: the library's */
static int (*ct__abort[2])(MPI_Comm, int);
static int (*ct__start[2])(MPI_Request *);
static int (*ct__startall[2])(int, MPI_Request *);
static int (*ct__request_free[2])(MPI_Request *);

uint64_t ct_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void ct__set(void *function, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof found);
}

/* MPI_`name` of a tool that is loaded behind us, or NULL, and PMPI_`name`. */
static void ct__set_both(void *functions, const char *name)
{
    char own[40] = "P";
    void *found[2] = {dlsym(RTLD_NEXT, name), dlsym(RTLD_NEXT, strncat(own, name, sizeof own - 2))};
    found[0] = ct_real_of_a_tool(found[0], found[1]);
    memcpy(functions, found, sizeof found);
}

__attribute__((constructor)) static void ct__find(void)
{
    ct__set(&ct__init[0], "MPI_Init");
    ct__set(&ct__init[1], "PMPI_Init");
    ct__set(&ct__init_thread[0], "MPI_Init_thread");
    ct__set(&ct__init_thread[1], "PMPI_Init_thread");
    ct__set(&ct__finalize[0], "MPI_Finalize");
    ct__set(&ct__finalize[1], "PMPI_Finalize");
    ct__set_both(ct__abort, "MPI_Abort");
    ct__set_both(ct__start, "MPI_Start");
    ct__set_both(ct__startall, "MPI_Startall");
    ct__set_both(ct__request_free, "MPI_Request_free");
}

/* Whether the object at `map` asks for a library of the name, up to its first dot. */
static bool ct__needs(const struct link_map *map, const char *name)
{
    const char *strings = NULL;
    const ElfW(Dyn) *entry;
    for (entry = map->l_ld; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_STRTAB)
            strings = (const char *)entry->d_un.d_ptr;
    size_t length = strcspn(name, ".");
    for (entry = map->l_ld; entry->d_tag != DT_NULL && strings != NULL; entry++)
        if (entry->d_tag == DT_NEEDED && strncmp(strings + entry->d_un.d_val, name, length) == 0 &&
            strcspn(strings + entry->d_un.d_val, ".") == length)
            return true;
    return false;
}

/* A program may use another MPI than the one whose mpi.h this library was compiled with: MPICH's libmpi_abi, say, which
 * has other handles under the same names. Then its calls go to its MPI, and nothing is done with them here. */
static bool ct__same_library(void)
{
    Dl_info theirs, own;
    struct link_map *map = NULL;
    void *address;
    memcpy(&address, &ct__init[1], sizeof address);
    if (address == NULL || dladdr(address, &theirs) == 0 ||
        dladdr1((void *)&ct_job, &own, (void **)&map, RTLD_DL_LINKMAP) == 0)
        return false;
    const char *slash = strrchr(theirs.dli_fname, '/');
    if (ct__needs(map, slash == NULL ? theirs.dli_fname : slash + 1))
        return true;
    fprintf(stderr, "colltune: this program uses %s, and %s was compiled for another MPI; it does nothing here\n",
            theirs.dli_fname, own.dli_fname);
    return false;
}

static bool ct__find_world(void)
{
    int level = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&level);
    ct_job.threads_multiple = level == MPI_THREAD_MULTIPLE;
    return ct_private_comm(MPI_COMM_WORLD, &ct_job.comm) == MPI_SUCCESS &&
           PMPI_Comm_rank(ct_job.comm, &ct_job.rank) == MPI_SUCCESS &&
           PMPI_Comm_size(ct_job.comm, &ct_job.size) == MPI_SUCCESS &&
           PMPI_Comm_group(ct_job.comm, &ct_job.group) == MPI_SUCCESS &&
           ct_nodes_find(ct_job.comm, &ct_job.nodes) == MPI_SUCCESS;
}

static bool ct__announced;

static void ct__announce(void)
{
    ct__announced = !ct_ready && ct_modules_wanted() && ct__same_library();
    if (ct__announced)
        ct_attendance_announce();
}

static void ct__begin(bool initialised)
{
    if (!ct__announced)
        return;
    ct__announced = false;
    if (!initialised)
        ct_attendance_forget();
    if (!initialised || !ct_attendance_whole() || !ct_real_find() || !ct__find_world() || !ct_comm_start())
        return;
    ct_modules_start();
    ct_job.started_ns = ct_now_ns();
    if (ct_ready)
        ct_signals_take();
}

static int ct__call_init(int *argc, char ***argv, bool direct)
{
    if (ct__inside++ == 0)
        ct__announce();
    int code = ct__init[direct](argc, argv);
    if (--ct__inside == 0)
        ct__begin(code == MPI_SUCCESS);
    return code;
}

static int ct__call_init_thread(int *argc, char ***argv, int required, int *provided, bool direct)
{
    if (ct__inside++ == 0)
        ct__announce();
    int code = ct__init_thread[direct](argc, argv, required, provided);
    if (--ct__inside == 0)
        ct__begin(code == MPI_SUCCESS);
    return code;
}

static int ct__call_finalize(bool direct)
{
    if (ct_ready) {
        ct_modules_stop();
        ct_signals_give_back();
    }
    return ct__finalize[direct]();
}

static int ct__call_abort(MPI_Comm comm, int code)
{
    ct_signals_aborted();
    return ct__abort[1](comm, code);
}

static int ct__call_start(MPI_Request *request)
{
    if (!ct_passes())
        ct_modules_request(*request, false);
    return ct__start[1](request);
}

static int ct__call_startall(int count, MPI_Request *requests)
{
    for (int i = 0; i < count && !ct_passes(); i++)
        ct_modules_request(requests[i], false);
    return ct__startall[1](count, requests);
}

static int ct__call_request_free(MPI_Request *request)
{
    if (!ct_passes())
        ct_modules_request(*request, true);
    return ct__request_free[1](request);
}

#define CT__EXPORT(NAME, NEXT, PLAIN, PROFILING, DECLARED, ARGUMENTS)                                                  \
    CT_EXPORT int PLAIN DECLARED { return NEXT[0] != NULL ? NEXT[0] ARGUMENTS : NAME ARGUMENTS; }                      \
    CT_EXPORT int PROFILING DECLARED { return NAME ARGUMENTS; }

CT_EXPORT int MPI_Init(int *argc, char ***argv) { return ct__call_init(argc, argv, false); }
CT_EXPORT int PMPI_Init(int *argc, char ***argv) { return ct__call_init(argc, argv, true); }
CT_EXPORT int MPI_Finalize(void) { return ct__call_finalize(false); }
CT_EXPORT int PMPI_Finalize(void) { return ct__call_finalize(true); }

CT_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    return ct__call_init_thread(argc, argv, required, provided, false);
}

CT_EXPORT int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    return ct__call_init_thread(argc, argv, required, provided, true);
}

CT__EXPORT(ct__call_abort, ct__abort, MPI_Abort, PMPI_Abort, (MPI_Comm comm, int code), (comm, code))
CT__EXPORT(ct__call_start, ct__start, MPI_Start, PMPI_Start, (MPI_Request *request), (request))
CT__EXPORT(ct__call_startall, ct__startall, MPI_Startall, PMPI_Startall, (int count, MPI_Request requests[]),
           (count, requests))
CT__EXPORT(ct__call_request_free, ct__request_free, MPI_Request_free, PMPI_Request_free, (MPI_Request *request), (request))
