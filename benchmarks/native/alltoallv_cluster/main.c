/* The sweep on the cluster of cluster.h; the clock and the sleep of a program there too. */
#include "cluster.h"
#include "sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void ct_machine_barrier(void) { ct_cluster_barrier(); }
double ct_machine_clock_s(void) { return ct_cluster_rank(ct_cluster_me())->clock_s; }
void ct_machine_sleep(double time_s) { ct_cluster_rank(ct_cluster_me())->clock_s += time_s; }

double ct_machine_cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#ifndef CT_PROGRAM
typedef struct {
    int ppn;
    uint64_t seed;
} ct__job;

static void ct__body(void *argument)
{
    const ct__job *job = argument;
    if (ct_sweep(MPI_COMM_WORLD, job->ppn, job->seed) != MPI_SUCCESS) {
        fprintf(stderr, "sweep: rank %d could not set up\n", ct_cluster_me());
        exit(1);
    }
}

int main(int argc, char **argv)
{
    ct__job job = {.ppn = argc == 6 ? atoi(argv[2]) : 0, .seed = argc == 6 ? strtoull(argv[3], NULL, 10) : 0};
    int nodes = argc == 6 ? atoi(argv[4]) : 0;
    if (job.ppn < 1 || nodes < 1 || !ct_sweep_open(argv[1]) || !ct_network_make(argv[5], nodes, job.ppn)) {
        fprintf(stderr, "usage: sweep REQUESTS PPN SEED NODES NETWORK\n");
        return 2;
    }
    ct_cluster_run(nodes * job.ppn, ct__body, &job, ct_messages_step);
    return 0;
}
#endif
