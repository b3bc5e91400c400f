/* The state of the heap in which calls are timed, and calls that receive into memory which was never touched. */
#include "point.h"

/* Timed calls of one choice at most in a further state of memory, and the share of a time box that they take. */
enum { CT__FEWEST_CALLS = 5, CT__MOST_CALLS = 60 };
static double const CT__SHARE = 0.3;
/* Bytes from which allocators map a buffer for itself, so that it is untouched. */
static size_t const CT__MAPPED = 128 * 1024;
/* Page faults of a call above which it is timed with a heap that keeps what is freed, too: fewer are chance. */
static double const CT__FEW_FAULTS = 2.0;

int ct_point_give_back(ct_point *point, int index)
{
    const ct_choice_state *state = &point->states[index];
    double elapsed_s;
    if (!state->large || point->heap_of == index)
        return MPI_SUCCESS;
    point->heap_of = index;
    ct_heap_give_back(state->largest);
    return ct_point_run(point, index, &elapsed_s); /* the last call by another state's thresholds */
}

/* The median over calls of the slowest rank's time; with `untouch` each receives into untouched memory. */
static int ct__time(ct_point *point, int index, bool untouch, double *middle_s)
{
    const ct_choice_state *state = &point->states[index];
    double own[CT__MOST_CALLS], low, high, fitting = CT__SHARE * point->request->box_s / (state->estimate_s + 1e-9);
    int calls = fitting < CT__MOST_CALLS ? (int)fitting : CT__MOST_CALLS;
    calls = calls < CT__FEWEST_CALLS ? CT__FEWEST_CALLS : calls;
    for (int i = 0; i < calls; i++) {
        if (untouch)
            ct_call_untouch(point->call);
        CT_TRY(ct_point_run(point, index, &own[i]));
    }
    CT_TRY(MPI_Allreduce(MPI_IN_PLACE, own, calls, MPI_DOUBLE, MPI_MAX, point->group->comm));
    *middle_s = ct_median_interval(own, calls, &low, &high);
    return MPI_SUCCESS;
}

int ct_point_keep(ct_point *point, int index)
{
    ct_choice_state *state = &point->states[index];
    double elapsed_s, began = MPI_Wtime();
    if (!point->heap_moves || state->faults < CT__FEW_FAULTS)
        return MPI_SUCCESS;
    ct_heap_keep();
    for (int i = 0; i < 2; i++)
        CT_TRY(ct_point_run(point, index, &elapsed_s));
    CT_TRY(ct__time(point, index, false, &state->kept_s));
    ct_heap_give_back(0);
    point->heap_of = -1;
    state->cost_s += MPI_Wtime() - began;
    return MPI_SUCCESS;
}

int ct_point_untouched(ct_point *point, int index)
{
    ct_choice_state *state = &point->states[index];
    double began = MPI_Wtime();
    if (ct_call_receives(point->call) < CT__MAPPED)
        return MPI_SUCCESS;
    CT_TRY(ct_point_give_back(point, index));
    CT_TRY(ct__time(point, index, true, &state->untouched_s));
    state->cost_s += MPI_Wtime() - began;
    return MPI_SUCCESS;
}
