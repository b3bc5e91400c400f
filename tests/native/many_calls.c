/* Prints the time in ns of one MPI_Allreduce of a double on a communicator of one rank: the library's least. With any
 * argument, on all ranks of the job, in shorter groups, so that some of them are not disturbed. */
#include <mpi.h>
#include <stdio.h>

enum { GROUPS = 25, CALLS = 20000, SHORTER = 100 };

int main(int argc, char **argv)
{
    double in = 1.0, out, least_s = 1e9;
    MPI_Init(&argc, &argv);
    MPI_Comm comm = argc > 1 ? MPI_COMM_WORLD : MPI_COMM_SELF;
    int rank, calls = argc > 1 ? CALLS / SHORTER : CALLS, groups = argc > 1 ? GROUPS * SHORTER : GROUPS;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int group = 0; group < groups; group++) {
        double start = MPI_Wtime();
        for (int i = 0; i < calls; i++)
            MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, comm);
        double elapsed = MPI_Wtime() - start;
        least_s = elapsed < least_s ? elapsed : least_s;
    }
    if (rank == 0)
        printf("%.2f\n", least_s / calls * 1e9);
    MPI_Finalize();
    return 0;
}
