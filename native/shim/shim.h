/* libcolltune.so: a library that is preloaded into an MPI program and sees each of its collective calls.
 *
 * It is two files. What is preloaded (native/entry) has the names of MPI, and is linked to no MPI. This core is linked to the MPI
 * that it was compiled for, and is loaded at MPI_Init where the program has that very library; its functions then stand behind
 * those names. A program with another MPI, or with none, meets the names alone, which pass its calls on.
 *
 * A call of MPI_X or PMPI_X by the program comes to the wrapper of X in wrappers.c. Where another tool
 * is loaded behind us, its MPI_X is called at once, and the call is looked at when the tool makes it as PMPI_X: every tool sees
 * the program's own calls, wherever it stands. The call goes
 *
 *     before: profile -> select        each module that is at work sees the call and may note things in it; the
 *                                      selector asks the experiment (measure.h) whether a rule is to hold now
 *     carry_out: alltoallv             the first module that takes the call over makes it; else the library does
 *     after: select -> measure -> profile   in the reverse order, so that the profile's time holds all that others add
 *
 * PMPI_X is taken as well, because the Fortran layer of some libraries (Open MPI) calls it instead of MPI_X. Every
 * Fortran interface (mpif.h, mpi, mpi_f08) ends in one of the two in C, with MPI_IN_PLACE, MPI_BOTTOM and the like
 * already converted by the library itself; so no Fortran symbol has to be interposed. Calls that the library makes for
 * itself, and calls made inside a wrapper, pass through: a module may call PMPI_ functions freely inside its hooks. */
#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codes.h"
#include "entry.h"
#include "functions.h"
#include "nodes.h"

typedef enum { CT_BLOCKING, CT_NONBLOCKING, CT_PERSISTENT, CT_FORMS } ct_form;
#define CT__NUMBER(UPPER, LOWER) CT_MODULE_##UPPER,
typedef enum { CT_EACH_MODULE(CT__NUMBER) CT_MODULES } ct_module_id;
#undef CT__NUMBER

/* What is known of a communicator, from its first collective call until it is freed. Never moves in memory. */
typedef struct ct_comm {
    MPI_Comm handle;
    int rank, size;             /* in the local group */
    int remote_size;            /* 0: an intracommunicator */
    int nodes;                  /* 0: unknown, as with ranks of another world */
    int ppn;                    /* the most ranks that any node has */
    bool even;                  /* every node has `ppn` ranks */
    uint64_t sequence;          /* blocking collective calls so far */
    void *data[CT_MODULES];     /* of each module; it is told when the communicator goes */
    struct ct_comm *older, *newer; /* the registry's, as what follows */
    const void *maker;          /* the thread that made this entry */
} ct_comm;

/* Error handlers of MPI_COMM_WORLD and MPI_COMM_SELF that were put aside; MPI_ERRHANDLER_NULL: it is in its place. */
typedef struct {
    MPI_Errhandler world, self;
} ct_handlers;

/* A collective call. Fields that the function does not have are zero. Counts are those of the call, whatever its
 * width; arrays are `int` (counts, displacements) unless `large`, then MPI_Count and MPI_Aint. */
typedef struct {
    ct_function function;
    ct_form form;
    bool large;
    int root;
    MPI_Comm comm;
    MPI_Op op;
    const void *send;
    void *recv;                 /* of bcast: the buffer, as `send` */
    MPI_Count send_count, recv_count;
    const void *send_counts, *send_displs, *recv_counts, *recv_displs;
    MPI_Datatype send_type, recv_type;
    const MPI_Datatype *send_types, *recv_types;
    MPI_Info info;              /* persistent */
    MPI_Request *request;       /* non-blocking and persistent */
    ct_comm *known;             /* what is known of `comm` */
    MPI_Errhandler handler;     /* the program's own, in whose place errors come back as codes; or MPI_ERRHANDLER_NULL */
    ct_handlers handlers;       /* the same of those for what is wrong without a communicator */
    MPI_Comm made_on;           /* `comm`, or what a module has the library make the call on in its place */
    bool elsewhere;             /* was made on another communicator, whose errors come back as codes */
    bool refused;               /* in `after`: an argument is wrong, so this rank has not taken part in the call */
    uint64_t started_ns;        /* profile: when the call came */
    uint32_t stands_for;        /* profile: so many calls, where its page faults are counted; else 0 */
    long faults;                /* profile: those of this thread before the call */
    const void *choice;         /* the selector's, from `before` to `after` */
    void *cell;                 /* the experiment's, the same */
} ct_call;

