/* The sweep on the cluster of cluster.h. */
#include "cluster.h"
#include "sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct {
    int ppn;
    uint64_t seed;
} ct__job;

void ct_machine_barrier(void) { ct_cluster_barrier(); }
double ct_machine_clock_s(void) { return ct_cluster_rank(ct_cluster_me())->clock_s; }
void ct_machine_sleep(double time_s) { ct_cluster_rank(ct_cluster_me())->clock_s += time_s; }
double ct_machine_cpu_s(void) { return (double)clock() / CLOCKS_PER_SEC; }

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
    const ct_network *network = argc == 6 ? ct_network_find(argv[5]) : NULL;
    if (network == NULL || !ct_sweep_open(argv[1]) || atoi(argv[2]) < 1 || atoi(argv[4]) < 1) {
        fprintf(stderr, "usage: sweep REQUESTS PPN SEED NODES NETWORK\n");
        return 2;
    }
    ct__job job = {.ppn = atoi(argv[2]), .seed = strtoull(argv[3], NULL, 10)};
    int nodes = atoi(argv[4]);
    ct_network_make(network, nodes, job.ppn);
    ct_cluster_run(nodes * job.ppn, ct__body, &job, ct_messages_step);
    return 0;
}
