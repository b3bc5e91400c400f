/* Made by generate.py; change that. */
#include "shim.h"

#define CT__WRAP(NAME, DECLARED, ARGUMENTS, ...)                \
    static int ct__##NAME DECLARED                              \
    {                                                           \
        ct_call call = {__VA_ARGS__};                           \
        int code;                                               \
        if (!ct_enter(&call))                                   \
            return ct_real.NAME ARGUMENTS;                      \
        if (!ct_modules_before(&call, &code)) {                 \
            comm = call.made_on;                                \
            code = ct_real.NAME ARGUMENTS;                      \
            comm = call.comm;                                   \
        }                                                       \
        return ct_leave(&call, &code) ? code : ct_real.NAME ARGUMENTS; \
    }                                                           \
    CT__EXPORT(MPI_##NAME, PMPI_##NAME, NAME, DECLARED, ARGUMENTS)

#define CT__WRAP_MPIX(NAME, DECLARED, ARGUMENTS, ...)           \
    CT__WRAP(NAME, DECLARED, ARGUMENTS, __VA_ARGS__)            \
    CT__EXPORT(MPIX_##NAME, PMPIX_##NAME, NAME, DECLARED, ARGUMENTS)

#define CT__EXPORT(PLAIN, PROFILING, NAME, DECLARED, ARGUMENTS) \
    CT_EXPORT int PLAIN DECLARED;                               \
    CT_EXPORT int PROFILING DECLARED;                           \
    int PLAIN DECLARED                                          \
    {                                                           \
        if (ct_tool.NAME != NULL)                               \
            return ct_tool.NAME ARGUMENTS;                      \
        return ct_passes() ? ct_real.NAME ARGUMENTS : ct__##NAME ARGUMENTS; \
    }                                                           \
    int PROFILING DECLARED                                      \
    {                                                           \
        if (ct_passes() || ct_is_library(__builtin_return_address(0))) \
            return ct_real.NAME ARGUMENTS;                      \
        return ct__##NAME ARGUMENTS;                            \
    }

CT__WRAP(Barrier, (MPI_Comm comm), (comm), .function = CT_BARRIER, .form = CT_BLOCKING, .large = false, .comm = comm)
CT__WRAP(Ibarrier, (MPI_Comm comm, MPI_Request *request), (comm, request), .function = CT_BARRIER,
    .form = CT_NONBLOCKING, .large = false, .comm = comm, .request = request)
CT__WRAP_MPIX(Barrier_init, (MPI_Comm comm, MPI_Info info, MPI_Request *request), (comm, info, request),
    .function = CT_BARRIER, .form = CT_PERSISTENT, .large = false, .comm = comm, .info = info, .request = request)
CT__WRAP(Bcast, (void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm), (buffer, count, datatype,
    root, comm), .function = CT_BCAST, .form = CT_BLOCKING, .large = false, .send = buffer, .recv = buffer,
    .send_count = count, .recv_count = count, .send_type = datatype, .recv_type = datatype, .root = root,
    .comm = comm)
CT__WRAP(Bcast_c, (void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm), (buffer, count,
    datatype, root, comm), .function = CT_BCAST, .form = CT_BLOCKING, .large = true, .send = buffer, .recv = buffer,
    .send_count = count, .recv_count = count, .send_type = datatype, .recv_type = datatype, .root = root,
    .comm = comm)
CT__WRAP(Ibcast, (void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Request *request),
    (buffer, count, datatype, root, comm, request), .function = CT_BCAST, .form = CT_NONBLOCKING, .large = false,
    .send = buffer, .recv = buffer, .send_count = count, .recv_count = count, .send_type = datatype,
    .recv_type = datatype, .root = root, .comm = comm, .request = request)
CT__WRAP(Ibcast_c, (void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
    MPI_Request *request), (buffer, count, datatype, root, comm, request), .function = CT_BCAST,
    .form = CT_NONBLOCKING, .large = true, .send = buffer, .recv = buffer, .send_count = count, .recv_count = count,
    .send_type = datatype, .recv_type = datatype, .root = root, .comm = comm, .request = request)
CT__WRAP_MPIX(Bcast_init, (void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info,
    MPI_Request *request), (buffer, count, datatype, root, comm, info, request), .function = CT_BCAST,
    .form = CT_PERSISTENT, .large = false, .send = buffer, .recv = buffer, .send_count = count, .recv_count = count,
    .send_type = datatype, .recv_type = datatype, .root = root, .comm = comm, .info = info, .request = request)
CT__WRAP(Bcast_init_c, (void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info,
    MPI_Request *request), (buffer, count, datatype, root, comm, info, request), .function = CT_BCAST,
    .form = CT_PERSISTENT, .large = true, .send = buffer, .recv = buffer, .send_count = count, .recv_count = count,
    .send_type = datatype, .recv_type = datatype, .root = root, .comm = comm, .info = info, .request = request)
CT__WRAP(Gather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
    comm), .function = CT_GATHER, .form = CT_BLOCKING, .large = false, .send = sendbuf, .send_count = sendcount,
    .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype, .root = root,
    .comm = comm)
CT__WRAP(Gather_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm), (sendbuf, sendcount, sendtype, recvbuf,
    recvcount, recvtype, root, comm), .function = CT_GATHER, .form = CT_BLOCKING, .large = true, .send = sendbuf,
    .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype,
    .root = root, .comm = comm)
CT__WRAP(Igather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf,
    recvcount, recvtype, root, comm, request), .function = CT_GATHER, .form = CT_NONBLOCKING, .large = false,
    .send = sendbuf, .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount,
    .recv_type = recvtype, .root = root, .comm = comm, .request = request)
CT__WRAP(Igather_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount,
    sendtype, recvbuf, recvcount, recvtype, root, comm, request), .function = CT_GATHER, .form = CT_NONBLOCKING,
    .large = true, .send = sendbuf, .send_count = sendcount, .send_type = sendtype, .recv = recvbuf,
    .recv_count = recvcount, .recv_type = recvtype, .root = root, .comm = comm, .request = request)