/* All fields, so that what a function has not is stored as zero one by one: an initializer that leaves some out clears the whole by a
 * string instruction, which takes 10 ns to begin. */
#define CT_NO_CALL                                                                                                     \
    .function = CT_BARRIER, .form = CT_BLOCKING, .large = false, .root = 0, .op = (MPI_Op)0, .send = NULL, .recv = NULL, \
    .send_count = 0, .recv_count = 0, .send_counts = NULL, .send_displs = NULL, .recv_counts = NULL, .recv_displs = NULL, \
    .send_type = (MPI_Datatype)0, .recv_type = (MPI_Datatype)0, .send_types = NULL, .recv_types = NULL, .info = (MPI_Info)0, \
    .request = NULL, .known = NULL, .handler = (MPI_Errhandler)0, .handlers = {(MPI_Errhandler)0, (MPI_Errhandler)0}, \
    .elsewhere = false, .refused = false, .started_ns = 0, .stands_for = 0, .faults = 0, .choice = NULL, .cell = NULL

typedef struct {
    bool (*wants)(ct_function function, ct_form form); /* once started; NULL: all calls */
    /* After MPI_Init: reads its COLLTUNE_ variables; false: nothing for this module to do in this program. May call
     * collectives of MPI_COMM_WORLD if it does so on all ranks. */
    bool (*start)(void);
    void (*before)(ct_call *call);
    /* Makes the call in place of the library; false: it did not. The decision must be the same on all ranks. */
    bool (*carry_out)(ct_call *call, int *code);
    void (*after)(ct_call *call, int code);
    /* MPI_Start of a request of a persistent collective. */
    void (*request_started)(MPI_Request request);
    void (*request_freed)(MPI_Request request);
    void (*comm_freed)(ct_comm *comm);
    /* In MPI_Finalize, while MPI still works. */
    void (*stop)(void);
    /* The program is being ended otherwise. Only async-signal-safe functions; no MPI, and no change of what calls need:
     * the program may go on. `why`: MPI_Abort, SIGTERM ... */
    void (*die)(const char *why);
} ct_module;

#define CT__MODULE(UPPER, LOWER) extern const ct_module ct_##LOWER##_module;
CT_EACH_MODULE(CT__MODULE)
#undef CT__MODULE

/* The job, filled in when MPI is initialised. */
struct ct_job {
    int rank, size;
    ct_nodes nodes;             /* of the ranks of MPI_COMM_WORLD */
    MPI_Comm comm;              /* the ranks of MPI_COMM_WORLD, for colltune's own messages */
    MPI_Group group;            /* of MPI_COMM_WORLD */
    bool threads_multiple;
    uint64_t started_ns;
    uint64_t start_ns;          /* from the end of the library's own MPI_Init until then */
};

extern struct ct_job ct_job;
/* The library's PMPI_ functions. */
typedef struct {
#define CT__POINTER(NAME, UPPER, SIGNATURE, FORM, COUNT, DISPL, LARGE) \
    int(*NAME) CT_PARAMETERS(SIGNATURE, FORM, COUNT, DISPL);
#define CT__OTHER(NAME, PARAMETERS, ARGUMENTS) int(*NAME) PARAMETERS;
    CT_EACH_FUNCTION(CT__POINTER) CT_EACH_OTHER(CT__OTHER)
#undef CT__POINTER
#undef CT__OTHER
} ct_real_functions;

extern ct_real_functions ct_real;
extern bool ct_ready;

