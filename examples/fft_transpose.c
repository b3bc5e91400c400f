/* A distributed two-dimensional FFT: rows, a transpose by MPI_Alltoall, columns, and back; again and again.
 *
 *     mpicc -O2 fft_transpose.c -lm -o fft_transpose
 *     mpiexec -n 8 ./fft_transpose [n [steps]]
 *
 * n x n complex numbers (n a power of two, at least the number of ranks), in blocks of rows. Where the ranks do not divide
 * n, blocks differ, and the transpose is by MPI_Alltoallv. Each step goes forth and back, so that the data must come out as
 * they went in, which is checked. Prints the time of a step, and of it the part in MPI_Alltoall or MPI_Alltoallv, each of
 * the slowest rank. */
#include <complex.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef double complex number;

static double alltoall_s;

/* In place, radix 2. `direction` -1: forth, 1: back, without the factor 1/n. */
static void transform(number *row, int n, int direction)
{
    for (int i = 1, j = 0; i < n; i++) {
        int bit = n >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            number kept = row[i];
            row[i] = row[j];
            row[j] = kept;
        }
    }
    for (int length = 2; length <= n; length *= 2) {
        number step = cexp(direction * 2.0 * acos(-1.0) * I / length);
        for (int start = 0; start < n; start += length) {
            number factor = 1.0;
            for (int i = 0; i < length / 2; i++, factor *= step) {
                number even = row[start + i], odd = factor * row[start + i + length / 2];
                row[start + i] = even + odd;
                row[start + i + length / 2] = even - odd;
            }
        }
    }
}

/* The first of the rows of rank `r`: they are shared out as evenly as they can be. */
static int first_row(int r, int n, int ranks) { return (int)((long long)n * r / ranks); }

/* Rows become columns: the blocks for the other ranks are packed one after the other, and turned when they arrive.
 * `counts` and `at` are of what goes to each rank, and as much comes from it. */
static void transpose(number *data, number *packed, number *arrived, int n, const int *counts, const int *at, int uneven)
{
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int rows = first_row(rank + 1, n, ranks) - first_row(rank, n, ranks);
    for (int to = 0; to < ranks; to++)
        for (int i = 0, first = first_row(to, n, ranks), width = first_row(to + 1, n, ranks) - first; i < rows; i++)
            for (int j = 0; j < width; j++)
                packed[at[to] + i * width + j] = data[i * n + first + j];
    double start = MPI_Wtime();
    if (uneven)
        MPI_Alltoallv(packed, counts, at, MPI_C_DOUBLE_COMPLEX, arrived, counts, at, MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
    else
        MPI_Alltoall(packed, counts[0], MPI_C_DOUBLE_COMPLEX, arrived, counts[0], MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
    alltoall_s += MPI_Wtime() - start;
    for (int from = 0; from < ranks; from++)
        for (int i = 0, first = first_row(from, n, ranks); i < first_row(from + 1, n, ranks) - first; i++)
            for (int j = 0; j < rows; j++)
                data[j * n + first + i] = arrived[at[from] + i * rows + j];
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks, n = argc > 1 ? atoi(argv[1]) : 256, steps = argc > 2 ? atoi(argv[2]) : 20;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (n < ranks || (n & (n - 1)) != 0 || steps < 1) {
        if (rank == 0)
            fprintf(stderr, "n must be a power of two and at least the %d ranks\n", ranks);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int rows = first_row(rank + 1, n, ranks) - first_row(rank, n, ranks);
    size_t size = (size_t)rows * (size_t)n;
    number *data = malloc(size * sizeof *data), *packed = malloc(size * sizeof *packed);
    number *arrived = malloc(size * sizeof *arrived);
    int *counts = malloc(2 * sizeof *counts * (size_t)ranks), *at = counts + ranks;
    if (data == NULL || packed == NULL || arrived == NULL || counts == NULL)
        MPI_Abort(MPI_COMM_WORLD, 12);
    for (int to = 0; to < ranks; to++)
        at[to] = rows * first_row(to, n, ranks), counts[to] = rows * first_row(to + 1, n, ranks) - at[to];
    for (size_t i = 0; i < size; i++)
        data[i] = sin(0.1 * (double)i + rank) + I * cos(0.3 * (double)i);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int step = 0; step < 2 * steps; step++) {
        int direction = step % 2 == 0 ? -1 : 1;
        for (int half = 0; half < 2; half++) {
            for (int i = 0; i < rows; i++)
                transform(data + (size_t)i * (size_t)n, n, direction);
            transpose(data, packed, arrived, n, counts, at, n % ranks != 0);
        }
        for (size_t i = 0; i < size && direction == 1; i++)
            data[i] /= (double)n * (double)n;
    }
    double own[3] = {MPI_Wtime() - start, alltoall_s, 0.0}, worst[3];
    for (size_t i = 0; i < size; i++)
        own[2] = fmax(own[2], cabs(data[i] - (sin(0.1 * (double)i + rank) + I * cos(0.3 * (double)i))));
    MPI_Reduce(own, worst, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("step_s %.6g alltoall_s %.6g error %.2g\n", worst[0] / steps, worst[1] / steps, worst[2]);
    int wrong = rank == 0 && worst[2] > 1e-9;
    free(data), free(packed), free(arrived), free(counts);
    MPI_Finalize();
    return wrong;
}
