#include "collectives.h"

#include <string.h>

#define CT__MOVES(CALL) .call = CT_##CALL, .has_data = true, .has_in_place = true, .count_is_block = true, \
                        .size_is_block = true, .open = ct_moves_open
#define CT__REDUCES(CALL) .call = CT_##CALL, .has_data = true, .has_in_place = true, .reduces = true, .open = ct_reductions_open
#define CT__BCAST .call = CT_BCAST, .has_data = true, .has_root = true, .open = ct_bcast_open
#define CT__BLOCKING .run = ct_blocking_run
#define CT__NONBLOCKING .run = ct_nonblocking_run, .is_nonblocking = true

/* clang-format off */
const struct ct_collective ct_collectives[CT_REPLAYED] = {
    {.name = "allgather", CT__MOVES(ALLGATHER), CT__BLOCKING},
    {.name = "allgatherv", CT__MOVES(ALLGATHERV), CT__BLOCKING, .has_shapes = true},
    {.name = "allreduce", CT__REDUCES(ALLREDUCE), CT__BLOCKING},
    {.name = "alltoall", CT__MOVES(ALLTOALL), CT__BLOCKING, .is_personal = true},
    {.name = "alltoallv", CT__MOVES(ALLTOALLV), CT__BLOCKING, .is_personal = true, .has_shapes = true},
    {.name = "barrier", .has_root = true, .run = ct_barrier_run},
    {.name = "bcast", CT__BCAST, CT__BLOCKING},
    {.name = "exscan", CT__REDUCES(EXSCAN), CT__BLOCKING, .scans = CT_SCAN_OTHERS},
    {.name = "gather", CT__MOVES(GATHER), CT__BLOCKING, .has_root = true},
    {.name = "iallgather", CT__MOVES(ALLGATHER), CT__NONBLOCKING},
    {.name = "iallreduce", CT__REDUCES(ALLREDUCE), CT__NONBLOCKING},
    {.name = "ialltoall", CT__MOVES(ALLTOALL), CT__NONBLOCKING, .is_personal = true},
    {.name = "ibcast", CT__BCAST, CT__NONBLOCKING},
    {.name = "reduce", CT__REDUCES(REDUCE), CT__BLOCKING, .has_root = true},
    {.name = "reduce_scatter", CT__REDUCES(REDUCE_SCATTER), CT__BLOCKING, .has_shapes = true, .count_is_block = true},
    {.name = "reduce_scatter_block", CT__REDUCES(REDUCE_SCATTER_BLOCK), CT__BLOCKING, .count_is_block = true},
    {.name = "scan", CT__REDUCES(SCAN), CT__BLOCKING, .scans = CT_SCAN_OWN},
    {.name = "scatter", CT__MOVES(SCATTER), CT__BLOCKING, .has_root = true, .is_personal = true},
};
/* clang-format on */

int ct_collective_find(const char *name, size_t length)
{
    for (int i = 0; i < CT_REPLAYED; i++)
        if (strlen(ct_collectives[i].name) == length && strncmp(ct_collectives[i].name, name, length) == 0)
            return i;
    return -1;
}
