/* Prints what a call takes as a blocking, a non-blocking and a persistent one: the slowest rank's median, in
 * microseconds. Arguments: collective, bytes, repetitions. One line: collective bytes blocking non-blocking persistent. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUM MPI_FLOAT, MPI_SUM

static int bytes, ranks;
static char *send_buffer, *receive_buffer;

static int call(const char *name, int form, MPI_Request *request)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    int floats = bytes / (int)sizeof(float);
#define FORMS(plain, with_i, with_init, ...)                                                                           \
    (form == 0   ? plain(__VA_ARGS__, comm)                                                                            \
     : form == 1 ? with_i(__VA_ARGS__, comm, request)                                                                  \
                 : with_init(__VA_ARGS__, comm, MPI_INFO_NULL, request))
    if (strcmp(name, "allreduce") == 0)
        return FORMS(MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init, send_buffer, receive_buffer, floats, SUM);
    if (strcmp(name, "bcast") == 0)
        return FORMS(MPI_Bcast, MPI_Ibcast, MPI_Bcast_init, send_buffer, bytes, MPI_BYTE, 0);
    if (strcmp(name, "reduce") == 0)
        return FORMS(MPI_Reduce, MPI_Ireduce, MPI_Reduce_init, send_buffer, receive_buffer, floats, SUM, 0);
    if (strcmp(name, "allgather") == 0)
        return FORMS(MPI_Allgather, MPI_Iallgather, MPI_Allgather_init, send_buffer, bytes, MPI_BYTE, receive_buffer,
                     bytes, MPI_BYTE);
    if (strcmp(name, "alltoall") == 0)
        return FORMS(MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init, send_buffer, bytes, MPI_BYTE, receive_buffer,
                     bytes, MPI_BYTE);
    return MPI_ERR_OTHER;
}

static int ascending(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc != 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    const char *name = argv[1];
    int repetitions = atoi(argv[3]), rank;
    bytes = atoi(argv[2]);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    send_buffer = calloc((size_t)bytes, (size_t)ranks);
    receive_buffer = calloc((size_t)bytes, (size_t)ranks);
    double *times = malloc(sizeof(double) * (size_t)repetitions);
    if (send_buffer == NULL || receive_buffer == NULL || times == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    if (rank == 0)
        printf("%s %d", name, bytes);
    for (int form = 0; form < 3; form++) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (form == 2 && call(name, form, &request) != MPI_SUCCESS)
            MPI_Abort(MPI_COMM_WORLD, 2);
        for (int i = -repetitions / 10; i < repetitions; i++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double start = MPI_Wtime();
            if (form == 2)
                MPI_Start(&request);
            else if (call(name, form, &request) != MPI_SUCCESS)
                MPI_Abort(MPI_COMM_WORLD, 2);
            if (form > 0)
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            double own = MPI_Wtime() - start, slowest;
            MPI_Reduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
            if (i >= 0)
                times[i] = slowest;
        }
        if (form == 2)
            MPI_Request_free(&request);
        qsort(times, (size_t)repetitions, sizeof(double), ascending);
        if (rank == 0)
            printf(" %.3f", 1e6 * times[repetitions / 2]);
    }
    if (rank == 0)
        printf("\n");
    free(send_buffer);
    free(receive_buffer);
    free(times);
    return MPI_Finalize();
}
