#include "state.h"
#include "private_comm.h"

#include <stdlib.h>

int ct_state_team(ct_state *state, MPI_Comm comm, ct_team_nodes *leaders, const void *of)
{
    MPI_Comm private_comm;
    if (state->team != NULL || ct_private_comm(comm, true, &private_comm) != MPI_SUCCESS)
        return MPI_SUCCESS;
    int code = ct_team_make(private_comm, leaders, of, &state->team);
    if (code != MPI_SUCCESS)
        ct_private_comm_free(&private_comm);
    return code == MPI_ERR_NO_MEM ? MPI_SUCCESS : code;
}

void ct_state_begin(ct_state *state)
{
    state->ready = state->table.choice_count > 1;
    state->off = !state->ready;
    ct_policy_start(&state->policy);
}

void ct_state_free(ct_state *state)
{
    if (state != NULL && state->team != NULL) {
        ct_private_comm_free(&state->team->comm);
        ct_team_free(state->team);
    }
    free(state);
}
