#include "plan.h"

#include "report.h"
#include "pattern.h"

#include <string.h>

#define CT__MOST_COUNTS (CT_MOST_SIZES * 2 + 16)
#define CT__MOST_ITEMS 16

/* An element to use: a type to move, or an operation on a type. */
struct ct__item {
    enum ct_op op;
    enum ct_type_name type;
};

/* The built-in, the commutative and the ordered operations follow each other: a selection file tells these three
 * classes apart, so every plan has one of each. */
static const struct ct__item ct__reductions[] = {
    {CT_OP_SUM, CT_TYPE_INT},
    {CT_OP_MAX, CT_TYPE_INT},
    {CT_OP_SUM, CT_TYPE_FLOAT},
    {CT_OP_MAX, CT_TYPE_FLOAT},
    {CT_OP_SUM, CT_TYPE_DOUBLE},
    {CT_OP_MAX, CT_TYPE_DOUBLE},
    {CT_OP_USER_COMMUTATIVE, CT_TYPE_INT},
    {CT_OP_USER_COMMUTATIVE, CT_TYPE_PAIR_GAPPED},
    {CT_OP_USER_COMMUTATIVE, CT_TYPE_PAIR_STRUCT},
    {CT_OP_USER_ORDERED, CT_TYPE_INT},
    {CT_OP_USER_ORDERED, CT_TYPE_PAIR},
    {CT_OP_USER_ORDERED, CT_TYPE_PAIR_VECTOR},
    {CT_OP_USER_ORDERED, CT_TYPE_PAIR_STRUCT},
    {CT_OP_USER_ORDERED, CT_TYPE_PAIR_GAPPED},
};
static const struct {
    int first, length;
} ct__classes[3] = {{0, 6}, {6, 3}, {9, 5}};
#define CT__ORDERED 2

/* at_bound: the count comes from a size in bytes, so it is tried with elements that reach it exactly. */
struct ct__count {
    int value;
    bool at_bound;
};

/* One collective on one communicator. turn: what takes turns is drawn from it. */
struct ct__plan {
    struct ct_case_run *run;
    const struct ct_case_comm *comm;
    const struct ct_collective *collective;
    enum ct_depth depth;
    unsigned turn;
};

/* Drawn rather than counted, so that no two axes keep step. The same on all ranks. */
static int ct__draw(struct ct__plan *plan, int choices)
{
    return (int)(ct_pattern_mix(plan->turn++, 0, 7, 7) % (unsigned)choices);
}

static void ct__work(void *context, struct ct_verdict *verdict)
{
    const struct ct_case *c = context;
    c->collective->run(c, verdict);
}

static void ct__run_case(struct ct__plan *plan, struct ct_case *c)
{
    char text[CT_CASE_TEXT];
    c->number = plan->run->number + 1;
    ct_case_format(c, plan->run->ranks, text);
    ct_run_step(plan->run, text, false, ct__work, c);
}

/* Whether each word of `words` is a word of `text`. */
static bool ct__has_words(const char *text, const char *words)
{
    for (size_t length; *(words += strspn(words, " ")) != '\0'; words += length) {
        length = strcspn(words, " ");
        const char *at = text;
        while (strncmp(at, words, length) != 0 || (at[length] != ' ' && at[length] != '\0')) {
            at += strcspn(at, " ");
            if (*at++ == '\0')
                return false;
        }
    }
    return true;
}

bool ct_is_left_out(const struct ct_options *options, const char *text)
{
    for (int i = 0; i < options->left_out_count; i++)
        if (ct__has_words(text, options->left_out[i]))
            return true;
    return false;
}

void ct_run_step(struct ct_case_run *run, const char *text, bool always,
                 void (*work)(void *context, struct ct_verdict *verdict), void *context)
{
    struct ct_verdict verdict = {0, 0, ""};
    run->number++;
    const struct ct_options *options = run->options;
    const bool is_asked = run->number >= options->first_case && run->number <= options->last_case;
    if (!always && (!is_asked || ct_is_left_out(options, text)))
        return;
    if (run->rank == 0)
        ct_report_start(run->number, text);
    ct_meet_release(run->rank, run->ranks, false, &run->number);
    work(context, &verdict);
    ct_meet_collect(run->rank, run->ranks, &verdict);
    if (run->rank == 0)
        ct_report_finish(run->number, text, &verdict);
}

