/* A simulated cluster, message by message: ranks are coroutines that run the real algorithms; time is reckoned.
 *
 * A message costs its sender and its receiver CPU time each. Between nodes it goes by way of links (routes.c has the networks),
 * each of which carries one message at a time, in order of arrival, and passes it on as its head arrives; within a node it takes
 * a latency and its bytes. The constants are those of the simulated clusters that colltune tunes (docs/design/simulated.md), for the
 * fat tree also those of the SimGrid platform in benchmarks/alltoallv_simulators.py, where links are shared instead; what is left
 * out is the same there (adaptive routes, memory bandwidth of the node, noise). */
#ifndef CT_CLUSTER_H
#define CT_CLUSTER_H

#include "mpi.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct ct_message {
    struct ct_message *next; /* of the same pair of ranks; or of those not in use */
    struct ct_message *match;
    char *data;
    double time_s; /* of a send: at its link; once done: when it was */
    int from, to, tag, bytes, capacity;
    bool receive, eager, done, there; /* there: a send has arrived */
    int waiter;                       /* a rank that waits for it, or -1 */
} ct_message;

typedef struct {
    double clock_s;
    int missing; /* of what it waits for */
} ct_rank;

/* Runs `body` on every rank, to its end. Where all ranks wait, `go_on` carries on with what they wait for; false: nothing is
 * left of it. */
void ct_cluster_run(int ranks, void (*body)(void *), void *argument, bool (*go_on)(void));
int ct_cluster_ranks(void);
int ct_cluster_me(void);
ct_rank *ct_cluster_rank(int rank);

/* Called by ranks. Goes on with other ranks until `missing` is 0. */
void ct_cluster_sleep_until_complete(void);
void ct_cluster_ready(int rank);
int ct_cluster_others_ready(void);
/* All ranks meet; all clocks are then that of the last. Takes no time. */
void ct_cluster_barrier(void);

/* ---- routes.c ---- */
enum { CT_ROUTE_MOST = 64 };

typedef struct {
    const char *name;
    double link_bytes_per_s, link_s; /* of every link: bandwidth and latency */
    double node_bytes_per_s, node_s; /* between ranks of a node */
    double message_s;                /* CPU time of a message, at either end */
    int (*links)(int nodes);         /* how many there are */
    int (*route)(int nodes, int from, int to, int links[CT_ROUTE_MOST]); /* between two nodes, in order; how many */
} ct_network;

/* "fattree", "dragonfly", "torus"; NULL for another. */
const ct_network *ct_network_find(const char *name);

/* ---- network.c ---- */
/* `text`: ROUTES[,SPEEDS[,APART]], two names of networks, and how far apart the job's nodes are in a network that has so many times
 * as many. False: there is no such network. */
bool ct_network_make(const char *text, int nodes, int ppn);
double ct_network_message_s(void);
/* `message` gets on its way at its time_s. */
void ct_network_send(ct_message *message);
/* Carries one message on by one link; false: none is on its way. `*arrived`: the message if it is there now, else NULL. */
bool ct_network_step(ct_message **arrived);
/* ---- types.c ---- */
size_t ct_type_bytes(MPI_Datatype type);
/* ---- messages.c ---- */
/* The same, and gives what arrived to the receive that waits for it. */
bool ct_messages_step(void);

#endif
