/* Rows of all ranks to rank 0. */
#pragma once

#include <stddef.h>

/* Gathers rows of `size` bytes up a binomial tree to rank 0. `join` makes one set of `count` rows, of two sets in a row,
 * and returns how many are left. Returns how many rows rank 0 has; 0 elsewhere. */
typedef int ct_profile_join(void *rows, int count, void *context);
int ct_profile_collect(void *rows, size_t size, int count, int tag, ct_profile_join *join, void *context);