CT__WRAP_MPIX(Gather_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcount,
    sendtype, recvbuf, recvcount, recvtype, root, comm, info, request), .function = CT_GATHER, .form = CT_PERSISTENT,
    .large = false, .send = sendbuf, .send_count = sendcount, .send_type = sendtype, .recv = recvbuf,
    .recv_count = recvcount, .recv_type = recvtype, .root = root, .comm = comm, .info = info, .request = request)
CT__WRAP(Gather_init_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request),
    (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, info, request), .function = CT_GATHER,
    .form = CT_PERSISTENT, .large = true, .send = sendbuf, .send_count = sendcount, .send_type = sendtype,
    .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype, .root = root, .comm = comm, .info = info,
    .request = request)
CT__WRAP(Gatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
    const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm), (sendbuf, sendcount, sendtype, recvbuf,
    recvcounts, displs, recvtype, root, comm), .function = CT_GATHERV, .form = CT_BLOCKING, .large = false,
    .send = sendbuf, .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_counts = recvcounts,
    .recv_displs = displs, .recv_type = recvtype, .root = root, .comm = comm)
CT__WRAP(Gatherv_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root, MPI_Comm comm), (sendbuf,
    sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm), .function = CT_GATHERV,
    .form = CT_BLOCKING, .large = true, .send = sendbuf, .send_count = sendcount, .send_type = sendtype,
    .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = displs, .recv_type = recvtype, .root = root,
    .comm = comm)
CT__WRAP(Igatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
    const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount,
    sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, request), .function = CT_GATHERV,
    .form = CT_NONBLOCKING, .large = false, .send = sendbuf, .send_count = sendcount, .send_type = sendtype,
    .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = displs, .recv_type = recvtype, .root = root,
    .comm = comm, .request = request)
CT__WRAP(Igatherv_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root, MPI_Comm comm,
    MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, request),
    .function = CT_GATHERV, .form = CT_NONBLOCKING, .large = true, .send = sendbuf, .send_count = sendcount,
    .send_type = sendtype, .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = displs, .recv_type = recvtype,
    .root = root, .comm = comm, .request = request)
CT__WRAP_MPIX(Gatherv_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
    const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
    MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, info,
    request), .function = CT_GATHERV, .form = CT_PERSISTENT, .large = false, .send = sendbuf, .send_count = sendcount,
    .send_type = sendtype, .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = displs, .recv_type = recvtype,
    .root = root, .comm = comm, .info = info, .request = request)
CT__WRAP(Gatherv_init_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root, MPI_Comm comm,
    MPI_Info info, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root,
    comm, info, request), .function = CT_GATHERV, .form = CT_PERSISTENT, .large = true, .send = sendbuf,
    .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = displs,
    .recv_type = recvtype, .root = root, .comm = comm, .info = info, .request = request)
CT__WRAP(Scatter, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
    comm), .function = CT_SCATTER, .form = CT_BLOCKING, .large = false, .send = sendbuf, .send_count = sendcount,
    .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype, .root = root,
    .comm = comm)
CT__WRAP(Scatter_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm), (sendbuf, sendcount, sendtype, recvbuf,
    recvcount, recvtype, root, comm), .function = CT_SCATTER, .form = CT_BLOCKING, .large = true, .send = sendbuf,
    .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype,
    .root = root, .comm = comm)
CT__WRAP(Iscatter, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf,
    recvcount, recvtype, root, comm, request), .function = CT_SCATTER, .form = CT_NONBLOCKING, .large = false,
    .send = sendbuf, .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount,
    .recv_type = recvtype, .root = root, .comm = comm, .request = request)
CT__WRAP(Iscatter_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount,
    sendtype, recvbuf, recvcount, recvtype, root, comm, request), .function = CT_SCATTER, .form = CT_NONBLOCKING,
    .large = true, .send = sendbuf, .send_count = sendcount, .send_type = sendtype, .recv = recvbuf,
    .recv_count = recvcount, .recv_type = recvtype, .root = root, .comm = comm, .request = request)
CT__WRAP_MPIX(Scatter_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcount,
    sendtype, recvbuf, recvcount, recvtype, root, comm, info, request), .function = CT_SCATTER, .form = CT_PERSISTENT,
    .large = false, .send = sendbuf, .send_count = sendcount, .send_type = sendtype, .recv = recvbuf,
    .recv_count = recvcount, .recv_type = recvtype, .root = root, .comm = comm, .info = info, .request = request)
CT__WRAP(Scatter_init_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request),
    (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, info, request), .function = CT_SCATTER,
    .form = CT_PERSISTENT, .large = true, .send = sendbuf, .send_count = sendcount, .send_type = sendtype,
    .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype, .root = root, .comm = comm, .info = info,
    .request = request)
CT__WRAP(Scatterv, (const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype,
    void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm), (sendbuf, sendcounts, displs,
    sendtype, recvbuf, recvcount, recvtype, root, comm), .function = CT_SCATTERV, .form = CT_BLOCKING, .large = false,
    .send = sendbuf, .send_counts = sendcounts, .send_displs = displs, .send_type = sendtype, .recv = recvbuf,
    .recv_count = recvcount, .recv_type = recvtype, .root = root, .comm = comm)
CT__WRAP(Scatterv_c, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
    MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm),
    (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm), .function = CT_SCATTERV,
    .form = CT_BLOCKING, .large = true, .send = sendbuf, .send_counts = sendcounts, .send_displs = displs,
    .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype, .root = root,
    .comm = comm)
CT__WRAP(Iscatterv, (const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype,
    void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request), (sendbuf,
    sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, request), .function = CT_SCATTERV,
    .form = CT_NONBLOCKING, .large = false, .send = sendbuf, .send_counts = sendcounts, .send_displs = displs,
    .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype, .root = root, .comm = comm,
    .request = request)
CT__WRAP(Iscatterv_c, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
    MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
    MPI_Request *request), (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, request),
    .function = CT_SCATTERV, .form = CT_NONBLOCKING, .large = true, .send = sendbuf, .send_counts = sendcounts,
    .send_displs = displs, .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype,
    .root = root, .comm = comm, .request = request)
