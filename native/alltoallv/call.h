/* Calls, and what is kept with their communicators. */
#pragma once

#include "policy.h"
#include "table.h"
#include "team.h"

/* What is kept with a communicator. Where it is kept is the caller's: libcolltune.so has its registry, plain.c attributes. */
typedef struct {
    int64_t calls;     /* before the choice was set up */
    int64_t set_up_at; /* the call that sets up; 0: not known yet */
    bool off;          /* nothing to choose: the library */
    ct_team *team;     /* NULL: not needed so far */
    bool ready;        /* set up, and what follows counts */
    ct_table table;
    ct_policy policy;
    ct_alltoallv_choice last;
} ct_state;

/* Gets the team, if there is none; collective. Leaves it NULL, on all ranks alike, where there is no communicator or no memory for
 * one: this is not raised, and the library serves as well. */
int ct_state_team(ct_state *state, MPI_Comm comm, ct_team_nodes *leaders, const void *of);
/* The table is there, and the team. */
void ct_state_begin(ct_state *state);
void ct_state_free(ct_state *state);

/* A call as the application made it, in any of the forms of MPI_Alltoallv and MPI_Alltoallw. */
typedef struct {
    const void *send;
    const void *send_counts, *send_displacements;
    MPI_Datatype send_type;
    const MPI_Datatype *send_types; /* MPI_Alltoallw; NULL: MPI_Alltoallv */
    void *receive;
    const void *receive_counts, *receive_displacements;
    MPI_Datatype receive_type;
    const MPI_Datatype *receive_types;
    MPI_Comm comm;
    bool wide; /* the forms with large counts */
} ct_a2av_call;

/* Whether the library would take the call: counts, types and buffers that can be. `own_comm`: of this rank alone, with errors as
 * codes. Says nothing of other ranks, so a call that is not sound must not be counted. */
bool ct_call_is_sound(const ct_a2av_call *call, int size, MPI_Comm own_comm);

/* The blocks of a call; for ct_exchange_free, whatever it returns. */
int ct_call_exchange(const ct_a2av_call *call, int size, ct_exchange *x);
void ct_exchange_free(ct_exchange *x);

/* By what is set up for the communicator. False: the library is to make the call; else `*code` is the result, and no error handler
 * has been called. */
bool ct_call_tuned(ct_state *state, const ct_a2av_call *call, int *code);
int ct_call_library(const ct_a2av_call *call);

/* In libcolltune.so, while its wrapper of MPI_Alltoallv goes by the table: what it keeps for a communicator, or NULL. Else NULL. */
extern const ct_state *(*ct_plain_wrapped)(MPI_Comm comm);
/* ct_alltoallv_by, with all that a call may have. */
int ct_call_by(const ct_alltoallv_choice *choice, const ct_a2av_call *call);
