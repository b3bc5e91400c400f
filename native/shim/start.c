/* Beginning and end of the program's use of MPI. */
#define _GNU_SOURCE
#include "private_comm.h"
#include "shim.h"
#include "variables.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct ct_job ct_job;

/* MPI_X: the next tool's or the library's. */
static int (*ct__init)(int *, char ***);
static int (*ct__init_thread)(int *, char ***, int, int *);
static int (*ct__finalize)(void);
static int ct__inside; /* calls of MPI_Init that have not returned: a tool's MPI_Init calls PMPI_Init */

uint64_t ct_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

const char *ct_function_name(ct_function function)
{
    static const char *const NAMES[CT_FUNCTIONS] = {
        "barrier",
#define CT__NAME(X, NAME, LOWER, UPPER, SIGNATURE) #LOWER,
        CT_COLLECTIVES(CT__NAME, )
    };
    return NAMES[function];
}

static bool ct__find_world(void)
{
    int level = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&level);
    ct_job.threads_multiple = level == MPI_THREAD_MULTIPLE;
    return ct_private_comm(MPI_COMM_WORLD, true, &ct_job.comm) == MPI_SUCCESS &&
           PMPI_Comm_rank(ct_job.comm, &ct_job.rank) == MPI_SUCCESS &&
           PMPI_Comm_size(ct_job.comm, &ct_job.size) == MPI_SUCCESS &&
           PMPI_Comm_group(ct_job.comm, &ct_job.group) == MPI_SUCCESS &&
           ct_nodes_find(ct_job.comm, &ct_job.nodes) == MPI_SUCCESS;
}

static void ct__last_words(const char *why)
{
    if (ct_ready)
        ct_modules_die(why);
}

static bool ct__announced, ct__holds_tools;
static ct_mpi *ct__mpi; /* of the program */

static void ct__announce(void)
{
    ct__announced = !ct_ready; /* the core is opened only where a module is wanted (entry/core.c) */
    if (ct__announced)
        ct_attendance_announce();
#ifdef OPEN_MPI
    /* For MPI_T it loads all its components: behind MPI_Init, which unloads what it has no use for, again (PSM2: 0.2 s). */
    ct__holds_tools = ct__announced && getenv("COLLTUNE_SELECT") != NULL &&
                      MPI_T_init_thread(MPI_THREAD_SINGLE, &(int){0}) == MPI_SUCCESS;
#endif
}

static void ct__begin(bool initialised)
{
    if (!ct__announced)
        return;
    ct__announced = false;
    uint64_t begun_ns = ct_now_ns();
    if (!initialised)
        ct_attendance_forget();
    if (!initialised || !ct_attendance_whole() || !ct__find_world())
        return;
    ct_errors_look(MPI_COMM_WORLD);
    ct_errors_look(MPI_COMM_SELF);
    ct_modules_start();
    ct_wrap_collectives(ct__mpi);
    ct_job.started_ns = ct_now_ns();
    ct_job.start_ns = ct_job.started_ns - begun_ns;
    if (ct_ready)
        ct_signals_take(ct_modules_have_last_words() ? ct__last_words : NULL);
}

static void ct__before_init(void)
{
    if (ct__inside++ == 0)
        ct__announce();
}

static int ct__after_init(int code)
{
    if (--ct__inside > 0)
        return code;
    ct__begin(code == MPI_SUCCESS);
    if (ct__holds_tools)
        MPI_T_finalize();
    return code;
}

static void ct__before_finalize(void)
{
    if (ct_ready) {
        ct_modules_stop();
        ct_signals_give_back();
    }
}

/* MPI_X and PMPI_X, which go on to what the program has as such. */
#define CT__INIT(NAME, PARAMETERS, NEXT) \
    static int NAME PARAMETERS { return ct__before_init(), ct__after_init(NEXT); }