CT__WRAP_MPIX(Scatterv_init, (const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype,
    void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request),
    (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, info, request),
    .function = CT_SCATTERV, .form = CT_PERSISTENT, .large = false, .send = sendbuf, .send_counts = sendcounts,
    .send_displs = displs, .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype,
    .root = root, .comm = comm, .info = info, .request = request)
CT__WRAP(Scatterv_init_c, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
    MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
    MPI_Info info, MPI_Request *request), (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root,
    comm, info, request), .function = CT_SCATTERV, .form = CT_PERSISTENT, .large = true, .send = sendbuf,
    .send_counts = sendcounts, .send_displs = displs, .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount,
    .recv_type = recvtype, .root = root, .comm = comm, .info = info, .request = request)
CT__WRAP(Allgather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
    .function = CT_ALLGATHER, .form = CT_BLOCKING, .large = false, .send = sendbuf, .send_count = sendcount,
    .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype, .comm = comm)
CT__WRAP(Allgather_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcount, sendtype, recvbuf, recvcount,
    recvtype, comm), .function = CT_ALLGATHER, .form = CT_BLOCKING, .large = true, .send = sendbuf,
    .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype,
    .comm = comm)
CT__WRAP(Iallgather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount,
    recvtype, comm, request), .function = CT_ALLGATHER, .form = CT_NONBLOCKING, .large = false, .send = sendbuf,
    .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype,
    .comm = comm, .request = request)
CT__WRAP(Iallgather_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount, sendtype,
    recvbuf, recvcount, recvtype, comm, request), .function = CT_ALLGATHER, .form = CT_NONBLOCKING, .large = true,
    .send = sendbuf, .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount,
    .recv_type = recvtype, .comm = comm, .request = request)
CT__WRAP_MPIX(Allgather_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf,
    recvcount, recvtype, comm, info, request), .function = CT_ALLGATHER, .form = CT_PERSISTENT, .large = false,
    .send = sendbuf, .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount,
    .recv_type = recvtype, .comm = comm, .info = info, .request = request)
CT__WRAP(Allgather_init_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf,
    sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request), .function = CT_ALLGATHER,
    .form = CT_PERSISTENT, .large = true, .send = sendbuf, .send_count = sendcount, .send_type = sendtype,
    .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype, .comm = comm, .info = info, .request = request)
CT__WRAP(Allgatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
    const int displs[], MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcount, sendtype, recvbuf, recvcounts,
    displs, recvtype, comm), .function = CT_ALLGATHERV, .form = CT_BLOCKING, .large = false, .send = sendbuf,
    .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = displs,
    .recv_type = recvtype, .comm = comm)
CT__WRAP(Allgatherv_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcount,
    sendtype, recvbuf, recvcounts, displs, recvtype, comm), .function = CT_ALLGATHERV, .form = CT_BLOCKING,
    .large = true, .send = sendbuf, .send_count = sendcount, .send_type = sendtype, .recv = recvbuf,
    .recv_counts = recvcounts, .recv_displs = displs, .recv_type = recvtype, .comm = comm)
CT__WRAP(Iallgatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
    const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf,
    sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, request), .function = CT_ALLGATHERV,
    .form = CT_NONBLOCKING, .large = false, .send = sendbuf, .send_count = sendcount, .send_type = sendtype,
    .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = displs, .recv_type = recvtype, .comm = comm,
    .request = request)
CT__WRAP(Iallgatherv_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
    (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, request), .function = CT_ALLGATHERV,
    .form = CT_NONBLOCKING, .large = true, .send = sendbuf, .send_count = sendcount, .send_type = sendtype,
    .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = displs, .recv_type = recvtype, .comm = comm,
    .request = request)
CT__WRAP_MPIX(Allgatherv_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
    const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
    MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, info, request),
    .function = CT_ALLGATHERV, .form = CT_PERSISTENT, .large = false, .send = sendbuf, .send_count = sendcount,
    .send_type = sendtype, .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = displs, .recv_type = recvtype,
    .comm = comm, .info = info, .request = request)
CT__WRAP(Allgatherv_init_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
    MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, info, request),
    .function = CT_ALLGATHERV, .form = CT_PERSISTENT, .large = true, .send = sendbuf, .send_count = sendcount,
    .send_type = sendtype, .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = displs, .recv_type = recvtype,
    .comm = comm, .info = info, .request = request)
CT__WRAP(Alltoall, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
    .function = CT_ALLTOALL, .form = CT_BLOCKING, .large = false, .send = sendbuf, .send_count = sendcount,
    .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype, .comm = comm)
CT__WRAP(Alltoall_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcount, sendtype, recvbuf, recvcount,
    recvtype, comm), .function = CT_ALLTOALL, .form = CT_BLOCKING, .large = true, .send = sendbuf,
    .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype,
    .comm = comm)
CT__WRAP(Ialltoall, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount,
    recvtype, comm, request), .function = CT_ALLTOALL, .form = CT_NONBLOCKING, .large = false, .send = sendbuf,
    .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype,
    .comm = comm, .request = request)
CT__WRAP(Ialltoall_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount, sendtype,
    recvbuf, recvcount, recvtype, comm, request), .function = CT_ALLTOALL, .form = CT_NONBLOCKING, .large = true,
    .send = sendbuf, .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount,
    .recv_type = recvtype, .comm = comm, .request = request)
CT__WRAP_MPIX(Alltoall_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf,
    recvcount, recvtype, comm, info, request), .function = CT_ALLTOALL, .form = CT_PERSISTENT, .large = false,
    .send = sendbuf, .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount,
    .recv_type = recvtype, .comm = comm, .info = info, .request = request)
CT__WRAP(Alltoall_init_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf,
    sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request), .function = CT_ALLTOALL,
    .form = CT_PERSISTENT, .large = true, .send = sendbuf, .send_count = sendcount, .send_type = sendtype,
    .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype, .comm = comm, .info = info, .request = request)
