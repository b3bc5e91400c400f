/* The measuring agent: one MPI job that answers measuring requests for a whole campaign.
 *
 * Rank 0 reads requests, one line each, on standard input and writes answers on standard output. All other
 * ranks sleep until a request names their node. See docs/design/agent.md for the protocol. */
#pragma once

#define _GNU_SOURCE /* POSIX and Linux calls beside C11; this header comes first in every file */

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codes.h"
#include "heap.h"
#include "nodes.h"
#include "variables.h"
#include "watch.h"

#define CT_PROTOCOL 1
enum {
    CT_MAX_LINE = 1 << 26, /* bytes of a request; the largest that a catalogue makes has some 2^15 */
    CT_MAX_GROUPS = 64,    /* communicators that are kept; the one that was used least lately makes room */
    CT_USUAL_VARIANTS = 128, /* communicators of one group that differ in the settings they were made under; more only
                                where one request needs more */
    CT_MAX_REPETITIONS = 100000
};
enum { CT_TAG_REQUEST = 11, CT_TAG_RESULT = 12, CT_TAG_SYNC = 100 }; /* SYNC + the communicator's number while it is made */

/* ---- request.c: the text of a request ---- */

typedef struct {
    int setting_count;
    ct_setting *settings; /* owned; NULL: none */
    char *missing;        /* owned; the first control variable that the library lacks; NULL if none */
} ct_choice;

typedef struct {
    long id;
    char *collective; /* owned */
    size_t size_bytes;
    int ppn;
    int beside; /* communicators of so many ranks on these nodes, each of ranks of its own, that make each call at once */
    int node_count;
    int *nodes; /* owned */
    int root;
    int warm_up, fewest, most;
    double box_s;          /* for each choice */
    double relative_width; /* of the median's confidence interval */
    double skew_s;         /* up to which ranks arrive apart in further calls; 0: there are none */
    int limit_s;           /* for the trial of one choice, or for all repetitions, before a rank ends itself; 0: none */
    uint64_t seed;
    int name_count;
    char **names; /* [name_count] owned; control variables that choices name by place */
    int choice_count, choice_capacity;
    ct_choice *choices; /* [choice_count] owned */
} ct_request;

/* Reads one request of `length` bytes, which a zero byte follows. On failure returns false and fills `why`; nothing is
 * owned then, and `request->id` is that of the line as far as it could be read, or -1. */
bool ct_request_parse(const char *line, size_t length, ct_request *request, char *why, size_t why_size);
void ct_request_free(ct_request *request);

/* ---- world.c: which rank is where, and communicators over parts of the job ---- */

typedef struct {
    int rank, size;
    ct_nodes nodes;
    ct_watch watch;
} ct_world;

typedef struct {
    int setting_count;
    ct_setting *settings; /* owned */
    MPI_Comm comm;
} ct_variant;

typedef struct {
    MPI_Comm comm; /* of all ranks of the request, for what is agreed */
    MPI_Comm part; /* of those that make a call together: `comm` itself where there is nothing beside it */
    bool fresh; /* nothing has run on it yet */
    ct_watch *watch;
    bool leads; /* this rank looks after its machine */
    int node;   /* this rank's */
    ct_variant *variants; /* owned */
    int variant_count, variant_capacity;
} ct_group;

int ct_world_make(ct_world *world); /* MPI error code */
/* World ranks of a request, one communicator after the other, each in its order; returns their number, or -1 if the job
 * has no such ranks. */
int ct_world_members(const ct_world *world, const ct_request *request, int *members);
/* Communicators by number; only their members call make and release, all of them. */
int ct_group_make(ct_world *world, int slot, const int *members, int count, int beside, ct_group **group);
ct_group *ct_group_get(int slot); /* NULL: there is none */
int ct_group_release(int slot);
/* Room for the variants of all choices of `request`: without it, all variants so far are given back. */
int ct_group_reserve(ct_group *group, const ct_request *request);
/* The communicator on which calls run as `choice` says: of the ranks of the group's part, in their order. */
int ct_group_variant(ct_group *group, bool nonblocking, const ct_choice *choice, MPI_Comm *comm);

/* ---- native/alltoallv_measure, which only the agent of the non-uniform all-to-all is linked with ---- */

typedef struct ct_blocks_state ct_blocks_state;

/* The blocks of this rank, in bytes: what is sent, and what is received. */
typedef struct {
    int *counts[2], *places[2]; /* [size] owned, in one piece */
    size_t bytes[2];
    ct_blocks_state *state; /* owned */
} ct_timed_blocks;

