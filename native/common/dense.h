/* Datatypes whose elements fill one piece of memory. */
#pragma once

#include <mpi.h>
#include <stdbool.h>

/* Whether elements of `type` are known to lie one after another without gaps; in which order inside one does not matter. */
static inline bool ct_type_is_dense(MPI_Datatype type)
{
    MPI_Aint lower, extent, span;
    MPI_Count bytes;
    int code = PMPI_Type_size_x(type, &bytes);
    if (code == MPI_SUCCESS)
        code = PMPI_Type_get_extent(type, &lower, &extent);
#ifdef CT_SIMULATED /* there is no such function, and no type but MPI_BYTE */
    span = extent;
#else
    if (code == MPI_SUCCESS)
        code = PMPI_Type_get_true_extent(type, &lower, &span);
#endif
    return code == MPI_SUCCESS && extent == bytes && span == bytes;
}