CT__WRAP(Alltoallv, (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
    void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm), (sendbuf,
    sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm), .function = CT_ALLTOALLV,
    .form = CT_BLOCKING, .large = false, .send = sendbuf, .send_counts = sendcounts, .send_displs = sdispls,
    .send_type = sendtype, .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = rdispls, .recv_type = recvtype,
    .comm = comm)
CT__WRAP(Alltoallv_c, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
    MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
    MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
    recvtype, comm), .function = CT_ALLTOALLV, .form = CT_BLOCKING, .large = true, .send = sendbuf,
    .send_counts = sendcounts, .send_displs = sdispls, .send_type = sendtype, .recv = recvbuf,
    .recv_counts = recvcounts, .recv_displs = rdispls, .recv_type = recvtype, .comm = comm)
CT__WRAP(Ialltoallv, (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
    void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
    MPI_Request *request), (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
    request), .function = CT_ALLTOALLV, .form = CT_NONBLOCKING, .large = false, .send = sendbuf,
    .send_counts = sendcounts, .send_displs = sdispls, .send_type = sendtype, .recv = recvbuf,
    .recv_counts = recvcounts, .recv_displs = rdispls, .recv_type = recvtype, .comm = comm, .request = request)
CT__WRAP(Ialltoallv_c, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
    MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcounts, sdispls, sendtype, recvbuf,
    recvcounts, rdispls, recvtype, comm, request), .function = CT_ALLTOALLV, .form = CT_NONBLOCKING, .large = true,
    .send = sendbuf, .send_counts = sendcounts, .send_displs = sdispls, .send_type = sendtype, .recv = recvbuf,
    .recv_counts = recvcounts, .recv_displs = rdispls, .recv_type = recvtype, .comm = comm, .request = request)
CT__WRAP_MPIX(Alltoallv_init, (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
    void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
    MPI_Request *request), (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, info,
    request), .function = CT_ALLTOALLV, .form = CT_PERSISTENT, .large = false, .send = sendbuf,
    .send_counts = sendcounts, .send_displs = sdispls, .send_type = sendtype, .recv = recvbuf,
    .recv_counts = recvcounts, .recv_displs = rdispls, .recv_type = recvtype, .comm = comm, .info = info,
    .request = request)
CT__WRAP(Alltoallv_init_c, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
    MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcounts, sdispls,
    sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, info, request), .function = CT_ALLTOALLV,
    .form = CT_PERSISTENT, .large = true, .send = sendbuf, .send_counts = sendcounts, .send_displs = sdispls,
    .send_type = sendtype, .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = rdispls, .recv_type = recvtype,
    .comm = comm, .info = info, .request = request)
CT__WRAP(Alltoallw, (const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[],
    void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm),
    (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm), .function = CT_ALLTOALLW,
    .form = CT_BLOCKING, .large = false, .send = sendbuf, .send_counts = sendcounts, .send_displs = sdispls,
    .send_types = sendtypes, .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = rdispls,
    .recv_types = recvtypes, .comm = comm)
CT__WRAP(Alltoallw_c, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
    const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
    const MPI_Datatype recvtypes[], MPI_Comm comm), (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts,
    rdispls, recvtypes, comm), .function = CT_ALLTOALLW, .form = CT_BLOCKING, .large = true, .send = sendbuf,
    .send_counts = sendcounts, .send_displs = sdispls, .send_types = sendtypes, .recv = recvbuf,
    .recv_counts = recvcounts, .recv_displs = rdispls, .recv_types = recvtypes, .comm = comm)
CT__WRAP(Ialltoallw, (const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[],
    void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
    MPI_Request *request), (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm,
    request), .function = CT_ALLTOALLW, .form = CT_NONBLOCKING, .large = false, .send = sendbuf,
    .send_counts = sendcounts, .send_displs = sdispls, .send_types = sendtypes, .recv = recvbuf,
    .recv_counts = recvcounts, .recv_displs = rdispls, .recv_types = recvtypes, .comm = comm, .request = request)
CT__WRAP(Ialltoallw_c, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
    const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
    const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request), (sendbuf, sendcounts, sdispls, sendtypes,
    recvbuf, recvcounts, rdispls, recvtypes, comm, request), .function = CT_ALLTOALLW, .form = CT_NONBLOCKING,
    .large = true, .send = sendbuf, .send_counts = sendcounts, .send_displs = sdispls, .send_types = sendtypes,
    .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = rdispls, .recv_types = recvtypes, .comm = comm,
    .request = request)
CT__WRAP_MPIX(Alltoallw_init, (const void *sendbuf, const int sendcounts[], const int sdispls[],
    const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const int rdispls[],
    const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcounts, sdispls,
    sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, info, request), .function = CT_ALLTOALLW,
    .form = CT_PERSISTENT, .large = false, .send = sendbuf, .send_counts = sendcounts, .send_displs = sdispls,
    .send_types = sendtypes, .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = rdispls,
    .recv_types = recvtypes, .comm = comm, .info = info, .request = request)
CT__WRAP(Alltoallw_init_c, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
    const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
    const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcounts, sdispls,
    sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, info, request), .function = CT_ALLTOALLW,
    .form = CT_PERSISTENT, .large = true, .send = sendbuf, .send_counts = sendcounts, .send_displs = sdispls,
    .send_types = sendtypes, .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = rdispls,
    .recv_types = recvtypes, .comm = comm, .info = info, .request = request)
CT__WRAP(Reduce, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
    MPI_Comm comm), (sendbuf, recvbuf, count, datatype, op, root, comm), .function = CT_REDUCE, .form = CT_BLOCKING,
    .large = false, .send = sendbuf, .recv = recvbuf, .send_count = count, .recv_count = count, .send_type = datatype,
    .recv_type = datatype, .op = op, .root = root, .comm = comm)
CT__WRAP(Reduce_c, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
    MPI_Comm comm), (sendbuf, recvbuf, count, datatype, op, root, comm), .function = CT_REDUCE, .form = CT_BLOCKING,
    .large = true, .send = sendbuf, .recv = recvbuf, .send_count = count, .recv_count = count, .send_type = datatype,
    .recv_type = datatype, .op = op, .root = root, .comm = comm)
