#include "collectives.h"

#include <string.h>

/* clang-format off */
const struct ct_collective ct_collectives[CT_COLLECTIVES] = {
    {.name = "allgather", .has_data = true, .has_in_place = true, .count_is_block = true, .size_is_block = true,
     .run = ct_allgather_run},
    {.name = "allgatherv", .has_data = true, .has_in_place = true, .has_shapes = true, .count_is_block = true,
     .size_is_block = true, .run = ct_allgatherv_run},
    {.name = "allreduce", .has_data = true, .has_in_place = true, .reduces = true, .run = ct_allreduce_run},
    {.name = "alltoall", .has_data = true, .has_in_place = true, .count_is_block = true, .size_is_block = true,
     .run = ct_alltoall_run},
    {.name = "alltoallv", .has_data = true, .has_in_place = true, .has_shapes = true, .count_is_block = true,
     .size_is_block = true, .run = ct_alltoallv_run},
    {.name = "barrier", .has_root = true, .run = ct_barrier_run},
    {.name = "bcast", .has_data = true, .has_root = true, .run = ct_bcast_run},
    {.name = "exscan", .has_data = true, .has_in_place = true, .reduces = true, .is_within = true,
     .run = ct_exscan_run},
    {.name = "gather", .has_data = true, .has_root = true, .has_in_place = true, .count_is_block = true,
     .size_is_block = true, .run = ct_gather_run},
    {.name = "iallgather", .has_data = true, .has_in_place = true, .count_is_block = true, .size_is_block = true,
     .run = ct_nonblocking_run, .open = ct_allgather_open, .start = ct_iallgather_start},
    {.name = "iallreduce", .has_data = true, .has_in_place = true, .reduces = true,
     .run = ct_nonblocking_run, .open = ct_allreduce_open, .start = ct_iallreduce_start},
    {.name = "ialltoall", .has_data = true, .has_in_place = true, .count_is_block = true, .size_is_block = true,
     .run = ct_nonblocking_run, .open = ct_alltoall_open, .start = ct_ialltoall_start},
    {.name = "ibcast", .has_data = true, .has_root = true,
     .run = ct_nonblocking_run, .open = ct_bcast_open, .start = ct_ibcast_start},
    {.name = "reduce", .has_data = true, .has_root = true, .has_in_place = true, .reduces = true,
     .run = ct_reduce_run},
    {.name = "reduce_scatter", .has_data = true, .has_in_place = true, .has_shapes = true, .reduces = true,
     .count_is_block = true, .run = ct_reduce_scatter_run},
    {.name = "reduce_scatter_block", .has_data = true, .has_in_place = true, .reduces = true,
     .count_is_block = true, .run = ct_reduce_scatter_block_run},
    {.name = "scan", .has_data = true, .has_in_place = true, .reduces = true, .is_within = true, .run = ct_scan_run},
    {.name = "scatter", .has_data = true, .has_root = true, .has_in_place = true, .count_is_block = true,
     .size_is_block = true, .run = ct_scatter_run},
};
/* clang-format on */

int ct_collective_find(const char *name, size_t length)
{
    for (int i = 0; i < CT_COLLECTIVES; i++)
        if (strlen(ct_collectives[i].name) == length && strncmp(ct_collectives[i].name, name, length) == 0)
            return i;
    return -1;
}
