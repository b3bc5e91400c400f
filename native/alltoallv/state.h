/* What is kept with a communicator. Where it is kept is the caller's: libcolltune.so has its registry, plain.c attributes. */
#pragma once

#include "policy.h"
#include "table.h"
#include "team.h"

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