CT__WRAP(Ireduce, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
    MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, root, comm, request),
    .function = CT_REDUCE, .form = CT_NONBLOCKING, .large = false, .send = sendbuf, .recv = recvbuf,
    .send_count = count, .recv_count = count, .send_type = datatype, .recv_type = datatype, .op = op, .root = root,
    .comm = comm, .request = request)
CT__WRAP(Ireduce_c, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
    MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, root, comm, request),
    .function = CT_REDUCE, .form = CT_NONBLOCKING, .large = true, .send = sendbuf, .recv = recvbuf,
    .send_count = count, .recv_count = count, .send_type = datatype, .recv_type = datatype, .op = op, .root = root,
    .comm = comm, .request = request)
CT__WRAP_MPIX(Reduce_init, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
    MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, root, comm, info,
    request), .function = CT_REDUCE, .form = CT_PERSISTENT, .large = false, .send = sendbuf, .recv = recvbuf,
    .send_count = count, .recv_count = count, .send_type = datatype, .recv_type = datatype, .op = op, .root = root,
    .comm = comm, .info = info, .request = request)
CT__WRAP(Reduce_init_c, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
    int root, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, root, comm,
    info, request), .function = CT_REDUCE, .form = CT_PERSISTENT, .large = true, .send = sendbuf, .recv = recvbuf,
    .send_count = count, .recv_count = count, .send_type = datatype, .recv_type = datatype, .op = op, .root = root,
    .comm = comm, .info = info, .request = request)
CT__WRAP(Allreduce, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
    (sendbuf, recvbuf, count, datatype, op, comm), .function = CT_ALLREDUCE, .form = CT_BLOCKING, .large = false,
    .send = sendbuf, .recv = recvbuf, .send_count = count, .recv_count = count, .send_type = datatype,
    .recv_type = datatype, .op = op, .comm = comm)
CT__WRAP(Allreduce_c, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm), (sendbuf, recvbuf, count, datatype, op, comm), .function = CT_ALLREDUCE, .form = CT_BLOCKING,
    .large = true, .send = sendbuf, .recv = recvbuf, .send_count = count, .recv_count = count, .send_type = datatype,
    .recv_type = datatype, .op = op, .comm = comm)
CT__WRAP(Iallreduce, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
    MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, request), .function = CT_ALLREDUCE,
    .form = CT_NONBLOCKING, .large = false, .send = sendbuf, .recv = recvbuf, .send_count = count, .recv_count = count,
    .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm, .request = request)
CT__WRAP(Iallreduce_c, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, request),
    .function = CT_ALLREDUCE, .form = CT_NONBLOCKING, .large = true, .send = sendbuf, .recv = recvbuf,
    .send_count = count, .recv_count = count, .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm,
    .request = request)
CT__WRAP_MPIX(Allreduce_init, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, info, request),
    .function = CT_ALLREDUCE, .form = CT_PERSISTENT, .large = false, .send = sendbuf, .recv = recvbuf,
    .send_count = count, .recv_count = count, .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm,
    .info = info, .request = request)
CT__WRAP(Allreduce_init_c, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, info, request),
    .function = CT_ALLREDUCE, .form = CT_PERSISTENT, .large = true, .send = sendbuf, .recv = recvbuf,
    .send_count = count, .recv_count = count, .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm,
    .info = info, .request = request)
CT__WRAP(Reduce_scatter, (const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm), (sendbuf, recvbuf, recvcounts, datatype, op, comm), .function = CT_REDUCE_SCATTER,
    .form = CT_BLOCKING, .large = false, .send = sendbuf, .recv = recvbuf, .recv_counts = recvcounts,
    .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm)
CT__WRAP(Reduce_scatter_c, (const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[], MPI_Datatype datatype,
    MPI_Op op, MPI_Comm comm), (sendbuf, recvbuf, recvcounts, datatype, op, comm), .function = CT_REDUCE_SCATTER,
    .form = CT_BLOCKING, .large = true, .send = sendbuf, .recv = recvbuf, .recv_counts = recvcounts,
    .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm)
CT__WRAP(Ireduce_scatter, (const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype,
    MPI_Op op, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, recvcounts, datatype, op, comm, request),
    .function = CT_REDUCE_SCATTER, .form = CT_NONBLOCKING, .large = false, .send = sendbuf, .recv = recvbuf,
    .recv_counts = recvcounts, .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm,
    .request = request)
CT__WRAP(Ireduce_scatter_c, (const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[], MPI_Datatype datatype,
    MPI_Op op, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, recvcounts, datatype, op, comm, request),
    .function = CT_REDUCE_SCATTER, .form = CT_NONBLOCKING, .large = true, .send = sendbuf, .recv = recvbuf,
    .recv_counts = recvcounts, .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm,
    .request = request)
CT__WRAP_MPIX(Reduce_scatter_init, (const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype,
    MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, recvcounts, datatype, op, comm,
    info, request), .function = CT_REDUCE_SCATTER, .form = CT_PERSISTENT, .large = false, .send = sendbuf,
    .recv = recvbuf, .recv_counts = recvcounts, .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm,
    .info = info, .request = request)
CT__WRAP(Reduce_scatter_init_c, (const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[],
    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf,
    recvcounts, datatype, op, comm, info, request), .function = CT_REDUCE_SCATTER, .form = CT_PERSISTENT,
    .large = true, .send = sendbuf, .recv = recvbuf, .recv_counts = recvcounts, .send_type = datatype,
    .recv_type = datatype, .op = op, .comm = comm, .info = info, .request = request)
CT__WRAP(Reduce_scatter_block, (const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm), (sendbuf, recvbuf, recvcount, datatype, op, comm), .function = CT_REDUCE_SCATTER_BLOCK,
    .form = CT_BLOCKING, .large = false, .send = sendbuf, .recv = recvbuf, .recv_count = recvcount,
    .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm)
