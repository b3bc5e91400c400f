/* The module: which rule holds for a call, and how the library is made to do as it says. */
#include "measure.h"
#include "mock_ups.h"
#include "private_comm.h"
#include "select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a communicator: where the rules of its shape begin, by kind of call; -1: it has none. */
typedef struct {
    int proven[CT_SELECT_KINDS], candidates[CT_SELECT_KINDS];
#ifdef OPEN_MPI
    MPI_Comm variants[CT_SELECT_CHOICES]; /* by choice; MPI_COMM_NULL until it is needed */
    bool failed[CT_SELECT_CHOICES];       /* its variant could not be made */
    const ct_select_choice *due;          /* whose variant is to be made after this call */
#endif
} ct__shape;

static void ct__say(const char *what)
{
    if (ct_job.rank == 0)
        fprintf(stderr, "colltune: the live selector is off: %s\n", what);
}

/* The text that rank 0 reads, on all ranks; NULL where it cannot. All ranks get the same: a rank with other rules would
 * run another algorithm. */
static char *ct__read_rules(const char *path)
{
    size_t length = 0;
    char *text = ct_job.rank == 0 ? ct_rules_load(path, &length) : NULL;
    int wanted = (int)length, have;
    if (PMPI_Bcast(&wanted, 1, MPI_INT, 0, ct_job.comm) != MPI_SUCCESS)
        wanted = 0;
    if (ct_job.rank != 0 && wanted > 0)
        text = malloc((size_t)wanted + 1);
    have = text != NULL && wanted > 0;
    int all = 0;
    if (PMPI_Allreduce(&have, &all, 1, MPI_INT, MPI_MIN, ct_job.comm) != MPI_SUCCESS || !all ||
        PMPI_Bcast(text, wanted, MPI_BYTE, 0, ct_job.comm) != MPI_SUCCESS) {
        free(text);
        return NULL;
    }
    text[wanted] = '\0';
    return text;
}

/* The choices that may be tried where the rules say nothing; none where rank 0 is not told of any. False: not read. */
static bool ct__read_candidates(char *why, size_t why_size)
{
    const char *path = getenv("COLLTUNE_CANDIDATES");
    int wanted = path != NULL && ct_measure_risk() > 0.0;
    ct_select_first_candidate = ct_select_choice_count;
    if (PMPI_Bcast(&wanted, 1, MPI_INT, 0, ct_job.comm) != MPI_SUCCESS || !wanted)
        return true;
    char *text = ct__read_rules(path);
    bool fine = text != NULL && ct_select_parse(text, ct_select_table.candidates, why, why_size);
    free(text);
    return fine;
}

static bool ct__start(void)
{
    if (ct_job.threads_multiple) {
        ct__say("the program asked for MPI_THREAD_MULTIPLE, and a setting would reach the calls of its other threads");
        return false;
    }
    char *text = ct__read_rules(getenv("COLLTUNE_SELECT")), why[CT_RULES_WHY] = "the rules cannot be read";
    int provided, fine = text != NULL && MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS, all = 0;
    bool opened = fine;
    fine = fine && ct_select_parse(text, ct_select_table.proven, why, sizeof why);
    free(text);
    bool tried = ct__read_candidates(why, sizeof why); /* on all ranks, whatever this one could read */
    fine = fine && tried;
    if (PMPI_Allreduce(&fine, &all, 1, MPI_INT, MPI_MIN, ct_job.comm) != MPI_SUCCESS)
        all = 0;
    if (!all) {
        ct__say(fine ? "another rank cannot use the rules" : why);
        if (opened)
            MPI_T_finalize();
    }
    return all != 0;
}

/* Where the rules of this communicator's shape begin. */
static int ct__first(const ct_comm *comm, const ct_select_rules *table)
{
    int i = 0;
    while (i < table->count && (comm->ppn > table->rules[i].max_ppn || comm->size > table->rules[i].max_ranks))
        i++;
    /* Rules hold for the shapes that were measured: all nodes alike, all in the job. */
    bool usable = comm->remote_size == 0 && comm->nodes > 0 && comm->even && i < table->count;
    return usable ? i : -1;
}

