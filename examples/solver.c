/* An iterative solver: conjugate gradients on a one-dimensional Poisson problem, spread over the ranks.
 *
 *     mpicc -O2 solver.c -lm -o solver
 *     mpiexec -n 8 ./solver [unknowns per rank [iterations]]
 *
 * Each iteration has two scalar MPI_Allreduce and a halo exchange; every 50th, rank 0 broadcasts a vector of settings,
 * as codes with adaptive steps do. Prints the time of an iteration, and of it the part in collectives. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { SETTINGS = 4096, EVERY = 50 };
static int rank, ranks;
static double collective_s;

static double dot(const double *a, const double *b, int n)
{
    double own = 0.0, sum;
    for (int i = 0; i < n; i++)
        own += a[i] * b[i];
    double start = MPI_Wtime();
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    collective_s += MPI_Wtime() - start;
    return sum;
}

/* out = A in, where `in` has room for a value of the neighbour at each end. */
static void apply(double *in, double *out, int n)
{
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
    in[0] = in[n + 1] = 0.0;
    MPI_Sendrecv(&in[1], 1, MPI_DOUBLE, left, 1, &in[n + 1], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&in[n], 1, MPI_DOUBLE, right, 2, &in[0], 1, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 1; i <= n; i++)
        out[i - 1] = 2.001 * in[i] - in[i - 1] - in[i + 1];
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int n = argc > 1 ? atoi(argv[1]) : 1000, iterations = argc > 2 ? atoi(argv[2]) : 1000;
    if (n < 1 || iterations < 1)
        MPI_Abort(MPI_COMM_WORLD, 2);
    double *x = calloc((size_t)n, sizeof *x), *r = calloc((size_t)n, sizeof *r), *ap = calloc((size_t)n, sizeof *ap);
    double *p = calloc((size_t)n + 2, sizeof *p), settings[SETTINGS] = {1.0};
    if (x == NULL || r == NULL || ap == NULL || p == NULL)
        MPI_Abort(MPI_COMM_WORLD, 12);
    for (int i = 0; i < n; i++)
        p[i + 1] = r[i] = 1.0;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime(), rr = dot(r, r, n), first = rr;
    for (int iteration = 0; iteration < iterations; iteration++) {
        if (iteration % EVERY == 0) {
            double before = MPI_Wtime();
            MPI_Bcast(settings, SETTINGS, MPI_DOUBLE, 0, MPI_COMM_WORLD);
            collective_s += MPI_Wtime() - before;
        }
        apply(p, ap, n);
        double step = rr / fmax(dot(p + 1, ap, n), 1e-300);
        for (int i = 0; i < n; i++) {
            x[i] += settings[0] * step * p[i + 1];
            r[i] -= step * ap[i];
        }
        double next = dot(r, r, n), ratio = next / fmax(rr, 1e-300);
        for (int i = 0; i < n; i++)
            p[i + 1] = r[i] + ratio * p[i + 1];
        rr = next;
    }
    double own[2] = {MPI_Wtime() - start, collective_s}, worst[2];
    MPI_Reduce(own, worst, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("step_s %.6g collective_s %.6g residual %.2g\n", worst[0] / iterations, worst[1] / iterations, sqrt(rr / first));
    free(x), free(r), free(ap), free(p);
    MPI_Finalize();
    return 0;
}
