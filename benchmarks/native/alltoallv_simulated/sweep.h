/* Times settings of the non-uniform all-to-all on a simulated cluster, one simulation for all of them. The cluster is
 * SimGrid's (smpi.c) or our own (benchmarks/native/alltoallv_cluster).
 *
 *     sweep REQUESTS PPN SEED           with SMPI, started by smpirun
 *     sweep REQUESTS PPN SEED NODES NETWORK     on our own; NETWORK as ct_network_make takes it
 *
 * A line of REQUESTS: algorithm radix batch direct_above distribution bytes peers. With peers -1 the distribution is one of
 * pattern.c and `bytes` its largest block; else one of native/alltoallv_measure/weights.h with so many peers, and `bytes` the
 * average block of the busiest rank. Linear has no blocks to forward; there
 * `direct_above`, if not 0, is the number of peers, evenly spread, that are simulated of all size - 1. `library` is what
 * MPICH does in MPI_Alltoallv, with the throttle that it has by default: runs of 32 peers, each awaited before the next.
 *
 * Answers, on standard output: the same, the simulated seconds from a common start until the last rank is done, mean and
 * largest block in bytes, the peers of the busiest rank, the standard deviation and skewness of blocks, their quartiles,
 * and the CPU seconds that the simulation took.
 *
 * All ranks share one send and one receive buffer: data are not checked here (tests/native/alltoallv_property.c does),
 * but every header is real. Copying takes simulated time; computing takes none. */
#ifndef CT_SWEEP_H
#define CT_SWEEP_H

#include "algorithms.h"
#include "weights.h"

typedef struct {
    char algorithm[32], distribution[16];
    ct_alltoallv_choice choice;
    int largest, peers;
    ct_blocks blocks; /* unless peers is -1 */
    double unit;      /* bytes of a weight */
    bool *is_peer;    /* [size] by distance */
} ct_sweep_request;

typedef struct {
    double mean, largest, deviation, skewness, quartile_1, quartile_3;
} ct_sweep_shape;

/* Draws the blocks of a request with peers: the bytes of the largest; -1: no memory. */
int ct_pattern_draw(ct_sweep_request *r, uint64_t seed, int size);
/* Bytes of the block from one rank to another: the same wherever it is asked. */
int ct_pattern_bytes(const ct_sweep_request *r, uint64_t seed, int from, int to, int size);
/* The shape of the distribution, from a sample of the pairs. */
ct_sweep_shape ct_pattern_shape(const ct_sweep_request *r, uint64_t seed, int size);

/* Run by every rank, after ct_sweep_open. */
int ct_sweep(MPI_Comm comm, int ppn, uint64_t seed);
bool ct_sweep_open(const char *path);
/* MPI_Alltoallv by what MPICH does. */
int ct_sweep_library(ct_team *team, const ct_exchange *x);
/* The first ranks of nodes of `*ppn` ranks each. */
int ct_sweep_leaders(const void *ppn, MPI_Comm comm, int *leaders);

/* What the cluster provides. */
void ct_machine_barrier(void); /* of all ranks; takes no simulated time */
double ct_machine_clock_s(void);
double ct_machine_cpu_s(void); /* of the simulation itself */
void ct_machine_sleep(double time_s);

#endif