/* What holds for a communicator as long as it lives. */
static ct__shape *ct__look(ct_comm *comm)
{
    ct__shape *shape = malloc(sizeof *shape);
    if (shape == NULL)
        return NULL;
    for (int kind = 0; kind < CT_SELECT_KINDS; kind++) {
        shape->proven[kind] = ct__first(comm, &ct_select_table.proven[kind]);
        shape->candidates[kind] = ct__first(comm, &ct_select_table.candidates[kind]);
    }
#ifdef OPEN_MPI
    for (int i = 0; i < CT_SELECT_CHOICES; i++)
        shape->variants[i] = MPI_COMM_NULL, shape->failed[i] = false;
    shape->due = NULL;
#endif
    comm->data[CT_MODULE_SELECT] = shape;
    return shape;
}

/* What `table`, whose rules for this communicator begin at `at`, says of a call, and the size by which it was found; NULL:
 * the library's own. */
static const ct_select_choice *ct__find(const ct_call *call, const ct_select_rules *table, int at, MPI_Count *size)
{
    MPI_Count count;
    if (at < 0 || !ct_select_measure(call, table->basis, size, &count))
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

/* The choice for a call: the proven one, or with `candidates` one that may be tried where there is none. */
static const ct_select_choice *ct__choose(const ct_call *call, bool candidates, MPI_Count *size)
{
    int kind = ct_select_kind(call);
    const ct_select_rules *proven = &ct_select_table.proven[kind], *open = &ct_select_table.candidates[kind];
    if ((proven->count == 0 && open->count == 0) || call->known == NULL)
        return NULL;
    ct__shape *shape = call->known->data[CT_MODULE_SELECT];
    if (shape == NULL && (shape = ct__look(call->known)) == NULL)
        return NULL;
    const ct_select_choice *found = ct__find(call, proven, shape->proven[kind], size);
    if (found == NULL && candidates)
        found = ct__find(call, open, shape->candidates[kind], size);
    return found;
}

char *ct_select_read(const char *path) { return ct__read_rules(path); }
const ct_select_choice *ct_select_choose(const ct_call *call)
{
    MPI_Count size;
    return ct__choose(call, false, &size);
}

/* What is done with this call: the experiment may have the library's own in place of the choice. It times blocking calls:
 * what a program sees of the others is not in the call. */
static const ct_select_choice *ct__decide(ct_call *call)
{
    MPI_Count size = 0;
    if (call->form != CT_BLOCKING)
        return ct__choose(call, false, &size);
    const ct_select_choice *choice = ct__choose(call, true, &size);
    if (choice != NULL && ct_measure_by_default(call, (int)(choice - ct_select_choices), size, ct_select_is_candidate(choice)))
        return NULL;
    return choice;
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
    ct_errors_release(handler);
    return c->elsewhere = true;
}

#ifdef OPEN_MPI

/* The same ranks in the same order, under the settings of a choice. Making it takes all of them, and a call that the library
 * refused is made by one alone. So the first call that meets the choice runs by default, and the ranks that have taken part
 * in it are all here when it has come back. */
static void ct__make_variant(const ct_call *call)
{
    ct__shape *shape = call->known->data[CT_MODULE_SELECT];
    const ct_select_choice *choice = shape->due;
    MPI_Comm made = MPI_COMM_NULL;
    int have, all = 0;
    shape->due = NULL;
    if (call->refused)
        return;
    int code = ct_settings_write(choice->settings, choice->count);
    have = ct_private_comm(call->comm, &made) == MPI_SUCCESS && code == MPI_SUCCESS;
    ct_settings_restore(choice->settings, choice->count);
    bool agreed = PMPI_Allreduce(&have, &all, 1, MPI_INT, MPI_MIN, call->comm) == MPI_SUCCESS && all;
    shape->failed[choice - ct_select_choices] = !agreed;
    if (agreed)
        shape->variants[choice - ct_select_choices] = made;
}

static bool ct__call_on(MPI_Comm comm, const ct_call *c, int *code)
{
    int sent = (int)c->send_count, got = (int)c->recv_count;
    switch (c->function) {
    case CT_BARRIER:
        *code = ct_real.Barrier(comm);
        return true;
    case CT_BCAST:
        *code = ct_real.Bcast(c->recv, sent, c->send_type, c->root, comm);
        return true;
    case CT_GATHER:
        *code = ct_real.Gather(c->send, sent, c->send_type, c->recv, got, c->recv_type, c->root, comm);
        return true;
    case CT_SCATTER:
        *code = ct_real.Scatter(c->send, sent, c->send_type, c->recv, got, c->recv_type, c->root, comm);
        return true;
    case CT_ALLGATHER:
        *code = ct_real.Allgather(c->send, sent, c->send_type, c->recv, got, c->recv_type, comm);
        return true;
    case CT_ALLGATHERV:
        *code = ct_real.Allgatherv(c->send, sent, c->send_type, c->recv, c->recv_counts, c->recv_displs, c->recv_type, comm);
        return true;
    case CT_ALLTOALL:
        *code = ct_real.Alltoall(c->send, sent, c->send_type, c->recv, got, c->recv_type, comm);
        return true;
    case CT_REDUCE:
        *code = ct_real.Reduce(c->send, c->recv, sent, c->send_type, c->op, c->root, comm);
        return true;
    case CT_ALLREDUCE:
        *code = ct_real.Allreduce(c->send, c->recv, sent, c->send_type, c->op, comm);
        return true;
    case CT_REDUCE_SCATTER:
        *code = ct_real.Reduce_scatter(c->send, c->recv, c->recv_counts, c->recv_type, c->op, comm);
        return true;
    case CT_REDUCE_SCATTER_BLOCK:
        *code = ct_real.Reduce_scatter_block(c->send, c->recv, got, c->recv_type, c->op, comm);
        return true;
    case CT_SCAN:
        *code = ct_real.Scan(c->send, c->recv, sent, c->send_type, c->op, comm);
        return true;
    case CT_EXSCAN:
        *code = ct_real.Exscan(c->send, c->recv, sent, c->send_type, c->op, comm);
        return true;
    default:
        return false;
    }
}

static bool ct__carry_out(ct_call *c, int *code)
{
    const ct_select_choice *choice = c->large || c->form != CT_BLOCKING ? NULL : ct__decide(c);
    if (choice == NULL)
        return false;
    if (ct_settings_ours(choice->settings, choice->count)) {
        ct_settings_write(choice->settings, choice->count);
        bool made = ct__by_mock_up(c, code);
        ct_settings_restore(choice->settings, choice->count);
        c->note[CT_MODULE_SELECT] = made ? (void *)choice : NULL;
        return made;
    }
    ct__shape *shape = c->known->data[CT_MODULE_SELECT];
    MPI_Comm comm = shape->variants[choice - ct_select_choices];
    if (comm == MPI_COMM_NULL && !shape->failed[choice - ct_select_choices])
        shape->due = choice;
    if (comm == MPI_COMM_NULL || !ct__call_on(comm, c, code))
        return false;
    c->note[CT_MODULE_SELECT] = (void *)choice; /* for the module that counts */
    return c->elsewhere = true;
}

static void ct__comm_freed(ct_comm *comm)
{
    ct__shape *shape = comm->data[CT_MODULE_SELECT];
    for (int i = 0; i < ct_select_choice_count && shape != NULL; i++)
        if (shape->variants[i] != MPI_COMM_NULL)
            PMPI_Comm_free(&shape->variants[i]); /* all ranks free the communicator, so all come here */
    free(shape);
    comm->data[CT_MODULE_SELECT] = NULL;
}

#else

static void ct__comm_freed(ct_comm *comm)
{
    free(comm->data[CT_MODULE_SELECT]);
    comm->data[CT_MODULE_SELECT] = NULL;
}

#endif

/* Settings that are read at the call. A request that is under way keeps what it was started with: both libraries list its
 * messages at the start. */
static void ct__before(ct_call *call)
{
    if (ct_settings_by_communicator(call->form != CT_BLOCKING))
        return;
    const ct_select_choice *choice = ct__decide(call);
    call->note[CT_MODULE_SELECT] = (void *)choice;
    if (choice != NULL)
        ct_settings_write(choice->settings, choice->count);
}

static void ct__after(ct_call *call, int code)
{
    (void)code;
#ifdef OPEN_MPI
    const ct__shape *shape = call->known == NULL ? NULL : call->known->data[CT_MODULE_SELECT];
    if (shape != NULL && shape->due != NULL)
        ct__make_variant(call);
#endif
    if (ct_settings_by_communicator(call->form != CT_BLOCKING))
        return;
    const ct_select_choice *choice = call->note[CT_MODULE_SELECT];
    if (choice != NULL)
        ct_settings_restore(choice->settings, choice->count);
}

static void ct__stop(void) { MPI_T_finalize(); }

const ct_module ct_select_module = {
    .name = "select",
    .variable = "COLLTUNE_SELECT",
    .start = ct__start,
    .before = ct__before,
#ifdef OPEN_MPI
    .carry_out = ct__carry_out,
#else
    .carry_out = ct__by_mock_up,
#endif
    .after = ct__after,
    .comm_freed = ct__comm_freed,
    .stop = ct__stop,
};
