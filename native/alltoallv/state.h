/* What is kept with a communicator, as an attribute of it: gone when it is freed, and not copied to its duplicates. */
#ifndef CT_STATE_H
#define CT_STATE_H

#include "policy.h"
#include "table.h"
#include "team.h"

typedef struct ct_state {
    MPI_Comm comm;
    int size;       /* of the local group */
    int ppn;        /* the ranks on its fullest node, 0: nobody said */
    bool inter;
    int64_t calls;  /* before the choice was set up */
    int first_call; /* of the table's, by its word; 0: not known yet */
    bool off;       /* set up, and nothing to choose: the library */
    bool ready;     /* set up, and `table` and `policy` count */
    ct_team *team;  /* NULL: not needed so far */
    ct_table table; /* choices in the form that is run */
    ct_policy policy;
    ct_alltoallv_choice last;
    int64_t agreements; /* reductions so far */
    struct ct_state *previous, *next;
} ct_state;

/* Where a function here fails, the error has been raised on the communicator already. */

/* The state, or NULL where there is none yet. */
int ct_state_find(MPI_Comm comm, ct_state **state);
/* The state, made if there is none; no other rank is asked. */
int ct_state_need(MPI_Comm comm, ct_state **state);
/* `ppn`: as in ct_state. Counts a call that all ranks make, and sets up where it is time; collective, unless the state is `ready` or `off`. The
 * calls before the table's first go to the library, so that communicators for few calls cost nothing. */
int ct_state_count(ct_state *state, int ppn);
/* The team of a communicator that is no inter-communicator; collective. */
int ct_state_team(ct_state *state, ct_team **team);

/* A communicator of this rank alone, once there is any state: its errors come back as codes. */
MPI_Comm ct_state_own_comm(void);
/* Calls the program's error handler for an error that no handler has been called for; returns the code. */
int ct_state_raise(MPI_Comm comm, int code);

#endif