#pragma weak ct_blocks_files
#pragma weak ct_blocks_make
#pragma weak ct_blocks_free
#pragma weak ct_blocks_exchange
/* The files of the distributions counts0, counts1 ... (weights.h). They are read when they are asked for. */
void ct_blocks_files(int count, char **paths);
/* Those of a request for "alltoallv[DISTRIBUTION,PEERS,SEED]", whose size is the average block. Collective; false on all ranks,
 * and `why` on the first. To be freed either way. */
bool ct_blocks_make(const ct_request *request, MPI_Comm comm, ct_timed_blocks *blocks, char *why, size_t why_size);
void ct_blocks_free(ct_timed_blocks *blocks);
/* Exchanges them as the variables of ours say (mock_ups.h). Returns an MPI error code. */
int ct_blocks_exchange(ct_timed_blocks *blocks, const void *send, void *receive, MPI_Comm comm);

/* ---- collective.c: the calls that are timed, their data, and the check of their results ---- */

typedef struct ct_timed_call ct_timed_call;

/* NULL where the collective is unknown or the buffers cannot be had; `why` says so, in one word. */
ct_timed_call *ct_call_make(const ct_request *request, MPI_Comm comm, char *why, size_t why_size);
void ct_call_free(ct_timed_call *call);
/* On one of the same ranks in the same order; a non-blocking call with its wait. Returns an MPI error code. */
int ct_call_run(ct_timed_call *call, MPI_Comm comm);
bool ct_call_overlaps(const ct_timed_call *call); /* whether it is a non-blocking one */
/* Starts a non-blocking call; `request` is to be completed where this returns MPI_SUCCESS. */
int ct_call_start(ct_timed_call *call, MPI_Comm comm, MPI_Request *request);
/* Sends what a non-blocking call sends at least, in rounds of one message to a rank at distance 1, 2, 4 ... The buffers
 * hold anything after it but what is sent. Returns an MPI error code. */
int ct_call_spread(ct_timed_call *call, MPI_Comm comm);
/* Bytes that are received into, the same on all ranks; `ct_call_untouch` gives their pages back to the system. */
size_t ct_call_receives(const ct_timed_call *call);
void ct_call_untouch(ct_timed_call *call);
void ct_call_poison(ct_timed_call *call);  /* makes sure that an old result cannot pass for a new one */
bool ct_call_correct(ct_timed_call *call); /* whether this rank's result is right, byte for byte */

/* Text that grows. */
typedef struct {
    char *text;
    size_t length, capacity;
} ct_text;

/* ---- measure.c, repeat.c, point.c, beside.c ---- */

/* Called on the group's first rank just before a choice runs for the first time, and then with choice -1 now and then
 * while all are repeated. */
typedef void ct_notice(void *context, long id, int choice);

/* Called on world rank 0 between timed calls, so that it can serve those that measure elsewhere meanwhile. Returns an
 * MPI error code. */
typedef int ct_attend(void *context);

/* Measures every choice of `request` on `group`; the answer's lines are added to `answer` on the first rank. `attend` is
 * NULL on ranks that serve nobody. */
int ct_measure(const ct_request *request, ct_group *group, ct_notice *notice, ct_attend *attend, void *context,
               ct_text *answer);

/* A barrier of the agent's own on point-to-point messages: no collective under test is used in it. */
int ct_synchronise(MPI_Comm comm);

/* ---- message.c ---- */

/* Writes to the host. */
void ct_message_print(const char *text, size_t length);
/* Sends a message on to this rank's children in the tree whose order is rank 0, then `members` without it. Returns an MPI
 * error code. */
int ct_message_forward(int rank, const char *message, int length, const int *members, int count);
/* Takes one message, if there is one; the caller frees it. `*length` < 0: none. */
char *ct_message_receive(int tag, int *length, int *code);

/* ---- input.c: lines from the host ---- */

typedef struct {
    char *text; /* owned: what was read and not yet used */
    size_t length, capacity, searched; /* searched: so many bytes hold no end of a line */
    const char *lost; /* why the line that is being read cannot be kept; NULL: it can */
    bool ended;
} ct_input;

/* Takes in what there is after waiting for it at most `wait_ms`. Returns whether there was anything. */
bool ct_input_read(ct_input *input, int wait_ms);
/* The first line, without its end, once it is complete; else NULL. Any byte but '\n' may be in it. */
const char *ct_input_line(ct_input *input, size_t *length);
void ct_input_drop(ct_input *input); /* the first line, which is complete */
void ct_input_end(ct_input *input);  /* nothing more is read or used */

/* ---- dispatch.c: requests out to the ranks that take part, answers back ---- */

/* Serves until standard input ends or a rank fails; all ranks call it. Returns an MPI error code. */
int ct_dispatch_serve(ct_world *world);

