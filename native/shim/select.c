/* The module: which rule holds for a call, and how the library is made to do as it says. */
#define _POSIX_C_SOURCE 200809L
#include "measure.h"
#include "mock_ups.h"
#include "private_comm.h"
#include "select.h"
#include "rules.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void ct__say(const char *what)
{
    if (ct_job.rank == 0)
        fprintf(stderr, "colltune: the live selector is off: %s\n", what);
}

/* The text that rank 0 reads, on all ranks; NULL where it cannot. All ranks get the same: a rank with other rules would
 * run another algorithm. */
char *ct_select_read(const char *path)
{
    size_t length = 0;
    char *text = ct_job.rank == 0 ? ct_rules_load(path, &length) : NULL;
    int bytes = (int)length;
    if (PMPI_Bcast(&bytes, 1, MPI_INT, 0, ct_job.comm) != MPI_SUCCESS)
        bytes = 0;
    if (ct_job.rank != 0 && bytes > 0)
        text = malloc((size_t)bytes + 1);
    if (!ct_all(ct_job.comm, text != NULL && bytes > 0) || PMPI_Bcast(text, bytes, MPI_BYTE, 0, ct_job.comm) != MPI_SUCCESS) {
        free(text);
        return NULL;
    }
    text[bytes] = '\0';
    return text;
}

/* Reads the rules at `path` into a table; false, with the reason in `why`. */
static bool ct__read(const char *path, ct_select_rules *table, char why[CT_RULES_WHY])
{
    char *text = ct_select_read(path);
    if (text == NULL)
        snprintf(why, CT_RULES_WHY, "%.*s cannot be read", CT_RULES_WHY - 20, path == NULL ? "the rules" : path);
    bool fine = text != NULL && ct_select_parse(text, table, why, CT_RULES_WHY);
    free(text);
    return fine;
}

/* Whether choices may be tried where the rules say nothing: the first rank is told. */
static bool ct__has_candidates(const char *path)
{
    int have = path != NULL && ct_measure_risk() > 0.0;
    return PMPI_Bcast(&have, 1, MPI_INT, 0, ct_job.comm) == MPI_SUCCESS && have;
}

static bool ct__start(void)
{
    if (ct_job.threads_multiple) {
        ct__say("the program asked for MPI_THREAD_MULTIPLE, and a setting would reach the calls of its other threads");
        return false;
    }
    char why[CT_RULES_WHY] = "MPI_T cannot be used", other[CT_RULES_WHY];
    const char *candidates = getenv("COLLTUNE_CANDIDATES");
    int provided;
    bool opened = MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS;
    /* All ranks read both, whatever this one could read. */
    bool fine = ct__read(getenv("COLLTUNE_SELECT"), ct_select_table.proven, opened ? why : other) && opened;
    ct_select_first_candidate = ct_select_choice_count;
    if (ct__has_candidates(candidates))
        fine = ct__read(candidates, ct_select_table.candidates, fine ? why : other) && fine;
    bool all = ct_all(ct_job.comm, fine);
    if (!all) {
        ct__say(fine ? "another rank cannot use the rules" : why);
        if (opened)
            MPI_T_finalize();
    }
    return all;
}

/* What a table says of a call, and the size by which it was found; NULL: the library's own. */
static const ct_select_choice *ct__find(const ct_call *call, const ct_select_rules *table, MPI_Count *size)
{
    const ct_comm *comm = call->known;
    MPI_Count count;
    int at = 0;
    while (at < table->count && (comm->ppn > table->rules[at].max_ppn || comm->size > table->rules[at].max_ranks))
        at = table->rules[at].next_shape;
    if (at == table->count || !ct_select_measure(call, table->basis, size, &count))
        return NULL;
    while (at < table->count && *size > table->rules[at].max_size)
        at++; /* the rules of a shape end with one for every size */
    if (at == table->count)
        return NULL;
    const ct_select_rule *rule = &table->rules[at];
    if (rule->choice < 0 || !ct_select_fits(call, &ct_select_choices[rule->choice].needs, count))
        return NULL;
    return &ct_select_choices[rule->choice];
}

/* The choice for a call: the proven one, or with `candidates` one that may be tried where there is none. Rules hold for the
 * shapes that were measured: all nodes alike, all in the job. */
