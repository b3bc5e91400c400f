/* A point while it is measured: what measure.c, repeat.c and point.c share. */
#pragma once

#include "agent.h"

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
    double pure_s, tested_s;         /* of a non-blocking call: see ct_point_views; < 0: not taken */
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

/* One timed call of a choice on all ranks, after a synchronisation. Returns an MPI error code. */
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
/* Whether a call takes so long that even its fewest repetitions are cut down: no other call than these is made then. */
bool ct_point_long(const ct_point *point, double time_s);
/* How many calls of `each_s` are made of one choice beside those that decide: few, and no more than `most`. */
int ct_point_calls_beside(const ct_point *point, double each_s, int most);
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
/* A non-blocking call with a computation between its start and its wait, `tests` looks at the request among it.
 * `seen_s`: what the application waits for, the time in MPI. Returns an MPI error code. */
int ct_point_overlapped(ct_point *point, MPI_Comm comm, int tests, double *seen_s);
/* Of a non-blocking choice, how long it takes with no computation, and what is seen of it where the computation looks at
 * the request now and then. Returns an MPI error code. */
int ct_point_views(ct_point *point, int index);
/* Marks the choices whose trial says that they cannot be the best. */
void ct_point_give_up(ct_point *point);
/* Repeats every choice until it is known well enough. `scratch`: room for all times and one more of each. Returns an MPI error code. */
int ct_point_repeat(ct_point *point, double *scratch);
