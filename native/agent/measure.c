/* One point: all its choices, interleaved in random order, each until its median is known well enough. */
#include "agent.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* MPICH's shared-memory collectives start only after 5 calls on a communicator. */
enum { CT__FRESH_WARM_UP = 8 };
static const char *const CT__STATUS[] = {"ok", "inapplicable", "wrong"};

/* Nothing is added where there is no memory. */
static __attribute__((format(printf, 2, 3))) void ct__add(ct_text *text, const char *format, ...)
{
    va_list arguments;
    for (;;) {
        size_t space = text->capacity - text->length;
        va_start(arguments, format);
        int length = vsnprintf(text->text == NULL ? NULL : text->text + text->length, space, format, arguments);
        va_end(arguments);
        if (length < 0)
            return;
        if ((size_t)length < space) {
            text->length += (size_t)length;
            return;
        }
        size_t capacity = 2 * (text->capacity + (size_t)length + 64);
        char *larger = realloc(text->text, capacity);
        if (larger == NULL)
            return;
        text->text = larger;
        text->capacity = capacity;
    }
}

/* The first calls on a communicator also ask for what they keep, so the last of those that are watched counts. */
static int ct__run_watched(ct_point *point, int index, double *elapsed_s)
{
    ct_heap_watch();
    int code = ct_point_run(point, index, elapsed_s);
    point->states[index].largest = ct_heap_largest();
    return code;
}

/* First call of a choice: is it what was asked for, and is its result right? */
static ct_status ct__try(ct_point *point, int index, double *elapsed_s)
{
    const ct_choice *choice = &point->request->choices[index];
    *elapsed_s = 0.0;
    if (choice->missing != NULL)
        return CT_INAPPLICABLE;
    ct_call_poison(point->call);
    if (ct__run_watched(point, index, elapsed_s) != MPI_SUCCESS)
        return CT_INAPPLICABLE;
    return ct_call_correct(point->call) ? CT_OK : CT_WRONG;
}

/* All ranks learn how a choice fared on the worst of them, and its longest time. */
static int ct__agree(ct_point *point, int index, ct_status own_status, double own_s, double *longest_s)
{
    ct_choice_state *state = &point->states[index];
    const char *missing = point->request->choices[index].missing;
    double own[4] = {own_status, own_status == CT_WRONG ? point->rank : -1, own_s, ct_heap_is_large(state->largest)};
    double worst[4];
    CT_TRY(MPI_Allreduce(own, worst, 4, MPI_DOUBLE, MPI_MAX, point->group->comm));
    *longest_s = worst[2];
    state->large = worst[3] > 0.0;
    state->status = (ct_status)worst[0];
    if (state->status == CT_WRONG)
        snprintf(state->detail, sizeof state->detail, "wrong-result-on-rank-%d", (int)worst[1]);
    else if (state->status == CT_INAPPLICABLE && missing != NULL)
        snprintf(state->detail, sizeof state->detail, "no-control-variable:%s", missing);
    else if (state->status == CT_INAPPLICABLE)
        snprintf(state->detail, sizeof state->detail, "refused-by-the-library");
    else if (point->request->beside > 1)
        snprintf(state->detail, sizeof state->detail, "%d-side-by-side", point->request->beside);
    return MPI_SUCCESS;
}

/* All ranks must make the same calls, so every number of calls follows from values that all ranks agreed on. */
static int ct__start(ct_point *point, int index)
{
    ct_choice_state *state = &point->states[index];
    const ct_request *request = point->request;
    double shortest_s, elapsed_s;
    CT_TRY(ct_group_variant(point->group, ct_call_overlaps(point->call), &request->choices[index], &state->comm));
    ct_status own = ct__try(point, index, &elapsed_s);
    CT_TRY(ct__agree(point, index, own, elapsed_s, &shortest_s));
    if (state->status != CT_OK)
        return MPI_SUCCESS;
    int calls = shortest_s * request->warm_up > request->box_s ? 1 : request->warm_up;
    if (point->group->fresh && index == 0 && !ct_point_long(point, shortest_s))
        calls = CT__FRESH_WARM_UP;
    for (int i = 0; i < calls; i++) {
        if (i == calls - 1) /* shared-memory collectives start late, so their result is seen only now */
            ct_call_poison(point->call);
        CT_TRY(ct__run_watched(point, index, &elapsed_s));
        shortest_s = elapsed_s < shortest_s ? elapsed_s : shortest_s;
    }
    own = ct_call_correct(point->call) ? CT_OK : CT_WRONG;
    CT_TRY(ct__agree(point, index, own, shortest_s, &state->estimate_s));
    state->live = state->status == CT_OK;
    if (!state->live || calls != 1 || !ct_point_once(point, state->estimate_s))
        return MPI_SUCCESS;
    state->count = 1; /* the warm-up was the first repetition */
    state->own_sum_s = elapsed_s;
    return MPI_Allreduce(&elapsed_s, state->times, 1, MPI_DOUBLE, MPI_MAX, point->group->comm);
}

