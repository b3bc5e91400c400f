#include "profile_collect.h"
#include "shim.h"

int ct_profile_collect(void *rows, size_t size, int count, int tag, ct_profile_join *join, void *context)
{
    for (int distance = 1; distance < ct_job.size; distance *= 2) {
        if (ct_job.rank % (2 * distance) == distance) {
            PMPI_Send(rows, count * (int)size, MPI_BYTE, ct_job.rank - distance, tag, ct_job.comm);
            return 0;
        }
        if (ct_job.rank + distance >= ct_job.size)
            continue;
        int bytes;
        MPI_Status status;
        PMPI_Probe(ct_job.rank + distance, tag, ct_job.comm, &status);
        PMPI_Get_count(&status, MPI_BYTE, &bytes);
        PMPI_Recv((char *)rows + (size_t)count * size, bytes, MPI_BYTE, ct_job.rank + distance, tag, ct_job.comm,
                  MPI_STATUS_IGNORE);
        count = join(rows, count + bytes / (int)size, context);
    }
    return count;
}
