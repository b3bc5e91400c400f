/* One point: all its choices, interleaved in random order, each until its median is known well enough. */
#include "agent.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Calls of one choice in a row: an application repeats a call too, and the first after a change runs colder. */
enum { CT__BURST = 4 };
/* MPICH's shared-memory collectives start only after 5 calls on a communicator. */
enum { CT__FRESH_WARM_UP = 8 };
/* A choice whose interval lies above this multiple of the best one's is not measured more finely. */
static double const CT__DOMINATED = 1.5;
/* Time boxes that the fewest repetitions may take. */
static double const CT__PATIENCE = 20.0;
/* A call that takes longer than this many time boxes is dear, and one that was this many times slower than the best in
 * its trial is hopeless: what is both is timed once. */
static double const CT__DEAR = 4.0, CT__HOPELESS = 3.0;
/* Seconds between two looks at what others want of rank 0. */
static double const CT__ATTEND_S = 1e-3;

typedef enum { CT__OK, CT__INAPPLICABLE, CT__WRONG } ct__status;
static const char *const CT__STATUS[] = {"ok", "inapplicable", "wrong"};

typedef struct {
    ct__status status;
    char detail[160];
    MPI_Comm comm;  /* that the choice runs on */
    bool live;      /* still being measured */
    bool dominated;
    bool hopeless;  /* too slow in its trial to be worth more than one repetition */
    double *times;  /* [most] slowest rank's time by repetition, s; this rank's own until reduced */
    int count;      /* repetitions done */
    double estimate_s;
    double own_sum_s; /* over this rank's repetitions */
    double back_to_back_s; /* < 0: not taken */
    double cost_s;
} ct__state;

typedef struct {
    const ct_request *request;
    ct_group *group;
    ct_call *call;
    ct__state *states;
    int rank, size;
    uint64_t random;
    double inside_s; /* time of this rank in calls of the collective, all of them */
    ct_attend *attend;
    void *context;
    double attended_s; /* when it was called last */
} ct__point;

void ct_text_add(ct_text *text, const char *format, ...)
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

int ct_synchronise(MPI_Comm comm)
{
    int rank, size, code = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int distance = 1; distance < size && code == MPI_SUCCESS; distance *= 2)
        code = MPI_Sendrecv(NULL, 0, MPI_BYTE, (rank + distance) % size, CT_TAG_SYNC, NULL, 0, MPI_BYTE,
                            (rank - distance + size) % size, CT_TAG_SYNC, comm, MPI_STATUS_IGNORE);
    return code;
}

/* xorshift64*: all ranks draw the same numbers, so all shuffle alike. */
static unsigned ct__draw(uint64_t *state, unsigned below)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (unsigned)((*state * 2685821657736338717ULL) >> 33) % below;
}

/* Makes the next calls on the choice's communicator run as it says; `on` false: no more. */
static int ct__steer(const ct_choice *choice, bool on)
{
    if (ct_control_by_communicator())
        return MPI_SUCCESS;
    return on ? ct_control_write(choice->settings, choice->setting_count)
              : ct_control_restore(choice->settings, choice->setting_count);
}

static int ct__run_one(ct__point *point, int index, double *elapsed_s)
{
    const ct_choice *choice = &point->request->choices[index];
    int code = point->request->osu ? MPI_Barrier(point->group->comm) : ct_synchronise(point->group->comm);
    if (code == MPI_SUCCESS)
        code = ct__steer(choice, true);
    double start = MPI_Wtime();
    if (code == MPI_SUCCESS)
        code = ct_call_run(point->call, point->states[index].comm);
    *elapsed_s = MPI_Wtime() - start;
    point->inside_s += *elapsed_s;
    int restored = ct__steer(choice, false);
    return code == MPI_SUCCESS ? restored : code;
}