CT__WRAP(Reduce_scatter_block_c, (const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
    MPI_Op op, MPI_Comm comm), (sendbuf, recvbuf, recvcount, datatype, op, comm), .function = CT_REDUCE_SCATTER_BLOCK,
    .form = CT_BLOCKING, .large = true, .send = sendbuf, .recv = recvbuf, .recv_count = recvcount,
    .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm)
CT__WRAP(Ireduce_scatter_block, (const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, recvcount, datatype, op, comm, request),
    .function = CT_REDUCE_SCATTER_BLOCK, .form = CT_NONBLOCKING, .large = false, .send = sendbuf, .recv = recvbuf,
    .recv_count = recvcount, .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm, .request = request)
CT__WRAP(Ireduce_scatter_block_c, (const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
    MPI_Op op, MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, recvcount, datatype, op, comm, request),
    .function = CT_REDUCE_SCATTER_BLOCK, .form = CT_NONBLOCKING, .large = true, .send = sendbuf, .recv = recvbuf,
    .recv_count = recvcount, .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm, .request = request)
CT__WRAP_MPIX(Reduce_scatter_block_init, (const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype,
    MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, recvcount, datatype, op, comm,
    info, request), .function = CT_REDUCE_SCATTER_BLOCK, .form = CT_PERSISTENT, .large = false, .send = sendbuf,
    .recv = recvbuf, .recv_count = recvcount, .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm,
    .info = info, .request = request)
CT__WRAP(Reduce_scatter_block_init_c, (const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
    MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, recvcount, datatype, op, comm,
    info, request), .function = CT_REDUCE_SCATTER_BLOCK, .form = CT_PERSISTENT, .large = true, .send = sendbuf,
    .recv = recvbuf, .recv_count = recvcount, .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm,
    .info = info, .request = request)
CT__WRAP(Scan, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
    (sendbuf, recvbuf, count, datatype, op, comm), .function = CT_SCAN, .form = CT_BLOCKING, .large = false,
    .send = sendbuf, .recv = recvbuf, .send_count = count, .recv_count = count, .send_type = datatype,
    .recv_type = datatype, .op = op, .comm = comm)
CT__WRAP(Scan_c, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm), (sendbuf, recvbuf, count, datatype, op, comm), .function = CT_SCAN, .form = CT_BLOCKING,
    .large = true, .send = sendbuf, .recv = recvbuf, .send_count = count, .recv_count = count, .send_type = datatype,
    .recv_type = datatype, .op = op, .comm = comm)
CT__WRAP(Iscan, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
    MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, request), .function = CT_SCAN,
    .form = CT_NONBLOCKING, .large = false, .send = sendbuf, .recv = recvbuf, .send_count = count, .recv_count = count,
    .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm, .request = request)
CT__WRAP(Iscan_c, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, request), .function = CT_SCAN,
    .form = CT_NONBLOCKING, .large = true, .send = sendbuf, .recv = recvbuf, .send_count = count, .recv_count = count,
    .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm, .request = request)
CT__WRAP_MPIX(Scan_init, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, info, request),
    .function = CT_SCAN, .form = CT_PERSISTENT, .large = false, .send = sendbuf, .recv = recvbuf, .send_count = count,
    .recv_count = count, .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm, .info = info,
    .request = request)
CT__WRAP(Scan_init_c, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, info, request),
    .function = CT_SCAN, .form = CT_PERSISTENT, .large = true, .send = sendbuf, .recv = recvbuf, .send_count = count,
    .recv_count = count, .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm, .info = info,
    .request = request)
CT__WRAP(Exscan, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
    (sendbuf, recvbuf, count, datatype, op, comm), .function = CT_EXSCAN, .form = CT_BLOCKING, .large = false,
    .send = sendbuf, .recv = recvbuf, .send_count = count, .recv_count = count, .send_type = datatype,
    .recv_type = datatype, .op = op, .comm = comm)
CT__WRAP(Exscan_c, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm), (sendbuf, recvbuf, count, datatype, op, comm), .function = CT_EXSCAN, .form = CT_BLOCKING,
    .large = true, .send = sendbuf, .recv = recvbuf, .send_count = count, .recv_count = count, .send_type = datatype,
    .recv_type = datatype, .op = op, .comm = comm)
CT__WRAP(Iexscan, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
    MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, request), .function = CT_EXSCAN,
    .form = CT_NONBLOCKING, .large = false, .send = sendbuf, .recv = recvbuf, .send_count = count, .recv_count = count,
    .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm, .request = request)
CT__WRAP(Iexscan_c, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, request),
    .function = CT_EXSCAN, .form = CT_NONBLOCKING, .large = true, .send = sendbuf, .recv = recvbuf,
    .send_count = count, .recv_count = count, .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm,
    .request = request)
CT__WRAP_MPIX(Exscan_init, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, info, request),
    .function = CT_EXSCAN, .form = CT_PERSISTENT, .large = false, .send = sendbuf, .recv = recvbuf,
    .send_count = count, .recv_count = count, .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm,
    .info = info, .request = request)
CT__WRAP(Exscan_init_c, (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, recvbuf, count, datatype, op, comm, info, request),
    .function = CT_EXSCAN, .form = CT_PERSISTENT, .large = true, .send = sendbuf, .recv = recvbuf, .send_count = count,
    .recv_count = count, .send_type = datatype, .recv_type = datatype, .op = op, .comm = comm, .info = info,
    .request = request)
CT__WRAP(Neighbor_allgather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
    .function = CT_NEIGHBOR_ALLGATHER, .form = CT_BLOCKING, .large = false, .send = sendbuf, .send_count = sendcount,
    .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype, .comm = comm)
CT__WRAP(Neighbor_allgather_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcount, sendtype, recvbuf, recvcount,
    recvtype, comm), .function = CT_NEIGHBOR_ALLGATHER, .form = CT_BLOCKING, .large = true, .send = sendbuf,
    .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype,
    .comm = comm)