static const ct_select_choice *ct__choose(const ct_call *call, bool candidates, MPI_Count *size)
{
    int kind = ct_select_kind(call);
    const ct_select_rules *proven = &ct_select_table.proven[kind], *open = &ct_select_table.candidates[kind];
    const ct_comm *comm = call->known;
    if ((proven->count == 0 && open->count == 0) || comm == NULL || comm->remote_size > 0 || comm->nodes == 0 || !comm->even)
        return NULL;
    const ct_select_choice *choice = ct__find(call, proven, size);
    return choice == NULL && candidates ? ct__find(call, open, size) : choice;
}

const ct_select_choice *ct_select_choose(const ct_call *call)
{
    MPI_Count size;
    return ct__choose(call, false, &size);
}

/* The experiment may have the library's own in place of the choice. It times blocking calls: what a program sees of the others
 * is not in the call. A call that the library cannot be made to do by the choice is none of the experiment's. */
static void ct__before(ct_call *call)
{
    MPI_Count size = 0;
    bool blocking = call->form == CT_BLOCKING;
    const ct_select_choice *choice = ct__choose(call, blocking, &size);
    if (choice == NULL || (blocking && ct_measure_by_default(call, (int)(choice - ct_select_choices), size,
                                                             ct_select_is_candidate(choice))))
        return;
    if (ct_back_end_begin(call, choice))
        call->choice = choice;
    else
        call->cell = NULL;
}

/* Makes the call of others, where a mock-up is chosen that takes it. Errors come back as codes, and a call that is refused is
 * made again by the library's own, so that the program hears of no other (call.c). */
static bool ct__by_mock_up(ct_call *c, int *code)
{
    MPI_Count total, count;
    int which = c->function == CT_GATHER ? CT_MOCK_UP_GATHER : c->function == CT_SCATTER ? CT_MOCK_UP_SCATTER : CT_MOCK_UPS;
    if (c->form != CT_BLOCKING || which == CT_MOCK_UPS || ct_mock_up_get((ct_mock_up)which) == 0 ||
        !ct_select_measure(c, CT_BASIS_TOTAL, &total, &count) || !ct_mock_up_takes((ct_mock_up)which, total))
        return false;
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    PMPI_Comm_get_errhandler(c->comm, &handler);
    PMPI_Comm_set_errhandler(c->comm, MPI_ERRORS_RETURN);
    int sent = (int)c->send_count, got = (int)c->recv_count; /* of blocks of few bytes */
    *code = (which == CT_MOCK_UP_GATHER ? ct_mock_up_gather : ct_mock_up_scatter)(c->send, sent, c->send_type, c->recv, got,
                                                                                  c->recv_type, c->root, c->comm);
    PMPI_Comm_set_errhandler(c->comm, handler);
    ct_errhandler_release(handler);
    return c->elsewhere = true;
}

static void ct__after(ct_call *call, int code)
{
    (void)code;
    ct_back_end_end(call, call->choice);
}

static bool ct__wants(ct_function function, ct_form form)
{
    int kind = ct_select_kind(&(ct_call){.function = function, .form = form});
    return ct_select_table.proven[kind].count > 0 || ct_select_table.candidates[kind].count > 0;
}

static void ct__stop(void) { MPI_T_finalize(); }

const ct_module ct_select_module = {
    .start = ct__start,
    .wants = ct__wants,
    .before = ct__before,
    .carry_out = ct__by_mock_up,
    .after = ct__after,
    .comm_freed = ct_back_end_freed,
    .stop = ct__stop,
};

ct_select_choice ct_select_choices[CT_SELECT_CHOICES];
int ct_select_choice_count, ct_select_first_candidate = CT_SELECT_CHOICES;
ct_select_tables ct_select_table;

/* What follows the beginning of `word`, or NULL if that is another. */
static const char *ct__behind(const char *word, const char *beginning)
{
    size_t length = strlen(beginning);
    return strncmp(word, beginning, length) == 0 ? word + length : NULL;
}

