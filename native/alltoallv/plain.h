/* Whom the functions of colltune_alltoallv.h leave the call to. */
#pragma once

#include "call.h"

/* In libcolltune.so, while its wrapper of MPI_Alltoallv goes by the table: what it keeps for a communicator, or NULL. Else NULL. */
extern const ct_state *(*ct_plain_wrapped)(MPI_Comm comm);
/* ct_alltoallv_by, with all that a call may have. */
int ct_call_by(const ct_alltoallv_choice *choice, const ct_a2av_call *call);