/* Calls one after another with no synchronisation between them, as a loop in an application makes them. */
static int ct__back_to_back(ct_point *point, int index)
{
    ct_choice_state *state = &point->states[index];
    const ct_choice *choice = &point->request->choices[index];
    double fitting = 0.1 * point->request->box_s / (state->estimate_s + 1e-9);
    int calls = state->estimate_s > point->request->box_s ? 1 : fitting < 3 ? 3 : fitting > 50 ? 50 : (int)fitting;
    CT_TRY(ct_point_give_back(point, index));
    CT_TRY(ct_synchronise(point->group->comm));
    int code = ct_point_steer(point, choice, true);
    double start = MPI_Wtime();
    for (int i = 0; i < calls && code == MPI_SUCCESS; i++)
        code = ct_call_run(point->call, state->comm);
    double own = (MPI_Wtime() - start) / calls;
    point->inside_s += own * calls;
    ct_keep_first(&code, ct_point_steer(point, choice, false));
    state->cost_s += own * calls;
    state->back_to_back_s = own; /* this rank's until the answer is made */
    return code;
}

/* `mean_s`, `back_to_back_s`: by choice. */
static void ct__answer(const ct_point *point, const double *mean_s, const double *back_to_back_s, ct_text *answer)
{
    static const char *const MORE[] = {"b2b", "skewed", "kept", "untouched"}; /* where they were taken */
    const ct_request *request = point->request;
    for (int i = 0; i < request->choice_count; i++) {
        const ct_choice_state *state = &point->states[i];
        ct__add(answer, "result id=%ld choice=%d status=%s cost_us=%.1f", request->id, i, CT__STATUS[state->status],
                    state->cost_s * 1e6);
        if (state->detail[0] != '\0')
            ct__add(answer, " detail=%s", state->detail);
        if (state->status == CT_OK) {
            ct__add(answer, " osu_us=%.4f", mean_s[i] * 1e6);
            const double more_s[] = {back_to_back_s[i], state->skewed_s, state->kept_s, state->untouched_s};
            for (int k = 0; k < 4; k++)
                if (more_s[k] >= 0.0)
                    ct__add(answer, " %s_us=%.4f", MORE[k], more_s[k] * 1e6);
            if (state->faults >= 1.0)
                ct__add(answer, " faults=%.1f", state->faults);
            if (ct_call_overlaps(point->call))
                ct__add(answer, " compute_us=%.4f", point->compute_s * 1e6);
            ct__add(answer, " times_ns=");
            for (int r = 0; r < state->count; r++)
                ct__add(answer, r == 0 ? "%.0f" : ",%.0f", state->times[r] * 1e9);
        }
        ct__add(answer, "\n");
    }
}

static int ct__measure_all(ct_point *point, double *scratch)
{
    const ct_request *request = point->request;
    ct_heap_give_back(0);
    point->heap_of = -1;
    for (int i = 0; i < request->choice_count; i++) {
        double start = MPI_Wtime();
        ct_point_tell(point, i);
        CT_TRY(ct_point_attend(point));
        CT_TRY(ct__start(point, i));
        point->states[i].cost_s += MPI_Wtime() - start;
    }
    ct_point_give_up(point);
    CT_TRY(ct_point_repeat(point, scratch));
    for (int i = 0; i < request->choice_count; i++) {
        const ct_choice_state *state = &point->states[i];
        if (state->status != CT_OK || state->dominated || state->hopeless || ct_point_once(point, state->estimate_s))
            continue;
        ct_point_alive(point);
        CT_TRY(ct__back_to_back(point, i));
        if (request->skew_s > 0.0) {
            CT_TRY(ct_point_late(point, i));
            CT_TRY(ct_point_untouched(point, i));
        }
        CT_TRY(ct_point_keep(point, i));
    }
    alarm(0);
    return MPI_SUCCESS;
}

/* Of all repetitions of all choices, twice, and of one number more for each choice. */
static size_t ct__times_bytes(const ct_request *request)
{
    return sizeof(double) * (2 * (size_t)request->most + 1) * (size_t)request->choice_count;
}

