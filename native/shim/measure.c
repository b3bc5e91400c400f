/* The module: which call of a communicator runs by default, and what its calls took. */
#define _POSIX_C_SOURCE 200809L
#include "measure.h"
#include "switchback.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CT__CELLS = 64, CT__PERCENT = 5, CT__MOST_RISK = 100000, CT__KNOWN = 128, CT__WORDS = 13 };

/* On this rank. */
typedef struct {
    uint64_t began_ns, warm_ns, call_ns, wall_ns; /* warm_ns: in the calls that are not timed */
    uint32_t timed;
} ct__block;

/* Calls of one rule and one class of sizes on one communicator. What ranks do follows from `at` alone. */
typedef struct {
    int function, choice, bin;
    ct_switch at;
    uint64_t started_ns;
    ct__block blocks[2]; /* of the pair: tuned, by default */
    uint64_t calls[2], noted[2], least, most; /* noted: those that are in the record */
    uint64_t agree_ns, agreed_ns, agree_noted_ns; /* in all; at the end of the round before; in the record */
    ct_switch_evidence evidence; /* on the first rank */
    int record;                  /* on the first rank; -1: none */
} ct__cell;

/* Of a communicator. */
typedef struct {
    int count, room;
    ct__cell *cells; /* [room] */
} ct__state;

/* With what the calls of a choice begin that are named in COLLTUNE_EXPLORE_KNOWN. Integers alone, as there. */
typedef struct {
    int64_t choice, bin, nodes, ppn;
    ct_switch_known before;
    ct_switch_decision first;
} ct__known;

static struct {
    bool on;
    uint32_t percent; /* 0: proven choices are not measured */
    double risk;
    uint64_t job, seeds, known_count;
    ct__known known[CT__KNOWN];
    char path[1024];
} ct__experiment;

/* On the first rank of the job: the list of CHOICE/BIN/NODES/PPN/... with the fields of ct_switch_known, separated by commas. */
static uint64_t ct__parse_known(const char *text, double risk, uint64_t job)
{
    uint64_t count = 0;
    for (; text != NULL && *text != '\0' && count < CT__KNOWN; count++) {
        int64_t words[CT__WORDS];
        for (int i = 0; i < CT__WORDS; i++) {
            char *end;
            words[i] = strtoll(text, &end, 10);
            text = end + (*end != '\0');
        }
        ct__known *known = &ct__experiment.known[count];
        memcpy(known, words, sizeof words);
        known->first = ct_switch_first(&known->before, risk, job + 0x9e3779b97f4a7c15ULL * count);
    }
    return count;
}

static bool ct__start(void)
{
    const char *path = getenv("COLLTUNE_MEASURE"), *share = getenv("COLLTUNE_MEASURE_SHARE");
    const char *risk = getenv("COLLTUNE_EXPLORE_RISK"); /* in millionths */
    /* What the first rank was told holds for all. */
    uint64_t options[4] = {share == NULL ? CT__PERCENT : strtoull(share, NULL, 10), ct_now_ns(),
                           risk == NULL ? 0 : strtoull(risk, NULL, 10), 0};
    options[2] = options[2] > CT__MOST_RISK ? CT__MOST_RISK : options[2];
    if (ct_job.rank == 0 && options[2] > 0)
        options[3] = ct__parse_known(getenv("COLLTUNE_EXPLORE_KNOWN"), 1e-6 * (double)options[2], options[1]);
    if (PMPI_Bcast(options, 4, MPI_UINT64_T, 0, ct_job.comm) != MPI_SUCCESS ||
        PMPI_Bcast(ct__experiment.known, (int)(options[3] * sizeof(ct__known) / sizeof(int64_t)), MPI_INT64_T, 0, ct_job.comm) != MPI_SUCCESS ||
        !ct_all(ct_job.comm, strlen(path) < sizeof ct__experiment.path))
        return false;
    strcpy(ct__experiment.path, path);
    ct__experiment.known_count = options[3];
    ct__experiment.percent = (uint32_t)(options[0] > 50 ? 50 : options[0]);
    ct__experiment.job = options[1];
    ct__experiment.risk = 1e-6 * (double)options[2];
    ct_measure_open(ct__experiment.path, ct__experiment.job, ct__experiment.percent);
    return ct__experiment.on = true;
}

/* A rank that did not take part would run other algorithms than the rest, and hang with them. */
static void *ct__room(void *there, size_t size)
{
    void *room = realloc(there, size);
    if (room == NULL) {
        fprintf(stderr, "colltune: no memory for the experiment of run --measure\n");
        abort();
    }
    return room;
}

static ct__state *ct__state_of(ct_comm *comm)
{
    ct__state *state = comm->data[CT_MODULE_MEASURE];
    if (state != NULL)
        return state;
    comm->data[CT_MODULE_MEASURE] = state = ct__room(NULL, sizeof *state);
    *state = (ct__state){.cells = NULL};
    return state;
}

static int ct__bin(MPI_Count size)
{
    int bin = 0;
    while (size > 0)
        size /= 2, bin++;
    return bin;
}

