/* The file of a profile. */
#pragma once

#include "profile_table.h"

/* A record with its class, as merged and written. */
typedef struct {
    ct_profile_class class;
    uint64_t key; /* less the class */
    uint64_t counters[CT_PROFILE_COUNTER_COUNT];
} ct_profile_row;

/* Writes a file. `rank` < 0: of all ranks. Async-signal-safe. Returns false, with errno, if it cannot. */
bool ct_profile_write(int rank, const char *why, const ct_profile_row *rows, int count, uint64_t elapsed_ns,
                      uint64_t lost);
/* Takes away what a rank has written before. */
void ct_profile_unwrite(int rank);
