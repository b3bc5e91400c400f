/* The part of MPI that the algorithms of native/alltoallv use, and the programs of alltoallv_program, on the simulated cluster of cluster.h. */
#ifndef CT_CLUSTER_MPI_H
#define CT_CLUSTER_MPI_H

#include <stdint.h>

#define MPI_VERSION 3 /* no large counts: blocks are small here */

typedef int MPI_Comm, MPI_Datatype, MPI_Op, MPI_Errhandler;
typedef intptr_t MPI_Aint;
typedef long long MPI_Count;
typedef struct ct_message *MPI_Request;
typedef struct {
    int bytes;
} MPI_Status;

enum { MPI_SUCCESS = 0, MPI_ERR_ARG = 12, MPI_ERR_TRUNCATE = 14, MPI_ERR_NO_MEM = 34 };
enum { MPI_COMM_NULL, MPI_COMM_WORLD };
enum { MPI_BYTE, MPI_PACKED, MPI_INT, MPI_UINT32_T, MPI_INT64_T, MPI_UINT64_T, MPI_DOUBLE };
enum { MPI_MIN, MPI_MAX, MPI_SUM };
enum { MPI_COMBINER_NAMED = 1, MPI_MAX_PROCESSOR_NAME = 128 };
#define MPI_REQUEST_NULL ((MPI_Request)0)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)

int PMPI_Comm_rank(MPI_Comm comm, int *rank);
int PMPI_Comm_size(MPI_Comm comm, int *size);
int PMPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request);
int PMPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request);
int PMPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status);
int PMPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status);
int PMPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count);
int PMPI_Wait(MPI_Request *request, MPI_Status *status);
int PMPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]);

int PMPI_Type_get_envelope(MPI_Datatype type, int *integers, int *addresses, int *types, int *combiner);
int PMPI_Type_get_extent(MPI_Datatype type, MPI_Aint *lower, MPI_Aint *extent);
int PMPI_Type_size_x(MPI_Datatype type, MPI_Count *bytes);
int PMPI_Pack(const void *in, int count, MPI_Datatype type, void *out, int out_bytes, int *position, MPI_Comm comm);
int PMPI_Unpack(const void *in, int in_bytes, int *position, void *out, int count, MPI_Datatype type, MPI_Comm comm);

/* Of at most 64 bytes. */
int PMPI_Allreduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int PMPI_Allgather(const void *mine, int n, MPI_Datatype type, void *all, int m, MPI_Datatype other, MPI_Comm comm);
int PMPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
int PMPI_Get_processor_name(char *name, int *length);
int PMPI_Comm_free(MPI_Comm *comm);
int PMPI_Alltoallv(const void *send, const int *send_counts, const int *send_at, MPI_Datatype send_type, void *receive,
                   const int *receive_counts, const int *receive_at, MPI_Datatype receive_type, MPI_Comm comm);
int PMPI_Alltoallw(const void *send, const int *send_counts, const int *send_at, const MPI_Datatype *send_types, void *receive,
                   const int *receive_counts, const int *receive_at, const MPI_Datatype *receive_types, MPI_Comm comm);

/* Of whole programs. */
int MPI_Init(int *argc, char ***argv);
int MPI_Finalize(void);
int MPI_Abort(MPI_Comm comm, int code);
double MPI_Wtime(void);
int MPI_Comm_rank(MPI_Comm comm, int *rank);
int MPI_Comm_size(MPI_Comm comm, int *size);
int MPI_Barrier(MPI_Comm comm);
int MPI_Allreduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int MPI_Reduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm);
int MPI_Alltoall(const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                 MPI_Datatype receive_type, MPI_Comm comm);
int MPI_Alltoallv(const void *send, const int *send_counts, const int *send_at, MPI_Datatype send_type, void *receive,
                  const int *receive_counts, const int *receive_at, MPI_Datatype receive_type, MPI_Comm comm);

#endif