CT__INIT(ct__MPI_Init, (int *argc, char ***argv), ct__init(argc, argv))
CT__INIT(ct__PMPI_Init, (int *argc, char ***argv), ct_real.Init(argc, argv))
CT__INIT(ct__MPI_Init_thread, (int *argc, char ***argv, int required, int *got), ct__init_thread(argc, argv, required, got))
CT__INIT(ct__PMPI_Init_thread, (int *argc, char ***argv, int required, int *got), ct_real.Init_thread(argc, argv, required, got))
static int ct__MPI_Finalize(void) { return ct__before_finalize(), ct__finalize(); }
static int ct__PMPI_Finalize(void) { return ct__before_finalize(), ct_real.Finalize(); }

/* MPICH's MPI_Abort may come back before the launcher ends the job: the others are not to be joined in MPI_Finalize. */
static int ct__Abort(MPI_Comm comm, int code)
{
    ct_signals_aborted();
    ct_ready = false;
    return ct_real.Abort(comm, code);
}

static int ct__Start(MPI_Request *request)
{
    if (!ct_passes() && request != NULL)
        ct_modules_request(*request, false);
    return ct_real.Start(request);
}

static int ct__Startall(int count, MPI_Request *requests)
{
    for (int i = 0; i < count && requests != NULL && !ct_passes(); i++)
        ct_modules_request(requests[i], false);
    return ct_real.Startall(count, requests);
}

static int ct__Request_free(MPI_Request *request)
{
    if (!ct_passes() && request != NULL)
        ct_modules_request(*request, true);
    return ct_real.Request_free(request);
}

static int ct__Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler)
{
    ct_errors_note(handler);
    return ct_real.Comm_set_errhandler(comm, handler);
}

static int ct__Comm_free(MPI_Comm *comm) { return ct_comm_free(comm, ct_real.Comm_free); }

static int ct__Comm_disconnect(MPI_Comm *comm) { return ct_comm_free(comm, ct_real.Comm_disconnect); }

static int ct__Comm_idup(MPI_Comm comm, MPI_Comm *made, MPI_Request *request)
{
    return ct_comm_idup(ct_real.Comm_idup(comm, made, request), made);
}

static int ct__Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *made, MPI_Request *request)
{
    return ct_comm_idup(ct_real.Comm_idup_with_info(comm, info, made, request), made);
}

/* The program's own writes of control variables: what it leaves there is what it finds again after a call of ours. */
static int ct__T_cvar_write(MPI_T_cvar_handle handle, const void *value)
{
    return ct_depth > 0 ? ct_real.T_cvar_write(handle, value) : ct_variable_written(handle, value, ct_real.T_cvar_write);
}

/* Plain and profiling function of its own: a tool's MPI_Init and MPI_Finalize belong to the tool, and not to the program. */
#define CT__TAKE(NEXT, NAME)                                                                                           \
    memcpy(&NEXT, &mpi->plain[CT_AT_##NAME], sizeof NEXT);                                                             \
    mpi->plain[CT_AT_##NAME] = (ct_function_of_mpi *)ct__MPI_##NAME;                                                   \
    mpi->profiling[CT_AT_##NAME] = (ct_function_of_mpi *)ct__PMPI_##NAME;
#define CT__WRAP(NAME) ct_wrap(mpi, CT_AT_##NAME, (ct_function_of_mpi *)ct__##NAME);

void ct_core_open(ct_mpi *mpi)
{
    ct__mpi = mpi;
    ct_find_real(mpi);
    CT__TAKE(ct__init, Init)
    CT__TAKE(ct__init_thread, Init_thread)
    CT__TAKE(ct__finalize, Finalize)
    CT__WRAP(Abort)
    CT__WRAP(Start)
    CT__WRAP(Startall)
    CT__WRAP(Request_free)
    CT__WRAP(Comm_set_errhandler)
    CT__WRAP(Comm_free)
    CT__WRAP(Comm_disconnect)
    CT__WRAP(Comm_idup)
    CT__WRAP(Comm_idup_with_info)
    CT__WRAP(T_cvar_write)
    mpi->watched = true;
}