/* One of the counts of a call, whatever their width. */
static inline MPI_Count ct_count_at(const void *counts, bool large, int i)
{
    return large ? ((const MPI_Count *)counts)[i] : (MPI_Count)((const int *)counts)[i];
}

/* Whether the wrappers have nothing to do: outside MPI_Init ... MPI_Finalize, or inside another wrapper. */
static inline bool ct_passes(void) { return __builtin_expect(!ct_ready || ct_depth > 0, 0); }
/* Nanoseconds on a clock that all processes of a node share. */
uint64_t ct_now_ns(void);
const char *ct_function_name(ct_function function);

/* Around the call. ct_enter returns false for one on no communicator, which is for the library alone. ct_leave returns whether
 * `*code` is what the program gets; else the call is to be made again by the library, with nothing around it. */
bool ct_enter(ct_call *call);
bool ct_leave(ct_call *call, int *code);
/* A communicator has that handler. As long as none has one of the program's own, calls need not ask for it. */
void ct_errors_note(MPI_Errhandler handler);
void ct_errors_look(MPI_Comm comm); /* which it has */
/* In between, errors without a communicator come back as codes: in place of the program's own handlers, and with `fatal_too`
 * of the library's. */
ct_handlers ct_errors_take(bool fatal_too);
void ct_errors_give_back(ct_handlers *taken);

/* Finds the library's functions. */
void ct_find_real(const ct_mpi *mpi);
/* Puts the wrappers of those collectives that a module at work wants in the program's way: others cost nothing. */
void ct_wrap_collectives(ct_mpi *mpi);
/* Puts a wrapper there. */
void ct_wrap(ct_mpi *mpi, int at, ct_function_of_mpi *wrapper);
void ct_modules_start(void);
bool ct_modules_want(ct_function function, ct_form form);
void ct_modules_stop(void);
/* `before` and `carry_out` of all modules: whether one has made the call, then `*code` is its result. */
bool ct_modules_before(ct_call *call, int *code);
void ct_modules_after(ct_call *call, int code);
/* Whether a module at work has a `die`. */
bool ct_modules_have_last_words(void);
void ct_modules_die(const char *why);
void ct_modules_comm_freed(ct_comm *comm);
void ct_modules_request(MPI_Request request, bool freed);
/* NULL for a communicator that cannot be looked at. */
ct_comm *ct_comm_get(MPI_Comm comm);
/* The first rank of each rank's node, for ct_team_make: of the ranks of `known`, whose nodes are; MPI error code. */
int ct_comm_leaders(const void *known, MPI_Comm handle, int *leaders);
/* MPI_Comm_free or MPI_Comm_disconnect, by the library's own. */
int ct_comm_free(MPI_Comm *comm, int (*library_s)(MPI_Comm *));
/* A duplicate has been begun, with `code`; returns that. */
int ct_comm_idup(int code, const MPI_Comm *made);
/* In MPI_Finalize: ends all entries. */
void ct_comm_stop(void);
/* Before the MPI's own MPI_Init: this process has the library. */
void ct_attendance_announce(void);
/* After it, without a message: whether all ranks of the program have it, as far as that can be told. The same on all. */
bool ct_attendance_whole(void);
void ct_attendance_forget(void);

/* The key-value space of the job, which its launcher keeps for the ranks of all nodes. What is put there before a rank has ended
 * the MPI's own MPI_Init, every rank can read after it, without a message to any rank. */

/* Before the MPI's own MPI_Init, on every rank of a job of several nodes: it may be spoken to. `hydra`: whether Hydra started it.
 * `ranks` of MPI_COMM_WORLD, in any order, have the library: those of a whole node, from one of them, or none. They are sorted,
 * and stay until MPI_Init has ended. */
void ct_keys_put(bool hydra, int *ranks, int count);
/* After it: whether it could be spoken to, the same on all ranks. */
bool ct_keys_are_there(void);
/* Then, in a job of `world` ranks: whether all are among those that were put; `first`: the first that is, or -1. */
bool ct_keys_hold_all(int world, int *first);