/* First call of a choice: is it what was asked for, and is its result right? */
static ct__status ct__try(ct__point *point, int index, double *elapsed_s)
{
    const ct_choice *choice = &point->request->choices[index];
    *elapsed_s = 0.0;
    if (choice->missing[0] != '\0')
        return CT__INAPPLICABLE;
    ct_call_poison(point->call);
    if (ct__run_one(point, index, elapsed_s) != MPI_SUCCESS)
        return CT__INAPPLICABLE;
    return ct_call_correct(point->call) ? CT__OK : CT__WRONG;
}

/* All ranks learn how a choice fared on the worst of them, and its longest time. */
static int ct__agree(ct__point *point, int index, ct__status own_status, double own_s, double *longest_s)
{
    ct__state *state = &point->states[index];
    const char *missing = point->request->choices[index].missing;
    double own[3] = {own_status, own_status == CT__WRONG ? point->rank : -1, own_s}, worst[3];
    int code = MPI_Allreduce(own, worst, 3, MPI_DOUBLE, MPI_MAX, point->group->comm);
    if (code != MPI_SUCCESS)
        return code;
    *longest_s = worst[2];
    state->status = (ct__status)worst[0];
    if (state->status == CT__WRONG)
        snprintf(state->detail, sizeof state->detail, "wrong-result-on-rank-%d", (int)worst[1]);
    else if (state->status == CT__INAPPLICABLE && missing[0] != '\0')
        snprintf(state->detail, sizeof state->detail, "no-control-variable:%s", missing);
    else if (state->status == CT__INAPPLICABLE)
        snprintf(state->detail, sizeof state->detail, "refused-by-the-library");
    return MPI_SUCCESS;
}

/* All ranks must make the same calls, so every number of calls follows from values that all ranks agreed on. */
static int ct__start(ct__point *point, int index)
{
    ct__state *state = &point->states[index];
    const ct_request *request = point->request;
    double shortest_s, elapsed_s;
    int code = ct_group_variant(point->group, &request->choices[index], &state->comm);
    if (code != MPI_SUCCESS)
        return code;
    ct__status own = ct__try(point, index, &elapsed_s);
    code = ct__agree(point, index, own, elapsed_s, &shortest_s);
    if (code != MPI_SUCCESS || state->status != CT__OK)
        return code;
    int calls = shortest_s * request->warm_up > request->box_s ? 1 : request->warm_up;
    if (point->group->fresh && index == 0)
        calls = CT__FRESH_WARM_UP;
    for (int i = 0; i < calls && code == MPI_SUCCESS; i++) {
        if (i == calls - 1) /* shared-memory collectives start late, so their result is seen only now */
            ct_call_poison(point->call);
        code = ct__run_one(point, index, &elapsed_s);
        shortest_s = elapsed_s < shortest_s ? elapsed_s : shortest_s;
    }
    if (code == MPI_SUCCESS) {
        own = ct_call_correct(point->call) ? CT__OK : CT__WRONG;
        code = ct__agree(point, index, own, shortest_s, &state->estimate_s);
    }
    state->live = state->status == CT__OK && code == MPI_SUCCESS;
    return code;
}

/* Repetitions that a choice gets at least, however long they take: fewer than asked only where they would take many
 * times its time box, as on ranks that share cores. */
static int ct__fewest(const ct__point *point, const ct__state *state)
{
    if (state->hopeless)
        return 1;
    double fitting = CT__PATIENCE * point->request->box_s / (state->estimate_s + 1e-9);
    int least = point->request->fewest < 3 ? point->request->fewest : 3;
    return fitting >= point->request->fewest ? point->request->fewest : fitting < least ? least : (int)fitting;
}