/* Bytes of the largest buffer of a call. */
static long long ct__footprint(const struct ct__plan *plan, long long count, enum ct_type_name type)
{
    const struct ct_case_comm *comm = plan->comm;
    long long blocks = plan->collective->count_is_block ? comm->plan_ranks : 1;
    if (plan->collective->count_is_block && plan->collective->reduces && comm->inter)
        blocks *= plan->run->ranks;
    return count * blocks * (long long)ct_type_get(type)->extent;
}

static void ct__add_count(struct ct__plan *plan, struct ct__count *counts, int *n, long long value, bool at_bound)
{
    const enum ct_type_name smallest = plan->collective->reduces ? CT_TYPE_INT : CT_TYPE_BYTE;
    const long long bytes = ct__footprint(plan, value, smallest);
    for (int i = 0; i < *n; i++)
        if (counts[i].value == value)
            return;
    if (value < 0)
        return;
    if (bytes > plan->run->options->max_bytes) {
        ct_report_skip(plan->collective->name, plan->run->ranks, bytes);
        return;
    }
    counts[(*n)++] = (struct ct__count){(int)value, at_bound};
}

/* A size in bytes becomes the counts just below and just above it. */
static void ct__add_size(struct ct__plan *plan, struct ct__count *counts, int *n, long long bytes, bool total)
{
    const struct ct_collective *k = plan->collective;
    const bool shared = k->count_is_block && (total || !k->size_is_block);
    const long long unit = (k->reduces ? 4 : 1) * (shared ? plan->comm->plan_ranks : 1);
    ct__add_count(plan, counts, n, bytes / unit, true);
    ct__add_count(plan, counts, n, (bytes + unit - 1) / unit, true);
}

static int ct__list_counts(struct ct__plan *plan, struct ct__count *counts)
{
    static const long long usual_bytes[] = {20000, 1000, 300000};
    const struct ct_options *options = plan->run->options;
    const int ranks = plan->comm->plan_ranks, collective = (int)(plan->collective - ct_collectives);
    int n = 0;
    if (!plan->collective->has_data) {
        counts[n++] = (struct ct__count){0, false};
        return n;
    }
    ct__add_count(plan, counts, &n, ranks + 1, false);
    if (plan->depth != CT_DEPTH_THIN || !options->is_short)
        ct__add_count(plan, counts, &n, 1, false);
    if (plan->depth != CT_DEPTH_THIN) {
        ct__add_count(plan, counts, &n, 0, false);
        ct__add_count(plan, counts, &n, ranks - 1, false);
        ct__add_count(plan, counts, &n, ranks, false);
        for (int i = 0; i < options->size_count; i++)
            if (options->sizes[i].collective == collective)
                ct__add_size(plan, counts, &n, options->sizes[i].bytes, options->sizes[i].total);
    }
    for (int i = 0; i < (plan->depth == CT_DEPTH_FULL ? 3 : 1); i++)
        if (ct__footprint(plan, usual_bytes[i], CT_TYPE_BYTE) <= options->max_bytes)
            ct__add_size(plan, counts, &n, usual_bytes[i], false);
    return n;
}

static int ct__list_reductions(struct ct__plan *plan, bool all, bool at_bound, struct ct__item *items)
{
    int n = 0;
    for (int class = 0; class < 3; class++) {
        const struct ct__item *of_class = ct__reductions + ct__classes[class].first;
        /* With a gap at the end of an element, MPICH's reduce_scatter for ordered operations overruns its own
         * temporary buffer, whatever file it has loaded (4.x and 5.0): not a file's fault, so not tried. */
        const bool overruns = class == CT__ORDERED && plan->collective->count_is_block;
        const int length = ct__classes[class].length - overruns;
        for (int i = 0; all && i < length; i++)
            items[n++] = of_class[i];
        if (!all)
            items[n++] = of_class[at_bound ? 0 : ct__draw(plan, length)];
    }
    return n;
}