CT__WRAP(Ineighbor_allgather, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount,
    recvtype, comm, request), .function = CT_NEIGHBOR_ALLGATHER, .form = CT_NONBLOCKING, .large = false,
    .send = sendbuf, .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount,
    .recv_type = recvtype, .comm = comm, .request = request)
CT__WRAP(Ineighbor_allgather_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount, sendtype,
    recvbuf, recvcount, recvtype, comm, request), .function = CT_NEIGHBOR_ALLGATHER, .form = CT_NONBLOCKING,
    .large = true, .send = sendbuf, .send_count = sendcount, .send_type = sendtype, .recv = recvbuf,
    .recv_count = recvcount, .recv_type = recvtype, .comm = comm, .request = request)
CT__WRAP_MPIX(Neighbor_allgather_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
    int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcount,
    sendtype, recvbuf, recvcount, recvtype, comm, info, request), .function = CT_NEIGHBOR_ALLGATHER,
    .form = CT_PERSISTENT, .large = false, .send = sendbuf, .send_count = sendcount, .send_type = sendtype,
    .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype, .comm = comm, .info = info, .request = request)
CT__WRAP(Neighbor_allgather_init_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf,
    sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request), .function = CT_NEIGHBOR_ALLGATHER,
    .form = CT_PERSISTENT, .large = true, .send = sendbuf, .send_count = sendcount, .send_type = sendtype,
    .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype, .comm = comm, .info = info, .request = request)
CT__WRAP(Neighbor_allgatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
    const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcount, sendtype,
    recvbuf, recvcounts, displs, recvtype, comm), .function = CT_NEIGHBOR_ALLGATHERV, .form = CT_BLOCKING,
    .large = false, .send = sendbuf, .send_count = sendcount, .send_type = sendtype, .recv = recvbuf,
    .recv_counts = recvcounts, .recv_displs = displs, .recv_type = recvtype, .comm = comm)
CT__WRAP(Neighbor_allgatherv_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcount,
    sendtype, recvbuf, recvcounts, displs, recvtype, comm), .function = CT_NEIGHBOR_ALLGATHERV, .form = CT_BLOCKING,
    .large = true, .send = sendbuf, .send_count = sendcount, .send_type = sendtype, .recv = recvbuf,
    .recv_counts = recvcounts, .recv_displs = displs, .recv_type = recvtype, .comm = comm)
CT__WRAP(Ineighbor_allgatherv, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
    const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf,
    sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, request), .function = CT_NEIGHBOR_ALLGATHERV,
    .form = CT_NONBLOCKING, .large = false, .send = sendbuf, .send_count = sendcount, .send_type = sendtype,
    .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = displs, .recv_type = recvtype, .comm = comm,
    .request = request)
CT__WRAP(Ineighbor_allgatherv_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
    (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, request),
    .function = CT_NEIGHBOR_ALLGATHERV, .form = CT_NONBLOCKING, .large = true, .send = sendbuf,
    .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = displs,
    .recv_type = recvtype, .comm = comm, .request = request)
CT__WRAP_MPIX(Neighbor_allgatherv_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
    const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
    MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, info, request),
    .function = CT_NEIGHBOR_ALLGATHERV, .form = CT_PERSISTENT, .large = false, .send = sendbuf,
    .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = displs,
    .recv_type = recvtype, .comm = comm, .info = info, .request = request)
CT__WRAP(Neighbor_allgatherv_init_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
    MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, info, request),
    .function = CT_NEIGHBOR_ALLGATHERV, .form = CT_PERSISTENT, .large = true, .send = sendbuf, .send_count = sendcount,
    .send_type = sendtype, .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = displs, .recv_type = recvtype,
    .comm = comm, .info = info, .request = request)
CT__WRAP(Neighbor_alltoall, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
    .function = CT_NEIGHBOR_ALLTOALL, .form = CT_BLOCKING, .large = false, .send = sendbuf, .send_count = sendcount,
    .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype, .comm = comm)
CT__WRAP(Neighbor_alltoall_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcount, sendtype, recvbuf, recvcount,
    recvtype, comm), .function = CT_NEIGHBOR_ALLTOALL, .form = CT_BLOCKING, .large = true, .send = sendbuf,
    .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype,
    .comm = comm)
CT__WRAP(Ineighbor_alltoall, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount, sendtype, recvbuf, recvcount,
    recvtype, comm, request), .function = CT_NEIGHBOR_ALLTOALL, .form = CT_NONBLOCKING, .large = false,
    .send = sendbuf, .send_count = sendcount, .send_type = sendtype, .recv = recvbuf, .recv_count = recvcount,
    .recv_type = recvtype, .comm = comm, .request = request)
CT__WRAP(Ineighbor_alltoall_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcount, sendtype,
    recvbuf, recvcount, recvtype, comm, request), .function = CT_NEIGHBOR_ALLTOALL, .form = CT_NONBLOCKING,
    .large = true, .send = sendbuf, .send_count = sendcount, .send_type = sendtype, .recv = recvbuf,
    .recv_count = recvcount, .recv_type = recvtype, .comm = comm, .request = request)
CT__WRAP_MPIX(Neighbor_alltoall_init, (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
    int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcount,
    sendtype, recvbuf, recvcount, recvtype, comm, info, request), .function = CT_NEIGHBOR_ALLTOALL,
    .form = CT_PERSISTENT, .large = false, .send = sendbuf, .send_count = sendcount, .send_type = sendtype,
    .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype, .comm = comm, .info = info, .request = request)
CT__WRAP(Neighbor_alltoall_init_c, (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf,
    sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request), .function = CT_NEIGHBOR_ALLTOALL,
    .form = CT_PERSISTENT, .large = true, .send = sendbuf, .send_count = sendcount, .send_type = sendtype,
    .recv = recvbuf, .recv_count = recvcount, .recv_type = recvtype, .comm = comm, .info = info, .request = request)
CT__WRAP(Neighbor_alltoallv, (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
    void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm), (sendbuf,
    sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm), .function = CT_NEIGHBOR_ALLTOALLV,
    .form = CT_BLOCKING, .large = false, .send = sendbuf, .send_counts = sendcounts, .send_displs = sdispls,
    .send_type = sendtype, .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = rdispls, .recv_type = recvtype,
    .comm = comm)
