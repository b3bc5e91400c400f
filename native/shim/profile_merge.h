/* The tables of all ranks become one. */
#pragma once

#include "profile_write.h"

/* Rows of this rank, `rows` [CT_PROFILE_RECORDS + CT_PROFILE_CLASSES]. Returns how many. Async-signal-safe. */
int ct_profile_rows(ct_profile_row *rows);
/* Collective: writes the merged tables, on rank 0. False: a rank has no memory for it, and nothing is written. */
bool ct_profile_merge(void);
