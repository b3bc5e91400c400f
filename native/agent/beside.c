/* Calls of a choice beside those that decide: in other states of the heap, into memory which was never touched, and with ranks that
 * come at different times, as they do in applications. */
#include "agent.h"

#include <math.h>
#include <time.h>

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

/* Calls of one choice at most. */
enum { CT__LATE_CALLS = 16 };

/* A sleep may end so much later than it should, so it is to end so much sooner. */
static double const CT__AWAKE_S = 200e-6;

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

/* Few, since their mean decides nothing alone. */
static int ct__late_calls(const ct_point *point, double each_s)
{
    double box_s = point->request->box_s, fitting = 0.1 * box_s / (each_s + 1e-9);
    return each_s + 1e-9 > box_s ? 1 : fitting < 3 ? 3 : fitting > CT__LATE_CALLS ? CT__LATE_CALLS : (int)fitting;
}

int ct_point_late(ct_point *point, int index)
{
    const ct_request *request = point->request;
    ct_choice_state *state = &point->states[index];
    double own[CT__LATE_CALLS], began = MPI_Wtime();
    int calls = ct__late_calls(point, state->estimate_s + request->skew_s);
    for (int i = 0; i < calls; i++) {
        double delay = ct__delay(point, i, point->rank);
        CT_TRY(ct_synchronise(point->group->comm));
        int code = ct_point_steer(point, &request->choices[index], true);
        double start = MPI_Wtime(), arrival;
        /* Ranks that share cores would hold up those that are in the call already. */
        double asleep = delay - CT__AWAKE_S;
        if (asleep > 0.0)
            nanosleep(&(struct timespec){.tv_sec = (time_t)asleep, .tv_nsec = (long)(1e9 * fmod(asleep, 1.0))}, NULL);
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
