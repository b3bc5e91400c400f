/* Calls to which ranks come at different times, as they do in applications. */
#include "point.h"

/* Calls of one choice at most: their mean decides nothing alone. */
enum { CT__LATE_CALLS = 16 };

/* Of a rank in a call, from 0 to 1; the same wherever it is asked for (splitmix64). */
static double ct__share(uint64_t seed, int call, int rank)
{
    uint64_t mixed = seed + 0x9E3779B97F4A7C15ULL * ((uint64_t)call * 1000003ULL + (uint64_t)rank + 1);
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
    return (double)((mixed ^ (mixed >> 31)) >> 11) / 9007199254740992.0;
}

/* How late a rank comes to a call: the last one by the whole skew. */
static double ct__delay(const ct_point *point, int call, int rank)
{
    double last = 0.0;
    for (int i = 0; i < point->size; i++) {
        double share = ct__share(point->request->seed, call, i);
        last = share > last ? share : last;
    }
    return last > 0.0 ? point->request->skew_s * ct__share(point->request->seed, call, rank) / last : 0.0;
}

int ct_point_late(ct_point *point, int index)
{
    const ct_request *request = point->request;
    ct_choice_state *state = &point->states[index];
    double own[CT__LATE_CALLS], began = MPI_Wtime();
    int calls = ct_point_calls_beside(point, state->estimate_s + request->skew_s, CT__LATE_CALLS);
    for (int i = 0; i < calls; i++) {
        double delay = ct__delay(point, i, point->rank);
        CT_TRY(ct_synchronise(point->group->comm));
        int code = ct_point_steer(point, &request->choices[index], true);
        double start = MPI_Wtime(), arrival;
        do
            arrival = MPI_Wtime();
        while (arrival - start < delay);
        if (code == MPI_SUCCESS)
            code = ct_call_run(point->call, state->comm);
        double end = MPI_Wtime();
        point->inside_s += end - arrival;
        own[i] = end - start - request->skew_s;
        ct_keep_first(&code, ct_point_steer(point, &request->choices[index], false));
        CT_TRY(code);
    }
    CT_TRY(MPI_Allreduce(MPI_IN_PLACE, own, calls, MPI_DOUBLE, MPI_MAX, point->group->comm));
    double sum = 0.0;
    for (int i = 0; i < calls; i++)
        sum += own[i];
    state->skewed_s = sum > 0.0 ? sum / calls : -1.0;
    state->cost_s += MPI_Wtime() - began;
    return MPI_SUCCESS;
}