CT__WRAP(Neighbor_alltoallv_c, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
    MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
    MPI_Datatype recvtype, MPI_Comm comm), (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
    recvtype, comm), .function = CT_NEIGHBOR_ALLTOALLV, .form = CT_BLOCKING, .large = true, .send = sendbuf,
    .send_counts = sendcounts, .send_displs = sdispls, .send_type = sendtype, .recv = recvbuf,
    .recv_counts = recvcounts, .recv_displs = rdispls, .recv_type = recvtype, .comm = comm)
CT__WRAP(Ineighbor_alltoallv, (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
    void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
    MPI_Request *request), (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
    request), .function = CT_NEIGHBOR_ALLTOALLV, .form = CT_NONBLOCKING, .large = false, .send = sendbuf,
    .send_counts = sendcounts, .send_displs = sdispls, .send_type = sendtype, .recv = recvbuf,
    .recv_counts = recvcounts, .recv_displs = rdispls, .recv_type = recvtype, .comm = comm, .request = request)
CT__WRAP(Ineighbor_alltoallv_c, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
    MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request), (sendbuf, sendcounts, sdispls, sendtype, recvbuf,
    recvcounts, rdispls, recvtype, comm, request), .function = CT_NEIGHBOR_ALLTOALLV, .form = CT_NONBLOCKING,
    .large = true, .send = sendbuf, .send_counts = sendcounts, .send_displs = sdispls, .send_type = sendtype,
    .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = rdispls, .recv_type = recvtype, .comm = comm,
    .request = request)
CT__WRAP_MPIX(Neighbor_alltoallv_init, (const void *sendbuf, const int sendcounts[], const int sdispls[],
    MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,
    MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
    rdispls, recvtype, comm, info, request), .function = CT_NEIGHBOR_ALLTOALLV, .form = CT_PERSISTENT, .large = false,
    .send = sendbuf, .send_counts = sendcounts, .send_displs = sdispls, .send_type = sendtype, .recv = recvbuf,
    .recv_counts = recvcounts, .recv_displs = rdispls, .recv_type = recvtype, .comm = comm, .info = info,
    .request = request)
CT__WRAP(Neighbor_alltoallv_init_c, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
    MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcounts, sdispls,
    sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, info, request), .function = CT_NEIGHBOR_ALLTOALLV,
    .form = CT_PERSISTENT, .large = true, .send = sendbuf, .send_counts = sendcounts, .send_displs = sdispls,
    .send_type = sendtype, .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = rdispls, .recv_type = recvtype,
    .comm = comm, .info = info, .request = request)
CT__WRAP(Neighbor_alltoallw, (const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
    const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const MPI_Aint rdispls[],
    const MPI_Datatype recvtypes[], MPI_Comm comm), (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts,
    rdispls, recvtypes, comm), .function = CT_NEIGHBOR_ALLTOALLW, .form = CT_BLOCKING, .large = false, .send = sendbuf,
    .send_counts = sendcounts, .send_displs = sdispls, .send_types = sendtypes, .recv = recvbuf,
    .recv_counts = recvcounts, .recv_displs = rdispls, .recv_types = recvtypes, .comm = comm)
CT__WRAP(Neighbor_alltoallw_c, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
    const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
    const MPI_Datatype recvtypes[], MPI_Comm comm), (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts,
    rdispls, recvtypes, comm), .function = CT_NEIGHBOR_ALLTOALLW, .form = CT_BLOCKING, .large = true, .send = sendbuf,
    .send_counts = sendcounts, .send_displs = sdispls, .send_types = sendtypes, .recv = recvbuf,
    .recv_counts = recvcounts, .recv_displs = rdispls, .recv_types = recvtypes, .comm = comm)
CT__WRAP(Ineighbor_alltoallw, (const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
    const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const MPI_Aint rdispls[],
    const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request), (sendbuf, sendcounts, sdispls, sendtypes,
    recvbuf, recvcounts, rdispls, recvtypes, comm, request), .function = CT_NEIGHBOR_ALLTOALLW, .form = CT_NONBLOCKING,
    .large = false, .send = sendbuf, .send_counts = sendcounts, .send_displs = sdispls, .send_types = sendtypes,
    .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = rdispls, .recv_types = recvtypes, .comm = comm,
    .request = request)
CT__WRAP(Ineighbor_alltoallw_c, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
    const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
    const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request), (sendbuf, sendcounts, sdispls, sendtypes,
    recvbuf, recvcounts, rdispls, recvtypes, comm, request), .function = CT_NEIGHBOR_ALLTOALLW, .form = CT_NONBLOCKING,
    .large = true, .send = sendbuf, .send_counts = sendcounts, .send_displs = sdispls, .send_types = sendtypes,
    .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = rdispls, .recv_types = recvtypes, .comm = comm,
    .request = request)
CT__WRAP_MPIX(Neighbor_alltoallw_init, (const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
    const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const MPI_Aint rdispls[],
    const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcounts, sdispls,
    sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, info, request), .function = CT_NEIGHBOR_ALLTOALLW,
    .form = CT_PERSISTENT, .large = false, .send = sendbuf, .send_counts = sendcounts, .send_displs = sdispls,
    .send_types = sendtypes, .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = rdispls,
    .recv_types = recvtypes, .comm = comm, .info = info, .request = request)
CT__WRAP(Neighbor_alltoallw_init_c, (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
    const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
    const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info, MPI_Request *request), (sendbuf, sendcounts, sdispls,
    sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, info, request), .function = CT_NEIGHBOR_ALLTOALLW,
    .form = CT_PERSISTENT, .large = true, .send = sendbuf, .send_counts = sendcounts, .send_displs = sdispls,
    .send_types = sendtypes, .recv = recvbuf, .recv_counts = recvcounts, .recv_displs = rdispls,
    .recv_types = recvtypes, .comm = comm, .info = info, .request = request)