static int ct__list_items(struct ct__plan *plan, bool at_bound, struct ct__item *items)
{
    const bool all = plan->depth == CT_DEPTH_FULL && !at_bound && !plan->collective->has_shapes;
    int n = 0;
    if (!plan->collective->has_data) {
        items[n++] = (struct ct__item){CT_OP_SUM, CT_TYPE_BYTE};
        return n;
    }
    if (plan->collective->reduces)
        return ct__list_reductions(plan, all, at_bound, items);
    for (int type = 0; all && type < CT_TYPE_MOVED; type++)
        items[n++] = (struct ct__item){CT_OP_SUM, (enum ct_type_name)type};
    if (at_bound)
        items[n++] = (struct ct__item){CT_OP_SUM, CT_TYPE_BYTE};
    if (!all && (!at_bound || plan->depth == CT_DEPTH_FULL))
        items[n++] = (struct ct__item){CT_OP_SUM, (enum ct_type_name)ct__draw(plan, CT_TYPE_MOVED)};
    return n;
}

/* All choices of an axis, or one of them in turn. */
struct ct__range {
    int first, last;
};

static struct ct__range ct__axis(struct ct__plan *plan, bool exists, bool crossed, int choices)
{
    if (!exists)
        return (struct ct__range){0, 0};
    if (crossed)
        return (struct ct__range){0, choices - 1};
    int choice = ct__draw(plan, choices);
    return (struct ct__range){choice, choice};
}

/* The cases of one count with one item. */
static void ct__cross(struct ct__plan *plan, struct ct__count count, struct ct__item item)
{
    const struct ct_collective *k = plan->collective;
    const bool full = plan->depth == CT_DEPTH_FULL, inter = plan->comm->inter;
    const bool shaped = k->has_shapes && !(k->reduces && inter);
    const struct ct__range shapes =
        ct__axis(plan, shaped, !count.at_bound && (full || (plan->depth == CT_DEPTH_SHORT && !k->reduces)),
                 CT_SHAPE_COUNT);
    struct ct_case c = {.collective = k, .comm = plan->comm, .type = item.type, .op = item.op, .count = count.value};
    for (int shape = shapes.first; shape <= shapes.last; shape++) {
        const bool both = full || (plan->depth == CT_DEPTH_SHORT && !k->reduces && !k->has_shapes);
        const struct ct__range places = ct__axis(plan, k->has_in_place && !inter, both, 2);
        for (int in_place = places.first; in_place <= places.last; in_place++) {
            struct ct__range roots = ct__axis(plan, k->has_root, full && !count.at_bound && !k->reduces, CT_ROOT_COUNT);
            /* MPICH's ibcast between groups hands the data on in the other group from the root's number, not from rank 0
             * that has them, whatever file it has loaded (ibcast_inter_sched_flat.c, 5.0.2): not a file's fault. */
            if (inter && k->is_nonblocking)
                roots = (struct ct__range){CT_ROOT_FIRST, CT_ROOT_FIRST};
            for (int root = roots.first; root <= roots.last; root++) {
                c.shape = (enum ct_case_shape)shape;
                c.in_place = in_place;
                c.root = (enum ct_root)root;
                c.root_side = inter && k->has_root ? ct__draw(plan, 2) : 0;
                ct__run_case(plan, &c);
            }
        }
    }
}

void ct_plan_run(struct ct_case_run *run, const struct ct_case_comm *comm, enum ct_depth depth)
{
    static struct ct__count counts[CT__MOST_COUNTS];
    struct ct__item items[CT__MOST_ITEMS];
    struct ct__plan plan = {.run = run, .comm = comm, .depth = depth, .turn = (unsigned)run->number};
    for (int i = 0; i < CT_REPLAYED; i++) {
        const bool is_due = run->options->selected[i] && (run->options->often[i] || !run->often_alone);
        if (!is_due || (comm->inter && ct_collectives[i].scans != CT_SCAN_NOT))
            continue;
        plan.collective = &ct_collectives[i];
        const int n = ct__list_counts(&plan, counts);
        for (int k = 0; k < n; k++) {
            const int m = ct__list_items(&plan, counts[k].at_bound, items);
            for (int j = 0; j < m; j++)
                if (ct__footprint(&plan, counts[k].value, items[j].type) <= run->options->max_bytes)
                    ct__cross(&plan, counts[k], items[j]);
        }
    }
}
