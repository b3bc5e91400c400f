/* Who of an MPI job looks at what else runs on each machine, and what the ranks of a measurement are told of it. */
#pragma once

#include <mpi.h>

#include "load.h"

typedef struct {
    int rank, size;
    unsigned long long *machine_of; /* [size] owned; several nodes may be one machine */
    pid_t *pids;                    /* owned: of the ranks on this rank's machine */
    int count;
    bool whole;                     /* these are all of them */
    ct_load *load;                  /* owned; opened by the first measurement that this rank looks after */
} ct_watch;

/* On all ranks of the job. Returns an MPI error code. */
int ct_watch_make(MPI_Comm world, ct_watch *watch);
void ct_watch_start(ct_watch *watch); /* what `ct_watch_tell_whole` tells of begins */
void ct_watch_free(ct_watch *watch);
/* Whether this rank looks after its machine for `members`, ranks of the job: it is the first of them there. */
bool ct_watch_leads(const ct_watch *watch, const int *members, int count);
/* Begins a measurement, on every rank of it; `leads`: as above. Returns what `ct_watch_tell` wants. */
double ct_watch_begin(ct_watch *watch, bool leads);
/* Ends it, on every rank of `comm`: " waited=0.01@0 others=..." for its first rank, each with the `node` where it was most;
 * "" on the others. Returns an MPI error code. */
int ct_watch_tell(ct_watch *watch, bool leads, int node, double begun, MPI_Comm comm, char *text, int size);

/* In the midst of a measurement, on a rank that leads: what runs beside it on its own machine, " others=0.5@0"; "": nothing
 * is known. */
void ct_watch_glance(ct_watch *watch, int node, char *text, int size);
/* The same of all since the start, on every rank of the job. Waits where that is less than a tenth of a second ago. */
int ct_watch_tell_whole(ct_watch *watch, int node, MPI_Comm world, char *text, int size);
