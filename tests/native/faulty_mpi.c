/* A library with faults, to preload (LD_PRELOAD) under a program that should find them.
 *
 * CT_FAULT names one: flip (allreduce: one bit of the result), swap (allreduce: two ranks' operands change places),
 * overrun (allgather: a byte after the receive buffer), gap (bcast: a byte that the type leaves out), leave (barrier:
 * does not wait), hang, die (allreduce). Faults of allreduce come at 7 elements only.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAULTY_COUNT 7

static int has_fault(const char *name)
{
    const char *fault = getenv("CT_FAULT");
    return fault != NULL && strcmp(fault, name) == 0;
}

static MPI_Comm turned(MPI_Comm comm)
{
    MPI_Comm made;
    int rank;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_split(comm, 0, -rank, &made);
    return made;
}

int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int inter;

    PMPI_Comm_test_inter(comm, &inter);
    if (count == FAULTY_COUNT && has_fault("hang"))
        pause();
    if (count == FAULTY_COUNT && has_fault("die"))
        abort();
    if (count == FAULTY_COUNT && !inter && has_fault("swap"))
        comm = turned(comm);
    int rc = PMPI_Allreduce(sendbuf, recvbuf, count, type, op, comm);
    if (count == FAULTY_COUNT && has_fault("flip"))
        ((unsigned char *)recvbuf)[0] ^= 1;
    return rc;
}

int MPI_Allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                  MPI_Datatype recvtype, MPI_Comm comm)
{
    MPI_Aint lower, extent;
    int size, inter;

    int rc = PMPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
    PMPI_Comm_test_inter(comm, &inter);
    if (inter)
        PMPI_Comm_remote_size(comm, &size);
    else
        PMPI_Comm_size(comm, &size);
    PMPI_Type_get_extent(recvtype, &lower, &extent);
    if (has_fault("overrun"))
        ((unsigned char *)recvbuf)[extent * recvcount * size] ^= 1;
    return rc;
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    MPI_Aint lower, extent;
    int size;

    int rc = PMPI_Bcast(buffer, count, type, root, comm);
    PMPI_Type_get_extent(type, &lower, &extent);
    PMPI_Type_size(type, &size);
    if (count > 0 && extent == 20 && size == 4 && has_fault("gap"))
        ((unsigned char *)buffer)[5] ^= 1;
    return rc;
}

int MPI_Barrier(MPI_Comm comm)
{
    return has_fault("leave") ? MPI_SUCCESS : PMPI_Barrier(comm);
}