/* Every rank has the same table, and finds the same there. */
static void ct__recall(const ct_comm *comm, ct__cell *cell)
{
    for (const ct__known *known = ct__experiment.known; known < ct__experiment.known + ct__experiment.known_count; known++)
        if (known->choice == cell->choice && known->bin == cell->bin && known->nodes == comm->nodes && known->ppn == comm->ppn) {
            ct_switch_obey(&cell->at, &known->first);
            ct_switch_expect(&cell->evidence, &known->before);
        }
}

/* NULL: there are as many already as are measured. */
static ct__cell *ct__cell_of(ct_comm *comm, int function, int choice, MPI_Count size, bool candidate)
{
    ct__state *state = ct__state_of(comm);
    int bin = ct__bin(size);
    for (int i = 0; i < state->count; i++) {
        ct__cell *cell = &state->cells[i];
        if (cell->function == function && cell->choice == choice && cell->bin == bin)
            return cell;
    }
    if (state->count == CT__CELLS)
        return NULL;
    if (state->count == state->room) {
        state->room = state->room == 0 ? 2 : 2 * state->room;
        state->cells = ct__room(state->cells, sizeof *state->cells * (size_t)state->room);
    }
    ct__cell *cell = &state->cells[state->count++];
    *cell = (ct__cell){.function = function, .choice = choice, .bin = bin, .least = UINT64_MAX, .record = -1};
    ct_switch_begin(&cell->at, candidate);
    ct__recall(comm, cell);
    return cell;
}

double ct_measure_risk(void) { return ct__experiment.on ? ct__experiment.risk : 0.0; }

bool ct_measure_by_default(ct_call *call, int choice, MPI_Count size, bool candidate)
{
    if (!ct__experiment.on || (candidate ? ct__experiment.risk <= 0.0 : ct__experiment.percent == 0))
        return candidate;
    ct__cell *cell = ct__cell_of(call->known, (int)call->function, choice, size, candidate);
    if (cell == NULL)
        return candidate;
    call->cell = cell;
    cell->least = (uint64_t)size < cell->least ? (uint64_t)size : cell->least;
    cell->most = (uint64_t)size > cell->most ? (uint64_t)size : cell->most;
    ct_switch_call now = ct_switch_look(&cell->at);
    if (now.part > CT_SWITCH_PLAIN)
        cell->started_ns = ct_now_ns();
    return now.by_default;
}

/* Waits for the other ranks at an end of the timed part of a block: by how much calls have moved the ranks apart counts to
 * the block that did it, and not to the next. Returns the time then. */
static uint64_t ct__meet(const ct_call *call, ct__cell *cell, uint64_t now_ns)
{
    ct_real.Barrier(call->comm);
    uint64_t met_ns = ct_now_ns();
    cell->agree_ns += met_ns - now_ns;
    return met_ns;
}

/* Times what belongs to a pair. */
static void ct__time(const ct_call *call, ct__cell *cell, ct_switch_call now)
{
    if (now.part == CT_SWITCH_PLAIN)
        return;
    uint64_t ended_ns = ct_now_ns(), elapsed_ns = ended_ns - cell->started_ns;
    ct__block *block = &cell->blocks[now.timed_default];
    if (now.part < CT_SWITCH_TIMED) {
        block->warm_ns += elapsed_ns;
        if (now.part == CT_SWITCH_LAST_WARM)
            block->began_ns = ct__meet(call, cell, ended_ns);
        return;
    }
    block->timed++;
    block->call_ns += elapsed_ns;
    if (now.part == CT_SWITCH_LAST)
        block->wall_ns = ct__meet(call, cell, ended_ns) - block->began_ns;
}

typedef struct {
    uint64_t call_ns[2], wall_ns[2], warm_ns;
} ct__sums;

/* On the first rank of the communicator: the record of these calls, with all that was not in it yet. NULL: no memory. */
static ct_measure_record *ct__note(const ct_comm *comm, ct__cell *cell)
{
    bool is_new = cell->record < 0;
    if (is_new) {
        ct_measure_record like = {.function = cell->function, .choice = cell->choice, .bin = cell->bin, .size = comm->size,
                                  .nodes = comm->nodes, .ppn = comm->ppn, .least = UINT64_MAX};
        cell->record = ct_measure_record_of(&like);
    }
    if (cell->record < 0)
        return NULL;
    ct_measure_record *record = ct_measure_record_at(cell->record);
    for (int i = 0; i < 2; i++) {
        record->calls[i] += cell->calls[i] - cell->noted[i];
        cell->noted[i] = cell->calls[i];
    }
    record->agree_ns += cell->agree_ns - cell->agree_noted_ns;
    cell->agree_noted_ns = cell->agree_ns;
    record->least = cell->least < record->least ? cell->least : record->least;
    record->most = cell->most > record->most ? cell->most : record->most;
    record->cells += is_new;
    return record;
}

