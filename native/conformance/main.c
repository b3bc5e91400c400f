/* Runs every collective of an MPI library with every kind of legal argument, at many rank counts, in one launch,
 * and compares each result with one that was computed without the collective. See plan.h for what is run and
 * report.h for what is printed. Ends with 0, with 1 if a case failed, 2 for a bad start, 3 for a case that hung. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "report.h"
#include "plan.h"

struct ct__making {
    enum ct_comm_kind kind;
    int ranks;
    MPI_Comm base;
    struct ct_case_comm *comm;
};

static void ct__make(void *context, struct ct_verdict *verdict)
{
    const struct ct__making *making = context;
    ct_verdict_check(verdict, ct_comm_make(making->kind, making->ranks, making->base, making->comm),
                     "making the communicator");
}

/* Making a communicator calls collectives inside the library, so it is a case of its own. False where it is left out. */
static bool ct__make_comm(struct ct_case_run *run, enum ct_comm_kind kind, const struct ct_case_comm *base,
                          struct ct_case_comm *comm)
{
    char text[CT_CASE_TEXT];
    struct ct__making making = {kind, run->ranks, base->handle, comm};
    snprintf(text, sizeof text, "make_communicator comm=%s ranks=%d", ct_comm_kind_name(kind), run->ranks);
    if (kind != CT_COMM_DIRECT && ct_is_left_out(run->options, text))
        return false;
    ct_run_step(run, text, true, ct__make, &making);
    if (comm->handle == MPI_COMM_NULL)
        MPI_Abort(MPI_COMM_WORLD, 1); /* the verdict has said why, and without it nothing can follow */
    return true;
}

static void ct__replay(struct ct_case_run *run)
{
    const bool is_short = run->options->is_short;
    const int last = is_short ? CT_COMM_INTER : CT_COMM_INTER_ONE;
    struct ct_case_comm direct = {.handle = MPI_COMM_NULL};
    ct__make_comm(run, CT_COMM_DIRECT, &direct, &direct);
    ct_plan_run(run, &direct, is_short ? CT_DEPTH_SHORT : CT_DEPTH_FULL);
    for (int kind = CT_COMM_DUP; kind <= last; kind++) {
        struct ct_case_comm comm = {.handle = MPI_COMM_NULL};
        if (!ct_comm_is_possible((enum ct_comm_kind)kind, run->ranks) ||
            !ct__make_comm(run, (enum ct_comm_kind)kind, &direct, &comm))
            continue;
        ct_plan_run(run, &comm, CT_DEPTH_THIN);
        ct_comm_free(&comm);
    }
    ct_comm_free(&direct);
}

/* All ranks of the world leave it together. */
static void ct__at_all_counts(struct ct_case_run *run, int world)
{
    for (int i = 0; i < run->options->ranks; i++) {
        run->ranks = run->options->rank_counts[i];
        run->often_alone = run->options->has_often && i % 4 != 0 && i + 1 < run->options->ranks; /* all at every fourth */
        if (run->rank >= run->ranks)
            continue;
        /* With the number of cases so far, which a rank that had no part in them cannot know. */
        ct_meet_release(run->rank, run->ranks, true, &run->number);
        ct__replay(run);
    }
    ct_meet_release(run->rank, world, true, &run->number);
}

static int ct__run_all(struct ct_options *options)
{
    struct ct_case_run run = {.options = options};
    int world;
    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (options->ranks == 0)
        options->rank_counts[options->ranks++] = world;
    if (options->rank_counts[options->ranks - 1] > world) {
        if (run.rank == 0)
            fprintf(stderr, "conformance: --ranks asks for %d, but the job has %d\n",
                    options->rank_counts[options->ranks - 1], world);
        return 2;
    }
    ct_report_open(run.rank == 0, options->progress_path, options->case_limit_s);
    if (ct_types_make() != MPI_SUCCESS || ct_ops_make() != MPI_SUCCESS) {
        fprintf(stderr, "conformance: cannot make datatypes or operations\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    struct ct_verdict all_here = {0};
    ct_meet_collect(run.rank, world, &all_here); /* some start late, which is no part of what cases take */
    ct__at_all_counts(&run, world);
    if (options->is_twice) {
        ct_report_again();
        ct__at_all_counts(&run, world);
    }
    ct_types_free();
    ct_ops_free();
    return ct_report_close();
}

int main(int argc, char **argv)
{
    static struct ct_options options;
    int provided;
    if (!ct_options_parse(argc, argv, &options))
        return 2;
    if (MPI_Init_thread(&argc, &argv, options.thread_level, &provided) != MPI_SUCCESS)
        return 2;
    if (provided < options.thread_level) {
        fprintf(stderr, "conformance: this MPI does not give the thread level that was asked for\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int code = ct__run_all(&options);
    MPI_Finalize();
    return code;
}
