/* The key-value space of the job, which its launcher keeps for the ranks of all nodes. What is put there before a rank has ended
 * the MPI's own MPI_Init, every rank can read after it, without a message to any rank. */
#pragma once

#include <stdbool.h>

/* Before the MPI's own MPI_Init, on every rank of a job of several nodes: it may be spoken to. `hydra`: whether Hydra started it.
 * `ranks` of MPI_COMM_WORLD, in any order, have the library: those of a whole node, from one of them, or none. They are sorted,
 * and stay until MPI_Init has ended. */
void ct_keys_put(bool hydra, int *ranks, int count);
/* After it: whether it could be spoken to, the same on all ranks. */
bool ct_keys_are_there(void);
/* Then, in a job of `world` ranks: whether all are among those that were put; `first`: the first that is, or -1. */
bool ct_keys_hold_all(int world, int *first);