/* Sorts `values`; returns the median and the 95% confidence interval of it by order statistics. */
double ct_median_interval(double *values, int count, double *low, double *high);

/* ---- a point while it is measured: what measure.c, repeat.c, point.c and beside.c share ---- */

typedef enum { CT_OK, CT_INAPPLICABLE, CT_WRONG } ct_status;

typedef struct {
    ct_status status;
    char detail[160];
    MPI_Comm comm;  /* that the choice runs on */
    bool live;      /* still being measured */
    bool dominated;
    bool hopeless;  /* too slow in its trial to be worth more than one repetition */
    double *times;  /* [most] slowest rank's time by repetition, s; this rank's own until reduced */
    int count;      /* repetitions done */
    int reduced, quota; /* of these: those that all ranks agree on, and how many there are to be */
    double middle_s, low_s, high_s; /* median and its interval */
    double estimate_s;
    double own_sum_s; /* over this rank's repetitions */
    double back_to_back_s, skewed_s; /* < 0: not taken */
    double kept_s, untouched_s;      /* see ct_point_keep and ct_point_untouched; < 0: not taken */
    size_t largest;  /* block that this rank asks for in a call, in bytes */
    bool large;      /* whether any rank asks for one that makes a difference to the heap */
    double own_faults, faults; /* page faults of a call in the burst with fewest: this rank's, and of the rank with most */
    double cost_s;
} ct_choice_state;

typedef struct {
    const ct_request *request;
    ct_group *group;
    ct_timed_call *call;
    ct_choice_state *states;
    int *order; /* [choices] scratch */
    int heap_of; /* the choice that the heap is set for; -1: none of those that make a difference to it */
    bool heap_moves; /* on all ranks: see heap.h */
    int rank, size;
    uint64_t random;
    double compute_s; /* of the computation beside a non-blocking call */
    double inside_s;  /* time of this rank in calls of the collective, all of them */
    ct_notice *notice;
    ct_attend *attend;
    void *context;
    double noticed_s, attended_s; /* when they were called last */
} ct_point;

/* One timed call of a choice on all ranks, after a synchronisation; a non-blocking one as ct_point_overlapped. Returns an
 * MPI error code. */
int ct_point_run(ct_point *point, int index, double *elapsed_s);
/* Makes the next calls on the choice's communicator run as it says; `on` false: no more. Returns an MPI error code. */
int ct_point_steer(const ct_point *point, const ct_choice *choice, bool on);
/* Tells the host which choice comes next; -1: the same ones go on. An alarm ends a rank that is stuck: should the host
 * have died too, nobody else would. */
void ct_point_tell(ct_point *point, int choice);
/* Between timed calls: looks after those who want something of rank 0. Returns an MPI error code. */
int ct_point_attend(ct_point *point);
/* Between timed calls: tells the host that the ranks are at work, and puts off the alarm that ends one that is stuck. */
void ct_point_alive(ct_point *point);
/* Whether a call takes so long that even its fewest repetitions are cut down; and whether that, or too long for a first
 * look to repeat it: no other calls are made then. */
bool ct_point_long(const ct_point *point, double time_s);
bool ct_point_once(const ct_point *point, double time_s);
/* Times calls of a choice to which the ranks come late, each by its own share of the request's skew, from the arrival of
 * the last one. Returns an MPI error code. */
int ct_point_late(ct_point *point, int index);
/* Brings the heap into the state of a fresh program that makes this choice's calls: with an untimed call where another
 * choice was measured meanwhile that makes a difference to it. Returns an MPI error code. */
int ct_point_give_back(ct_point *point, int index);
/* Times calls of a choice whose calls meet page faults with a heap that keeps what is freed. Returns an MPI error code. */
int ct_point_keep(ct_point *point, int index);
/* Times calls of a choice that receive into memory which was never touched, where that is so large that an allocator maps
 * it anew. Returns an MPI error code. */
int ct_point_untouched(ct_point *point, int index);
/* Sets how long the computation beside a non-blocking call takes: as long as its data take to be exchanged by messages.
 * The same for all choices, whatever they do and whatever files are in force. Returns an MPI error code. */
int ct_point_calibrate(ct_point *point);
/* A non-blocking call with a computation between its start and its wait. `seen_s`: what the application waits for, the
 * time in MPI. Returns an MPI error code. */
int ct_point_overlapped(ct_point *point, MPI_Comm comm, double *seen_s);
/* Marks the choices whose trial says that they cannot be the best. */
void ct_point_give_up(ct_point *point);
/* Repeats every choice until it is known well enough. `scratch`: room for all times and one more of each. Returns an MPI error code. */
int ct_point_repeat(ct_point *point, double *scratch);