/* Of the choices that are long to wait for, those that cannot be the best. All ranks agreed on the estimates. */
static void ct__give_up(ct__point *point)
{
    double best_s = INFINITY, dear_s = CT__DEAR * point->request->box_s;
    for (int i = 0; i < point->request->choice_count; i++)
        if (point->states[i].live && point->states[i].estimate_s < best_s)
            best_s = point->states[i].estimate_s;
    for (int i = 0; i < point->request->choice_count; i++) {
        double estimate_s = point->states[i].estimate_s;
        point->states[i].hopeless = estimate_s > dear_s && estimate_s > CT__HOPELESS * best_s;
    }
}

/* Between timed calls, and not often: all ranks of this group wait meanwhile. */
static int ct__attend(ct__point *point)
{
    double now_s = MPI_Wtime();
    if (point->attend == NULL || now_s - point->attended_s < CT__ATTEND_S)
        return MPI_SUCCESS;
    point->attended_s = now_s;
    return point->attend(point->context);
}

/* One burst of every live choice, in an order drawn anew. */
static int ct__round(ct__point *point, const int *quota)
{
    int order[CT_MAX_CHOICES], count = 0, code = MPI_SUCCESS;
    for (int i = 0; i < point->request->choice_count; i++)
        if (point->states[i].live && point->states[i].count < quota[i])
            order[count++] = i;
    for (int i = count - 1; i > 0; i--) {
        int other = (int)ct__draw(&point->random, (unsigned)i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (int i = 0; i < count && code == MPI_SUCCESS; i++) {
        ct__state *state = &point->states[order[i]];
        code = ct__attend(point);
        double start = MPI_Wtime();
        for (int call = 0; call < CT__BURST && state->count < quota[order[i]] && code == MPI_SUCCESS; call++) {
            double elapsed = 0.0;
            code = ct__run_one(point, order[i], &elapsed);
            state->own_sum_s += elapsed;
            state->times[state->count++] = elapsed;
        }
        state->cost_s += MPI_Wtime() - start;
    }
    return code;
}

/* The slowest rank's time of the repetitions from `from[i]` on replaces this rank's own: one call for all choices. */
static int ct__reduce(ct__point *point, const int *from, double *scratch)
{
    int total = 0, choices = point->request->choice_count;
    for (int i = 0; i < choices; i++)
        for (int r = from[i]; r < point->states[i].count; r++)
            scratch[total++] = point->states[i].times[r];
    int code = MPI_Allreduce(MPI_IN_PLACE, scratch, total, MPI_DOUBLE, MPI_MAX, point->group->comm);
    total = 0;
    for (int i = 0; i < choices && code == MPI_SUCCESS; i++)
        for (int r = from[i]; r < point->states[i].count; r++)
            point->states[i].times[r] = scratch[total++];
    return code;
}

/* A choice that looked hopeless in its trial and then was not: the trial met a disturbance. */
static void ct__forgive(ct__point *point, double best_s)
{
    for (int i = 0; i < point->request->choice_count; i++) {
        ct__state *state = &point->states[i];
        if (state->live && state->count > 0 && state->times[0] <= CT__HOPELESS * best_s)
            state->hopeless = false;
    }
}

/* Which choices need no more repetitions. The times are the same on all ranks by now, so the verdict is too. */
static void ct__judge(ct__point *point, double *scratch)
{
    const ct_request *request = point->request;
    double best_high = INFINITY, best_s = INFINITY;
    double low[CT_MAX_CHOICES] = {0.0}, high[CT_MAX_CHOICES], middle[CT_MAX_CHOICES];
    for (int i = 0; i < request->choice_count; i++) {
        const ct__state *state = &point->states[i];
        if (state->status != CT__OK || state->count == 0)
            continue;
        memcpy(scratch, state->times, sizeof(double) * (size_t)state->count);
        middle[i] = ct_median_interval(scratch, state->count, &low[i], &high[i]);
        best_high = high[i] < best_high ? high[i] : best_high;
        best_s = middle[i] < best_s ? middle[i] : best_s;
    }
    ct__forgive(point, best_s);
    for (int i = 0; i < request->choice_count; i++) {
        ct__state *state = &point->states[i];
        if (!state->live || state->count < ct__fewest(point, state))
            continue;
        double spent = 0.0;
        for (int r = 0; r < state->count; r++)
            spent += state->times[r];
        bool known = high[i] - low[i] <= request->relative_width * middle[i];
        bool enough = known || spent >= request->box_s || state->count >= request->most || state->hopeless;
        state->dominated = !enough && low[i] > CT__DOMINATED * best_high;
        state->live = !enough && !state->dominated;
    }
}

static int ct__repeat(ct__point *point, double *scratch)
{
    const ct_request *request = point->request;
    int from[CT_MAX_CHOICES], quota[CT_MAX_CHOICES], code = MPI_SUCCESS;
    for (;;) {
        bool any = false;
        int rounds = 0;
        for (int i = 0; i < request->choice_count; i++) {
            ct__state *state = &point->states[i];
            from[i] = quota[i] = state->count;
            if (!state->live)
                continue;
            any = true;
            int grown = state->count * 2, fewest = ct__fewest(point, state);
            quota[i] = state->hopeless ? 1 : grown < fewest ? fewest : grown > request->most ? request->most : grown;
            int needed = (quota[i] - state->count + CT__BURST - 1) / CT__BURST;
            rounds = needed > rounds ? needed : rounds;
        }
        if (!any || code != MPI_SUCCESS)
            return code;
        for (int i = 0; i < rounds && code == MPI_SUCCESS; i++)
            code = ct__round(point, quota);
        if (code == MPI_SUCCESS)
            code = ct__reduce(point, from, scratch);
        ct__judge(point, scratch);
    }
}

/* Calls one after another with no synchronisation between them, as a loop in an application makes them. */
static int ct__back_to_back(ct__point *point, int index)
{
    ct__state *state = &point->states[index];
    const ct_choice *choice = &point->request->choices[index];
    double fitting = 0.1 * point->request->box_s / (state->estimate_s + 1e-9);
    int calls = state->estimate_s > point->request->box_s ? 1 : fitting < 3 ? 3 : fitting > 50 ? 50 : (int)fitting;
    int code = ct_synchronise(point->group->comm);
    if (code == MPI_SUCCESS)
        code = ct__steer(choice, true);
    double start = MPI_Wtime();
    for (int i = 0; i < calls && code == MPI_SUCCESS; i++)
        code = ct_call_run(point->call, state->comm);
    double own = (MPI_Wtime() - start) / calls;
    point->inside_s += own * calls;
    int restored = ct__steer(choice, false);
    state->cost_s += own * calls;
    if (code == MPI_SUCCESS)
        code = MPI_Allreduce(&own, &state->back_to_back_s, 1, MPI_DOUBLE, MPI_MAX, point->group->comm);
    return code == MPI_SUCCESS ? restored : code;
}

static void ct__answer(const ct__point *point, const double *mean_s, ct_text *answer)
{
    const ct_request *request = point->request;
    for (int i = 0; i < request->choice_count; i++) {
        const ct__state *state = &point->states[i];
        ct_text_add(answer, "result id=%ld choice=%d status=%s cost_us=%.1f", request->id, i, CT__STATUS[state->status],
                    state->cost_s * 1e6);
        if (state->detail[0] != '\0')
            ct_text_add(answer, " detail=%s", state->detail);
        if (state->status == CT__OK) {
            ct_text_add(answer, " osu_us=%.4f", mean_s[i] * 1e6);
            if (state->back_to_back_s >= 0.0)
                ct_text_add(answer, " b2b_us=%.4f", state->back_to_back_s * 1e6);
            ct_text_add(answer, " times_ns=");
            for (int r = 0; r < state->count; r++)
                ct_text_add(answer, r == 0 ? "%.0f" : ",%.0f", state->times[r] * 1e9);
        }
        ct_text_add(answer, "\n");
    }
}

/* An alarm ends a rank that is stuck: should the host have died too, nobody else would. */
static int ct__measure_all(ct__point *point, double *scratch, ct_notice *notice, void *context)
{
    const ct_request *request = point->request;
    int code = MPI_SUCCESS;
    for (int i = 0; i < request->choice_count && code == MPI_SUCCESS; i++) {
        double start = MPI_Wtime();
        if (point->rank == 0)
            notice(context, request->id, i);
        alarm((unsigned)request->limit_s);
        code = ct__attend(point);
        if (code == MPI_SUCCESS)
            code = ct__start(point, i);
        point->states[i].cost_s += MPI_Wtime() - start;
    }
    alarm((unsigned)request->limit_s);
    ct__give_up(point);
    if (code == MPI_SUCCESS)
        code = ct__repeat(point, scratch);
    for (int i = 0; i < request->choice_count && code == MPI_SUCCESS; i++)
        if (point->states[i].status == CT__OK && !point->states[i].dominated && !point->states[i].hopeless)
            code = ct__back_to_back(point, i);
    alarm(0);
    return code;
}

int ct_measure(const ct_request *request, ct_group *group, ct_notice *notice, ct_attend *attend, void *context,
               ct_text *answer)
{
    char why[160];
    double start = MPI_Wtime();
    ct__point point = {
        .request = request, .group = group, .random = request->seed * 2 + 1, .attend = attend, .context = context};
    MPI_Comm_rank(group->comm, &point.rank);
    MPI_Comm_size(group->comm, &point.size);
    point.call = ct_call_make(request, group->comm, why, sizeof why);
    /* Buffers may be had on some ranks only; then nobody measures. */
    int have = point.call != NULL, all_have = 0;
    int code = MPI_Allreduce(&have, &all_have, 1, MPI_INT, MPI_MIN, group->comm);
    if (code != MPI_SUCCESS || !all_have) {
        for (int i = 0; i < request->choice_count && point.rank == 0; i++)
            ct_text_add(answer, "result id=%ld choice=%d status=inapplicable cost_us=0 detail=%s\n", request->id, i,
                        have ? "no-memory-on-a-rank" : why);
        if (point.rank == 0)
            ct_text_add(answer, "done id=%ld wall_us=0 inside_us=0\n", request->id);
        if (have)
            ct_call_free(point.call);
        return code;
    }
    size_t most = (size_t)request->most, choices = (size_t)request->choice_count;
    point.states = calloc(choices, sizeof *point.states);
    double *times = malloc(sizeof(double) * most * choices * 2), *sums = calloc(2 * choices, sizeof *sums);
    if (point.states == NULL || times == NULL || sums == NULL)
        MPI_Abort(MPI_COMM_WORLD, 12); /* a few megabytes: no use in going on without them */
    for (size_t i = 0; i < choices; i++) {
        point.states[i].times = times + i * most;
        point.states[i].back_to_back_s = -1.0;
    }
    code = ct_group_reserve(group, request);
    if (code == MPI_SUCCESS)
        code = ct__measure_all(&point, times + choices * most, notice, context);
    group->fresh = false;
    for (size_t i = 0; i < choices; i++)
        sums[i] = point.states[i].count > 0 ? point.states[i].own_sum_s / point.states[i].count / point.size : 0.0;
    if (code == MPI_SUCCESS)
        code = MPI_Allreduce(sums, sums + choices, (int)choices, MPI_DOUBLE, MPI_SUM, group->comm);
    if (point.rank == 0 && code == MPI_SUCCESS) {
        ct__answer(&point, sums + choices, answer);
        ct_text_add(answer, "done id=%ld wall_us=%.1f inside_us=%.1f\n", request->id, (MPI_Wtime() - start) * 1e6,
                    point.inside_s * 1e6);
    }
    free(sums);
    free(times);
    free(point.states);
    ct_call_free(point.call);
    return code;
}
