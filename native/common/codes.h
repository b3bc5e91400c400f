/* Error codes of MPI, and what all ranks say. */
#pragma once

#include <mpi.h>
#include <stdbool.h>

/* Goes on if an MPI call succeeded, and hands its error code to the caller if not. */
#define CT_TRY(call)               \
    do {                           \
        int ct_code_ = (call);     \
        if (ct_code_ != MPI_SUCCESS) \
            return ct_code_;       \
    } while (0)

/* Where one error must not keep the other ranks waiting. */
static inline void ct_keep_first(int *kept, int code)
{
    if (*kept == MPI_SUCCESS)
        *kept = code;
}

/* Whether it is so on every rank; collective. */
static inline bool ct_all(MPI_Comm comm, bool mine)
{
    int own = mine, all = 0;
    return PMPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && all;
}
