/* Every collective of MPI 5.0, once: all that needs one of each is made from these tables.
 *
 * CT_COLLECTIVES(ROW, X): ROW(X, Name, lower, UPPER, SIGNATURE), in the order of ct_function; the barrier, which has no counts,
 * is not among them. CT_EACH_FUNCTION(X): X(Name, UPPER, SIGNATURE, FORM, COUNT, DISPL, LARGE), in every form and width.
 * CT_EACH_OTHER(X): X(Name, PARAMETERS, ARGUMENTS), what else the preloaded library sees.
 *
 * Parameters are called after the fields of ct_call. */
#pragma once

#define CT_COLLECTIVES(ROW, X)                                                                                         \
    ROW(X, Bcast, bcast, BCAST, BCAST)                                                                                 \
    ROW(X, Gather, gather, GATHER, GATHER)                                                                             \
    ROW(X, Gatherv, gatherv, GATHERV, GATHERV)                                                                         \
    ROW(X, Scatter, scatter, SCATTER, GATHER)                                                                          \
    ROW(X, Scatterv, scatterv, SCATTERV, SCATTERV)                                                                     \
    ROW(X, Allgather, allgather, ALLGATHER, ALLTOALL)                                                                  \
    ROW(X, Allgatherv, allgatherv, ALLGATHERV, ALLGATHERV)                                                             \
    ROW(X, Alltoall, alltoall, ALLTOALL, ALLTOALL)                                                                     \
    ROW(X, Alltoallv, alltoallv, ALLTOALLV, ALLTOALLV)                                                                 \
    ROW(X, Alltoallw, alltoallw, ALLTOALLW, ALLTOALLW)                                                                 \
    ROW(X, Reduce, reduce, REDUCE, REDUCE)                                                                             \
    ROW(X, Allreduce, allreduce, ALLREDUCE, ALLREDUCE)                                                                 \
    ROW(X, Reduce_scatter, reduce_scatter, REDUCE_SCATTER, REDUCE_SCATTER)                                             \
    ROW(X, Reduce_scatter_block, reduce_scatter_block, REDUCE_SCATTER_BLOCK, REDUCE_SCATTER_BLOCK)                     \
    ROW(X, Scan, scan, SCAN, ALLREDUCE)                                                                                \
    ROW(X, Exscan, exscan, EXSCAN, ALLREDUCE)                                                                          \
    ROW(X, Neighbor_allgather, neighbor_allgather, NEIGHBOR_ALLGATHER, ALLTOALL)                                       \
    ROW(X, Neighbor_allgatherv, neighbor_allgatherv, NEIGHBOR_ALLGATHERV, ALLGATHERV)                                  \
    ROW(X, Neighbor_alltoall, neighbor_alltoall, NEIGHBOR_ALLTOALL, ALLTOALL)                                          \
    ROW(X, Neighbor_alltoallv, neighbor_alltoallv, NEIGHBOR_ALLTOALLV, ALLTOALLV)                                      \
    ROW(X, Neighbor_alltoallw, neighbor_alltoallw, NEIGHBOR_ALLTOALLW, NEIGHBOR_ALLTOALLW)

