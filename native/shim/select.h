/* The live selector: the rules of a tuning, looked up in every call.
 *
 * A choice depends only on what is the same on all ranks of a call: the communicator's shape and the size that all ranks
 * agree on. Where the library takes control variables at the call (MPICH) they are written before it and put back after
 * it; where it takes them when a communicator is made (Open MPI) the call is made on a communicator of the same ranks
 * that was made under them, but for non-blocking calls: Open MPI's libnbc takes its variables at the call, too.
 *
 * Rules of a non-blocking collective ("ibcast") hold for its persistent form as well, when the request is made: both
 * libraries make the one as they make the other. */
#pragma once

#include "rules.h"
#include "shim.h"
#include "variables.h"

enum { CT_SELECT_SETTINGS = 12, CT_SELECT_CHOICES = CT_RULES_CHOICES };

typedef enum {
    CT_NEED_POWER_OF_TWO = 1 << 0, CT_NEED_COMMUTATIVE = 1 << 1, CT_NEED_BUILTIN_OP = 1 << 2,
    CT_NEED_COUNT_GE_POF2 = 1 << 3, CT_NEED_REGULAR_COUNTS = 1 << 4, CT_NEED_NOT_IN_PLACE = 1 << 5,
    CT_NEED_IN_PLACE = 1 << 6, CT_NEED_PARENT_COMM = 1 << 7, CT_NEED_ONE_NODE = 1 << 8, CT_NEED_TWO_RANKS = 1 << 9,
    CT_NEED_EVEN_RANKS = 1 << 10, CT_NEED_COUNT_GE_RANKS = 1 << 11
} ct_need;

/* Preconditions, bits of ct_need: of the call, and of the calls that a composition makes below it, between one rank of
 * each node and among the ranks of each node. */
typedef struct {
    unsigned whole, leaders, node;
} ct_select_needs;

typedef struct {
    ct_select_needs needs;
    int count;
    ct_setting settings[CT_SELECT_SETTINGS];
} ct_select_choice;

typedef struct {
    long max_ppn, max_ranks; /* LONG_MAX: no bound */
    MPI_Count max_size;      /* in bytes, of the basis; the largest value: no bound */
    int choice;              /* -1: the library's own */
    int next_shape;          /* the first rule behind it that has other bounds of ppn or ranks */
} ct_select_rule;

/* Which rules a call has: those of its function, or behind them those of the non-blocking form. */
enum { CT_SELECT_KINDS = 2 * CT_FUNCTIONS };
static inline int ct_select_kind(const ct_call *call)
{
    return (int)call->function + (call->form == CT_BLOCKING ? 0 : CT_FUNCTIONS);
}

/* The size that a collective's rules compare. */
typedef enum { CT_BASIS_NONE, CT_BASIS_MESSAGE, CT_BASIS_TOTAL } ct_basis;

typedef struct {
    ct_basis basis;
    int count;
    ct_select_rule *rules; /* the first that holds decides */
} ct_select_rules;

extern ct_select_choice ct_select_choices[CT_SELECT_CHOICES];
extern int ct_select_choice_count, ct_select_first_candidate;
static inline bool ct_select_is_candidate(const ct_select_choice *choice)
{
    return choice - ct_select_choices >= ct_select_first_candidate;
}
/* By kind: the rules, and where those leave a call to the library, choices that are not proven (candidates). */
typedef struct {
    ct_select_rules proven[CT_SELECT_KINDS], candidates[CT_SELECT_KINDS];
} ct_select_tables;

extern ct_select_tables ct_select_table;

/* Reads rules into one of the tables; false, with a reason in `why`, for text that cannot be read. Choices are numbered on
 * from those of a text that was read before. */
bool ct_select_parse(char *text, ct_select_rules table[CT_SELECT_KINDS], char *why, size_t why_size);

/* For the module that counts: the text of rules, on all ranks, and the choice for a call; NULL: the library's own. */
char *ct_select_read(const char *path);
const ct_select_choice *ct_select_choose(const ct_call *call);

/* The size of the call in bytes in a basis, and its elements; false: it cannot be told alike on all ranks. */
bool ct_select_measure(const ct_call *call, ct_basis basis, MPI_Count *size, MPI_Count *count);
/* Whether the call meets `needs`; `count`: its elements. */
bool ct_select_fits(const ct_call *call, const ct_select_needs *needs, MPI_Count count);

/* How the library that this was compiled for is made to follow a choice (select_back_end.c). Begins a call by it;
 * false, on all ranks alike: it runs by default. Ends any call; `choice`: what it was begun by, or NULL. */
bool ct_back_end_begin(ct_call *call, const ct_select_choice *choice);
void ct_back_end_end(ct_call *call, const ct_select_choice *choice);
void ct_back_end_freed(ct_comm *comm);