static bool ct__parse_needs(char *text, ct_select_needs *needs)
{
    static const char *const NAMES[] = {"power-of-two", "commutative", "builtin-op", "count-ge-pof2", "regular-counts",
                                        "not-in-place", "in-place", "parent-comm", "one-node", "two-ranks",
                                        "even-ranks", "count-ge-ranks"};
    enum { COUNT = sizeof NAMES / sizeof *NAMES };
    *needs = (ct_select_needs){0};
    char *rest = NULL;
    for (char *word = strtok_r(text, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        const char *leaders = ct__behind(word, "leaders-"), *node = ct__behind(word, "node-");
        const char *name = leaders != NULL ? leaders : node != NULL ? node : word;
        unsigned *of = leaders != NULL ? &needs->leaders : node != NULL ? &needs->node : &needs->whole;
        int i = 0;
        while (i < COUNT && strcmp(name, NAMES[i]) != 0)
            i++;
        if (i == COUNT)
            return false;
        *of |= 1u << i;
    }
    return true;
}

static bool ct__parse_settings(char *settings, ct_select_choice *choice, char *why, size_t why_size)
{
    char *name, *value;
    long long number;
    while (ct_rules_setting(&settings, &name, &value)) {
        if (value == NULL || choice->count == CT_SELECT_SETTINGS || !ct_rules_number(value, INT_MIN, INT_MAX, &number))
            return snprintf(why, why_size, "choice %d has settings that cannot be read", ct_select_choice_count), false;
        ct_setting *setting = &choice->settings[choice->count++];
        *setting = (ct_setting){.variable = ct_variable_find(name), .value = (int)number};
        if (setting->variable < 0)
            return snprintf(why, why_size, "this MPI has no control variable %s", name), false;
    }
    return true;
}

static bool ct__parse_choice(const ct_rules_text *text, char *why, size_t why_size)
{
    if (ct_select_choice_count == CT_SELECT_CHOICES)
        return snprintf(why, why_size, "there are more than %d choices", CT_SELECT_CHOICES), false;
    ct_select_choice *choice = &ct_select_choices[ct_select_choice_count];
    if (!ct__parse_needs(text->needs, &choice->needs))
        return snprintf(why, why_size, "choice %d has a need that is not known", ct_select_choice_count), false;
    if (!ct__parse_settings(text->settings, choice, why, why_size))
        return false;
    ct_select_choice_count++;
    return true;
}

/* "bcast", or "ibcast" for the other forms. */
static bool ct__parse_collective(const ct_rules_text *text, ct_select_rules table[CT_SELECT_KINDS],
                                 ct_select_rules **rules)
{
    static const char *const BASES[] = {"none", "message", "total"};
    *rules = NULL;
    for (int f = 0; f < CT_FUNCTIONS; f++) {
        const char *name = ct_function_name((ct_function)f);
        if (strcmp(text->collective, name) == 0)
            *rules = &table[f];
        else if (text->collective[0] == 'i' && strcmp(text->collective + 1, name) == 0)
            *rules = &table[CT_FUNCTIONS + f];
    }
    for (int b = 0; b < 3 && *rules != NULL; b++)
        if (strcmp(text->basis, BASES[b]) == 0)
            return (*rules)->basis = (ct_basis)b, true;
    return false;
}

/* A rule of the selector has upper bounds alone: those before it have decided what lies below. */
static bool ct__add_rule(const ct_rules_text *text, int first_choice, ct_select_rules *rules)
{
    if (text->ppn.low > 0 || text->ranks.low > 0 || text->size.low > 0 || text->fill != 0)
        return false;
    ct_select_rule *larger = realloc(rules->rules, sizeof *larger * (size_t)(rules->count + 1));
    if (larger == NULL)
        return false;
    rules->rules = larger;
    ct_select_rule *rule = &rules->rules[rules->count++];
    *rule = (ct_select_rule){(long)text->ppn.high, (long)text->ranks.high, (MPI_Count)text->size.high,
                             text->choice < 0 ? -1 : first_choice + text->choice, rules->count};
    for (int i = rules->count - 2; i >= 0 && larger[i].max_ppn == rule->max_ppn && larger[i].max_ranks == rule->max_ranks; i--)
        larger[i].next_shape = rules->count;
    return true;
}

bool ct_select_parse(char *content, ct_select_rules table[CT_SELECT_KINDS], char *why, size_t why_size)
{
    int first_choice = ct_select_choice_count;
    ct_rules_text text;
    ct_select_rules *rules = NULL;
    bool fine = true;
    ct_rules_begin(&text, content);
    for (ct_rules_kind kind; fine && (kind = ct_rules_next(&text)) != CT_RULES_END;) {
        snprintf(why, why_size, "line %d of the rules cannot be read", text.line);
        if (kind == CT_RULES_FAULT)
            return snprintf(why, why_size, "%s", text.why), false;
        fine = kind == CT_RULES_CHOICE       ? ct__parse_choice(&text, why, why_size)
               : kind == CT_RULES_COLLECTIVE ? ct__parse_collective(&text, table, &rules)
                                             : ct__add_rule(&text, first_choice, rules);
    }
    return fine;
}