#define CT__FORMS(X, NAME, LOWER, UPPER, SIGNATURE, SUFFIX, COUNT, DISPL, LARGE)                                       \
    X(NAME##SUFFIX, UPPER, SIGNATURE, BLOCKING, COUNT, DISPL, LARGE)                                                   \
    X(I##LOWER##SUFFIX, UPPER, SIGNATURE, NONBLOCKING, COUNT, DISPL, LARGE)                                            \
    X(NAME##_init##SUFFIX, UPPER, SIGNATURE, PERSISTENT, COUNT, DISPL, LARGE)
#define CT__WIDTHS(X, NAME, LOWER, UPPER, SIGNATURE)                                                                   \
    CT__FORMS(X, NAME, LOWER, UPPER, SIGNATURE, , int, int, false)                                                     \
    CT__FORMS(X, NAME, LOWER, UPPER, SIGNATURE, _c, MPI_Count, MPI_Aint, true)
#define CT_EACH_FUNCTION(X)                                                                                            \
    CT__FORMS(X, Barrier, barrier, BARRIER, BARRIER, , int, int, false)                                                \
    CT_COLLECTIVES(CT__WIDTHS, X)

#define CT_EACH_OTHER(X)                                                                                               \
    X(Init, (int *argc, char ***argv), (argc, argv))                                                                   \
    X(Init_thread, (int *argc, char ***argv, int required, int *provided), (argc, argv, required, provided))           \
    X(Finalize, (void), ())                                                                                            \
    X(Abort, (MPI_Comm comm, int code), (comm, code))                                                                  \
    X(Start, (MPI_Request * request), (request))                                                                       \
    X(Startall, (int count, MPI_Request requests[]), (count, requests))                                                \
    X(T_cvar_write, (MPI_T_cvar_handle handle, const void *value), (handle, value))                                    \
    X(Request_free, (MPI_Request * request), (request))                                                                \
    X(Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler handler), (comm, handler))                                   \
    X(Comm_free, (MPI_Comm * comm), (comm))                                                                            \
    X(Comm_disconnect, (MPI_Comm * comm), (comm))                                                                      \
    X(Comm_idup, (MPI_Comm comm, MPI_Comm * made, MPI_Request * request), (comm, made, request))                       \
    X(Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm * made, MPI_Request * request), (comm, info, made, request))

/* Before the communicator: declared, named, and as fields of ct_call. */
#define CT__BLOCK(COUNT)                                                                                               \
    const void *send, COUNT send_count, MPI_Datatype send_type, void *recv, COUNT recv_count, MPI_Datatype recv_type,
#define CT__BLOCK_NAMES send, send_count, send_type, recv, recv_count, recv_type,
#define CT__BLOCK_FIELDS                                                                                               \
    .send = send, .send_count = send_count, .send_type = send_type, .recv = recv, .recv_count = recv_count,            \
    .recv_type = recv_type,
#define CT__MANY(COUNT, DISPL, TYPE)                                                                                   \
    const void *send, const COUNT send_counts[], const DISPL send_displs[], TYPE(send), void *recv,                    \
        const COUNT recv_counts[], const DISPL recv_displs[], TYPE(recv),
#define CT__ONE_TYPE(SIDE) MPI_Datatype SIDE##_type
#define CT__TYPES(SIDE) const MPI_Datatype SIDE##_types[]
#define CT__MANY_FIELDS                                                                                                \
    .send = send, .send_counts = send_counts, .send_displs = send_displs, .recv = recv, .recv_counts = recv_counts,    \
    .recv_displs = recv_displs,

#define CT_PARAMETERS_BARRIER(COUNT, DISPL)
#define CT_NAMES_BARRIER
#define CT_FIELDS_BARRIER
#define CT_PARAMETERS_BCAST(COUNT, DISPL) void *buffer, COUNT count, MPI_Datatype type, int root,
#define CT_NAMES_BCAST buffer, count, type, root,
#define CT_FIELDS_BCAST                                                                                                \
    .send = buffer, .recv = buffer, .send_count = count, .recv_count = count, .send_type = type, .recv_type = type,    \
    .root = root,
#define CT_PARAMETERS_GATHER(COUNT, DISPL) CT__BLOCK(COUNT) int root,
#define CT_NAMES_GATHER CT__BLOCK_NAMES root,
#define CT_FIELDS_GATHER CT__BLOCK_FIELDS .root = root,
#define CT_PARAMETERS_ALLTOALL(COUNT, DISPL) CT__BLOCK(COUNT)
#define CT_NAMES_ALLTOALL CT__BLOCK_NAMES
#define CT_FIELDS_ALLTOALL CT__BLOCK_FIELDS
#define CT_PARAMETERS_ALLGATHERV(COUNT, DISPL)                                                                         \
    const void *send, COUNT send_count, MPI_Datatype send_type, void *recv, const COUNT recv_counts[],                 \
        const DISPL recv_displs[], MPI_Datatype recv_type,
#define CT_NAMES_ALLGATHERV send, send_count, send_type, recv, recv_counts, recv_displs, recv_type,
#define CT_FIELDS_ALLGATHERV                                                                                           \
    .send = send, .send_count = send_count, .send_type = send_type, .recv = recv, .recv_counts = recv_counts,          \
    .recv_displs = recv_displs, .recv_type = recv_type,
#define CT_PARAMETERS_GATHERV(COUNT, DISPL) CT_PARAMETERS_ALLGATHERV(COUNT, DISPL) int root,
#define CT_NAMES_GATHERV CT_NAMES_ALLGATHERV root,
#define CT_FIELDS_GATHERV CT_FIELDS_ALLGATHERV .root = root,
#define CT_PARAMETERS_SCATTERV(COUNT, DISPL)                                                                           \
    const void *send, const COUNT send_counts[], const DISPL send_displs[], MPI_Datatype send_type, void *recv,        \
        COUNT recv_count, MPI_Datatype recv_type, int root,
#define CT_NAMES_SCATTERV send, send_counts, send_displs, send_type, recv, recv_count, recv_type, root,
#define CT_FIELDS_SCATTERV                                                                                             \
    .send = send, .send_counts = send_counts, .send_displs = send_displs, .send_type = send_type, .recv = recv,        \
    .recv_count = recv_count, .recv_type = recv_type, .root = root,
#define CT_PARAMETERS_ALLTOALLV(COUNT, DISPL) CT__MANY(COUNT, DISPL, CT__ONE_TYPE)
#define CT_NAMES_ALLTOALLV send, send_counts, send_displs, send_type, recv, recv_counts, recv_displs, recv_type,
#define CT_FIELDS_ALLTOALLV CT__MANY_FIELDS .send_type = send_type, .recv_type = recv_type,
#define CT_PARAMETERS_ALLTOALLW(COUNT, DISPL) CT__MANY(COUNT, DISPL, CT__TYPES)
#define CT_NAMES_ALLTOALLW send, send_counts, send_displs, send_types, recv, recv_counts, recv_displs, recv_types,
#define CT_FIELDS_ALLTOALLW CT__MANY_FIELDS .send_types = send_types, .recv_types = recv_types,
#define CT_PARAMETERS_NEIGHBOR_ALLTOALLW(COUNT, DISPL) CT__MANY(COUNT, MPI_Aint, CT__TYPES)
#define CT_NAMES_NEIGHBOR_ALLTOALLW CT_NAMES_ALLTOALLW
#define CT_FIELDS_NEIGHBOR_ALLTOALLW CT_FIELDS_ALLTOALLW
#define CT_PARAMETERS_ALLREDUCE(COUNT, DISPL) const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op,
#define CT_NAMES_ALLREDUCE send, recv, count, type, op,
#define CT_FIELDS_ALLREDUCE                                                                                            \
    .send = send, .recv = recv, .send_count = count, .recv_count = count, .send_type = type, .recv_type = type, .op = op,
#define CT_PARAMETERS_REDUCE(COUNT, DISPL) CT_PARAMETERS_ALLREDUCE(COUNT, DISPL) int root,
#define CT_NAMES_REDUCE CT_NAMES_ALLREDUCE root,
#define CT_FIELDS_REDUCE CT_FIELDS_ALLREDUCE .root = root,
#define CT_PARAMETERS_REDUCE_SCATTER(COUNT, DISPL)                                                                     \
    const void *send, void *recv, const COUNT recv_counts[], MPI_Datatype type, MPI_Op op,
#define CT_NAMES_REDUCE_SCATTER send, recv, recv_counts, type, op,
#define CT_FIELDS_REDUCE_SCATTER                                                                                       \
    .send = send, .recv = recv, .recv_counts = recv_counts, .send_type = type, .recv_type = type, .op = op,
#define CT_PARAMETERS_REDUCE_SCATTER_BLOCK(COUNT, DISPL)                                                               \
    const void *send, void *recv, COUNT recv_count, MPI_Datatype type, MPI_Op op,
#define CT_NAMES_REDUCE_SCATTER_BLOCK send, recv, recv_count, type, op,
#define CT_FIELDS_REDUCE_SCATTER_BLOCK                                                                                 \
    .send = send, .recv = recv, .recv_count = recv_count, .send_type = type, .recv_type = type, .op = op,

/* Behind it. */
#define CT__MORE_BLOCKING
#define CT__MORE_NONBLOCKING , MPI_Request *request
#define CT__MORE_PERSISTENT , MPI_Info info, MPI_Request *request
#define CT__MORE_NAMES_BLOCKING
#define CT__MORE_NAMES_NONBLOCKING , request
#define CT__MORE_NAMES_PERSISTENT , info, request
#define CT__MORE_FIELDS_BLOCKING
#define CT__MORE_FIELDS_NONBLOCKING .request = request,
#define CT__MORE_FIELDS_PERSISTENT .info = info, .request = request,

/* In brackets, but for the fields. */
#define CT_PARAMETERS(SIGNATURE, FORM, COUNT, DISPL)                                                                   \
    (CT_PARAMETERS_##SIGNATURE(COUNT, DISPL) MPI_Comm comm CT__MORE_##FORM)
#define CT_ARGUMENTS(SIGNATURE, FORM) (CT_NAMES_##SIGNATURE comm CT__MORE_NAMES_##FORM)
#define CT_FIELDS(SIGNATURE, FORM) CT_FIELDS_##SIGNATURE CT__MORE_FIELDS_##FORM .comm = comm