/* What a point is kept in while it is measured. False where there is no memory for it; `ct__release` takes either. */
static bool ct__reserve(ct_point *point, double **times, double **sums)
{
    size_t most = (size_t)point->request->most, choices = (size_t)point->request->choice_count;
    point->states = calloc(choices, sizeof *point->states);
    point->order = malloc(choices * sizeof *point->order);
    *times = ct_heap_apart(ct__times_bytes(point->request));
    *sums = calloc(4 * choices, sizeof **sums);
    if (point->states == NULL || point->order == NULL || *times == NULL || *sums == NULL)
        return false;
    for (size_t i = 0; i < choices; i++) {
        point->states[i].times = *times + i * most;
        point->states[i].back_to_back_s = point->states[i].skewed_s = -1.0;
        point->states[i].own_faults = point->states[i].faults = -1.0;
        point->states[i].kept_s = point->states[i].untouched_s = -1.0;
    }
    return true;
}

static void ct__release(ct_point *point, double *times, double *sums)
{
    free(sums);
    ct_heap_apart_free(times, ct__times_bytes(point->request));
    free(point->order);
    free(point->states);
    if (point->call != NULL)
        ct_call_free(point->call);
}

/* There is no such call, or a rank lacks the memory for it: `why`, in one word. */
static void ct__decline(const ct_request *request, const char *why, ct_text *answer)
{
    for (int i = 0; i < request->choice_count; i++)
        ct__add(answer, "result id=%ld choice=%d status=inapplicable cost_us=0 detail=%s\n", request->id, i, why);
    ct__add(answer, "done id=%ld wall_us=0 inside_us=0\n", request->id);
}

static int ct__measure_and_answer(ct_point *point, double *scratch, double *sums, ct_text *answer)
{
    const ct_request *request = point->request;
    int choices = request->choice_count;
    char others[256];
    double start = MPI_Wtime(), begun = ct_watch_begin(point->group->watch, point->group->leads);
    point->noticed_s = start;
    CT_TRY(ct_group_reserve(point->group, request));
    CT_TRY(ct_point_calibrate(point));
    CT_TRY(ct__measure_all(point, scratch));
    point->group->fresh = false;
    double *longest = sums + 2 * choices;
    for (int i = 0; i < choices; i++) {
        const ct_choice_state *state = &point->states[i];
        sums[i] = state->count > 0 ? state->own_sum_s / state->count / point->size : 0.0;
        longest[i] = state->back_to_back_s;
    }
    CT_TRY(MPI_Reduce(sums, sums + choices, choices, MPI_DOUBLE, MPI_SUM, 0, point->group->comm));
    CT_TRY(MPI_Reduce(longest, longest + choices, choices, MPI_DOUBLE, MPI_MAX, 0, point->group->comm));
    if (point->rank == 0) {
        ct__answer(point, sums + choices, longest + choices, answer);
        ct__add(answer, "done id=%ld wall_us=%.1f inside_us=%.1f", request->id, (MPI_Wtime() - start) * 1e6,
                    point->inside_s * 1e6);
    }
    CT_TRY(ct_watch_tell(point->group->watch, point->group->leads, point->group->node, begun, point->group->comm, others,
                         sizeof others));
    if (point->rank == 0)
        ct__add(answer, "%s\n", others);
    return MPI_SUCCESS;
}

int ct_measure(const ct_request *request, ct_group *group, ct_notice *notice, ct_attend *attend, void *context,
               ct_text *answer)
{
    char why[160];
    double *times = NULL, *sums = NULL;
    ct_point point = {
        .request = request, .group = group, .random = request->seed * 2 + 1, .notice = notice, .attend = attend, .context = context};
    MPI_Comm_rank(group->comm, &point.rank);
    MPI_Comm_size(group->comm, &point.size);
    point.call = ct_call_make(request, group->part, why, sizeof why);
    /* Memory may be had on some ranks only; then nobody measures. */
    int have[2] = {point.call != NULL && ct__reserve(&point, &times, &sums), ct_heap_moves()}, all_have[2] = {0};
    int code = MPI_Allreduce(have, all_have, 2, MPI_INT, MPI_MIN, group->comm);
    point.heap_moves = all_have[1];
    if (code == MPI_SUCCESS && all_have[0])
        code = ct__measure_and_answer(&point, times + (size_t)request->most * (size_t)request->choice_count, sums, answer);
    else if (point.rank == 0)
        ct__decline(request, point.call != NULL ? "no-memory-on-a-rank" : why, answer);
    ct__release(&point, times, sums);
    return code;
}
