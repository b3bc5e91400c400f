/* What is kept with a communicator, as an attribute of it: gone when it is freed, and not copied to its duplicates. */
#ifndef CT_STATE_H
#define CT_STATE_H

#include "policy.h"
#include "table.h"
#include "team.h"

typedef struct ct_state {
    MPI_Comm comm;
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

/* The state, or NULL where there is none yet. */
int ct_state_find(MPI_Comm comm, ct_state **state);
/* The state of a communicator with something to choose, else NULL; collective. The calls before the table's first
 * go to the library, so that communicators for few calls cost nothing. */
int ct_state_for_table(MPI_Comm comm, ct_state **state);
/* The team of a communicator that is no inter-communicator; collective. */
int ct_state_team(MPI_Comm comm, ct_team **team);

#endif
