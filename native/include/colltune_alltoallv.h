/* The tunable non-uniform all-to-all: a drop-in for MPI_Alltoallv, and the algorithms by name.
 *
 * Every function is collective over `comm` and returns an MPI error code. docs/design/alltoallv.md describes the
 * algorithms, how one is chosen with all ranks alike, and how much memory they take. */
#ifndef COLLTUNE_ALLTOALLV_H
#define COLLTUNE_ALLTOALLV_H

#include <mpi.h>
#include <stddef.h>

#if defined(__GNUC__)
#define CT_PUBLIC __attribute__((visibility("default")))
#else
#define CT_PUBLIC
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    CT_ALLTOALLV_LIBRARY, /* the MPI library's own */
    CT_ALLTOALLV_LINEAR,  /* spread-out; batch: peers in flight, 0: all */
    CT_ALLTOALLV_PARATA,  /* Bruck with any radix; batch: steps of one digit in flight, 0: all */
    CT_ALLTOALLV_HIEATA,  /* ParAta within the node, between nodes one message for each destination; batch: nodes in flight, 0: all */
    CT_ALLTOALLV_ALGORITHMS
} ct_alltoallv_algorithm;

typedef struct {
    int algorithm;    /* ct_alltoallv_algorithm */
    int radix;        /* 2 to the number of ranks; ParAta and HieAta */
    int batch;        /* 0: no limit */
    int direct_above; /* bytes: a larger block goes straight to its destination; 0: CT_ALLTOALLV_DIRECT_ABOVE */
} ct_alltoallv_choice;

enum { CT_ALLTOALLV_DIRECT_ABOVE = 4096 };

/* "linear", "parata" ...; NULL where there is no such algorithm. */
CT_PUBLIC const char *ct_alltoallv_name(int algorithm);
/* The algorithm of that name, or -1. */
CT_PUBLIC int ct_alltoallv_find(const char *name);

/* MPI_Alltoallv by the table in force (COLLTUNE_ALLTOALLV names the file); the library's own without one. */
CT_PUBLIC int ct_alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
                 void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm);

/* MPI_Alltoallv by the algorithm of `choice`, which must be equal on all ranks but for `batch`. MPI_IN_PLACE and
 * inter-communicators go to the library. */
CT_PUBLIC int ct_alltoallv_by(const ct_alltoallv_choice *choice, const void *sendbuf, const int sendcounts[],
                    const int sdispls[], MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                    const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm);

/* What the last ct_alltoallv, or intercepted call, on `comm` ran; all zero, the library, where nothing was chosen. */
CT_PUBLIC int ct_alltoallv_last(MPI_Comm comm, ct_alltoallv_choice *choice);

#ifdef __cplusplus
}
#endif
#endif
