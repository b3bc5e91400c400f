/* The sweep on SimGrid's SMPI: all ranks are threads of one process. */
#include "sweep.h"

#include <simgrid/actor.h>
#include <simgrid/barrier.h>
#include <simgrid/engine.h>
#include <smpi/smpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static sg_bar_t ct__barrier;

void ct_machine_barrier(void) { sg_barrier_wait(ct__barrier); }
double ct_machine_clock_s(void) { return simgrid_get_clock(); }
/* Sleeping, not computing: each rank has a core of its own, and the simulator has less to solve. */
void ct_machine_sleep(double time_s) { sg_actor_sleep_for(time_s); }

double ct_machine_cpu_s(void) /* SMPI replaces clock_gettime by the simulated clock */
{
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 4 || (rank == 0 && !ct_sweep_open(argv[1]))) {
        fprintf(stderr, "usage: sweep REQUESTS PPN SEED\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (rank == 0)
        ct__barrier = sg_barrier_init((unsigned)size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (ct_sweep(MPI_COMM_WORLD, atoi(argv[2]), strtoull(argv[3], NULL, 10)) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    return 0;
}