/* On the first rank of the communicator: what comes after the round in which `pair` was measured. */
static ct_switch_decision ct__plan(ct__cell *cell, const ct_measure_pair *pair, double agree_ns, uint64_t seed)
{
    double tuned_ns = (double)pair->wall_ns[0], default_ns = (double)pair->wall_ns[1];
    if (cell->at.candidate) {
        ct_switch_trial trial = {pair->calls, {(double)pair->call_ns[0], (double)pair->call_ns[1]}, {tuned_ns, default_ns},
                                 agree_ns};
        return ct_switch_try(&cell->at, &cell->evidence, ct__experiment.risk, &trial, seed);
    }
    if (cell->at.round > 0)
        ct_switch_learn(&cell->evidence, default_ns, tuned_ns);
    double cycle_ns = (tuned_ns + default_ns) / 2.0 / (pair->calls > 0 ? pair->calls : 1);
    return ct_switch_plan(&cell->at, &cell->evidence, ct__experiment.percent, cycle_ns, agree_ns, seed);
}

/* On the first rank of the communicator: writes the pair down, and says what comes next. */
static ct_switch_decision ct__decide(const ct_comm *comm, ct__cell *cell, const ct__sums *sums)
{
    uint64_t ranks = (uint64_t)comm->size;
    uint32_t timed = cell->blocks[0].timed;
    ct_measure_pair pair = {.calls = timed, .default_first = cell->at.default_first};
    for (int i = 0; i < 2; i++) {
        pair.call_ns[i] = sums->call_ns[i] / ranks;
        pair.wall_ns[i] = sums->wall_ns[i] / ranks;
    }
    /* The first calls of another algorithm may open connections, which a short run pays for. */
    uint64_t warm = cell->at.length - ct_switch_timed(cell->at.length), usual_ns = warm * pair.call_ns[1] / (timed > 0 ? timed : 1);
    if (cell->at.candidate && sums->warm_ns / ranks > usual_ns)
        cell->agree_ns += sums->warm_ns / ranks - usual_ns;
    double agree_ns = (double)(cell->agree_ns - cell->agreed_ns);
    cell->agreed_ns = cell->agree_ns;
    bool is_pair = cell->at.round > 0; /* in the first round both blocks were alike */
    uint64_t seed = is_pair ? cell->at.seed : ++ct__experiment.seeds * 0x9e3779b97f4a7c15ULL ^ ct__experiment.job;
    ct_switch_decision decision = ct__plan(cell, &pair, agree_ns, seed);
    if (!is_pair)
        return decision;
    ct_measure_record *record = ct__note(comm, cell);
    pair.record = cell->record;
    if (record != NULL) {
        record->off += decision.off != 0;
        ct_measure_keep(&pair);
    }
    return decision;
}

/* All ranks of the communicator have made the call, so they all come here, in this order. */
static void ct__agree(const ct_call *call, ct__cell *cell)
{
    uint64_t began_ns = ct_now_ns();
    const ct__block *tuned = &cell->blocks[0], *by_default = &cell->blocks[1];
    ct__sums own = {{tuned->call_ns, by_default->call_ns}, {tuned->wall_ns, by_default->wall_ns}, tuned->warm_ns}, sums = own;
    ct_switch_decision decision = {.seed = cell->at.seed, .length = cell->at.length, .blocks = cell->at.blocks};
    ct_real.Reduce(&own, &sums, sizeof own / sizeof(uint64_t), MPI_UINT64_T, MPI_SUM, 0, call->comm);
    if (call->known->rank == 0)
        decision = ct__decide(call->known, cell, &sums);
    ct_real.Bcast(&decision, sizeof decision / sizeof(uint64_t), MPI_UINT64_T, 0, call->comm);
    ct_switch_obey(&cell->at, &decision);
    memset(cell->blocks, 0, sizeof cell->blocks);
    cell->agree_ns += ct_now_ns() - began_ns;
}

/* What the selector asks about, and no more. */
static bool ct__wants(ct_function function, ct_form form)
{
    (void)function, (void)form;
    return false;
}

static void ct__after(ct_call *call, int code)
{
    ct__cell *cell = call->cell;
    (void)code;
    if (cell == NULL || call->refused)
        return;
    ct_switch_call now = ct_switch_look(&cell->at);
    ct__time(call, cell, now);
    cell->calls[now.by_default]++;
    ct_switch_advance(&cell->at);
    if (now.ends_round)
        ct__agree(call, cell);
}

static void ct__comm_freed(ct_comm *comm)
{
    ct__state *state = comm->data[CT_MODULE_MEASURE];
    comm->data[CT_MODULE_MEASURE] = NULL;
    if (state == NULL)
        return;
    for (int i = 0; i < state->count && comm->rank == 0; i++)
        ct__note(comm, &state->cells[i]);
    free(state->cells);
    free(state);
}

/* All communicators have gone before. */
static void ct__stop(void)
{
    ct_measure_close();
    ct__experiment.on = false;
}

const ct_module ct_measure_module = {
    .start = ct__start,
    .wants = ct__wants,
    .after = ct__after,
    .comm_freed = ct__comm_freed,
    .stop = ct__stop,
};
