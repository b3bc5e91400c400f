/* A whole MPI program on the simulated cluster of alltoallv_cluster: how long it takes there.
 *
 *     program TABLE PPN NODES NETWORK WORDS...
 *
 * TABLE: a look-up table of MPI_Alltoallv, by which the calls go as those of a preloaded libcolltune do, from the table's first call on;
 * "-": the library's own. WORDS: the program's, its name first. It is compiled with -Dmain=ct_application, and its variables are in the
 * section ct_variables (objcopy), for each rank has its own: they are exchanged where ranks enter MPI and leave it.
 *
 * The algorithms, the agreements and the reductions send their messages; what the program computes takes the processor time that it
 * takes here. The program's data do not go with the messages: a rank leaves a copy where the receivers find it, and takes as
 * long as the messages do. MPI_Alltoall is Bruck's algorithm, as MPI libraries have it for small blocks. */
#include "algorithms.h"
#include "call.h"
#include "cluster.h"
#include "sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The blocks of a call, for those who have not taken theirs. */
typedef struct ct__posted {
    struct ct__posted *next;
    int64_t number;
    int left;      /* blocks that are not empty and not taken */
    char *data;
    size_t at[]; /* by rank */
} ct__posted;

typedef struct {
    char *variables;
    ct_state state;
    int64_t exchanges;
    ct__posted *posted;
} ct__rank;

static struct {
    int argc, ppn, first_call, code;
    char **argv;
    ct_table_rules rules;
    ct__rank *rank;
    double left_cpu_s; /* when a rank last left MPI */
} ct__program;

extern char __start_ct_variables[] __attribute__((weak)), __stop_ct_variables[] __attribute__((weak));
int ct_application(int argc, char **argv);

static ct__rank *ct__enter(void)
{
    ct__rank *mine = &ct__program.rank[ct_cluster_me()];
    ct_machine_sleep(ct_machine_cpu_s() - ct__program.left_cpu_s);
    if (__start_ct_variables)
        memcpy(mine->variables, __start_ct_variables, (size_t)(__stop_ct_variables - __start_ct_variables));
    return mine;
}

static int ct__leave(int code)
{
    if (code != MPI_SUCCESS) {
        fprintf(stderr, "program: rank %d: MPI failed with code %d\n", ct_cluster_me(), code);
        exit(1);
    }
    if (__start_ct_variables)
        memcpy(__start_ct_variables, ct__program.rank[ct_cluster_me()].variables, (size_t)(__stop_ct_variables - __start_ct_variables));
    ct__program.left_cpu_s = ct_machine_cpu_s();
    return code;
}

static void *ct__need(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "program: no memory for the blocks of rank %d\n", ct_cluster_me());
        exit(1);
    }
    return memory;
}

static void ct__post(ct__rank *mine, const ct_side *send)
{
    int ranks = ct_cluster_ranks();
    size_t bytes = 0;
    ct__posted *posted = ct__need(malloc(sizeof *posted + sizeof *posted->at * (size_t)ranks));
    *posted = (ct__posted){.next = mine->posted, .number = mine->exchanges};
    for (int to = 0; to < ranks; to++) {
        posted->at[to] = bytes;
        bytes += (size_t)ct_side_bytes(send, to), posted->left += ct_side_bytes(send, to) > 0;
    }
    posted->data = ct__need(malloc(bytes + 1));
    for (int to = 0; to < ranks; to++)
        memcpy(posted->data + posted->at[to], ct_side_at(send, to), (size_t)ct_side_bytes(send, to));
    mine->posted = posted;
}

/* Who has a block for this rank has entered the call: the exchange waited for it. */
static void ct__take(const ct__rank *mine, const ct_side *receive)
{
    for (int from = 0; from < ct_cluster_ranks(); from++) {
        if (ct_side_bytes(receive, from) == 0)
            continue;
        ct__posted **at = &ct__program.rank[from].posted;
        while ((*at)->number != mine->exchanges)
            at = &(*at)->next;
        ct__posted *posted = *at;
        memcpy(ct_side_at(receive, from), posted->data + posted->at[ct_cluster_me()], (size_t)ct_side_bytes(receive, from));
        if (--posted->left == 0) {
            *at = posted->next;
            free(posted->data), free(posted);
        }
    }
}

/* By `forced`, or as the table says. */
static int ct__exchange(ct__rank *mine, const ct_a2av_call *call, const ct_alltoallv_choice *forced)
{
    ct_exchange x;
    ct_team *team = mine->state.team;
    int code = ct_call_exchange(call, team->size, &x);
    ct_statistic statistic = ct_exchange_statistic(&x, team->rank, team->size);
    mine->exchanges++;
    ct__post(mine, &x.send);
    if (forced != NULL) {
        ct_alltoallv_choice normal = ct_choice_normal(forced, team->size);
        code = ct_run(team, &x, &normal, &statistic);
    } else if (mine->state.off || ++mine->state.calls < ct__program.first_call || !ct_call_tuned(&mine->state, call, &code)) {
        code = ct_sweep_library(team, &x);
    }
    ct__take(mine, &x.receive);
    ct_exchange_free(&x);
    return code;
}

int MPI_Alltoallv(const void *send, const int *send_counts, const int *send_at, MPI_Datatype send_type, void *receive,
                  const int *receive_counts, const int *receive_at, MPI_Datatype receive_type, MPI_Comm comm)
{
    ct_a2av_call call = {.send = send, .send_counts = send_counts, .send_displacements = send_at, .send_type = send_type,
                         .receive = receive, .receive_counts = receive_counts, .receive_displacements = receive_at,
                         .receive_type = receive_type, .comm = comm};
    ct__rank *mine = ct__enter();
    return ct__leave(ct__exchange(mine, &call, NULL));
}

int MPI_Alltoall(const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                 MPI_Datatype receive_type, MPI_Comm comm)
{
    static const ct_alltoallv_choice BRUCK = {.algorithm = CT_ALLTOALLV_PARATA, .radix = 2};
    int ranks = ct_cluster_ranks(), *numbers = ct__need(malloc(4 * sizeof(int) * (size_t)ranks));
    ct__rank *mine = ct__enter();
    for (int r = 0; r < ranks; r++)
        numbers[r] = send_count, numbers[ranks + r] = r * send_count, numbers[2 * ranks + r] = receive_count,
        numbers[3 * ranks + r] = r * receive_count;
    ct_a2av_call call = {.send = send, .send_counts = numbers, .send_displacements = numbers + ranks, .send_type = send_type,
                         .receive = receive, .receive_counts = numbers + 2 * ranks, .receive_displacements = numbers + 3 * ranks,
                         .receive_type = receive_type, .comm = comm};
    int code = ct__exchange(mine, &call, &BRUCK);
    free(numbers);
    return ct__leave(code);
}

int MPI_Allreduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    ct__enter();
    return ct__leave(PMPI_Allreduce(mine, all, count, type, op, comm));
}

int MPI_Reduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
    double each[8];
    ct__enter();
    int code = PMPI_Allreduce(mine, each, count, type, op, comm);
    if (ct_cluster_me() == root && code == MPI_SUCCESS)
        memcpy(all, each, (size_t)count * ct_type_bytes(type));
    return ct__leave(code);
}

int MPI_Barrier(MPI_Comm comm)
{
    int mine = 0, all;
    return MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, comm);
}

double MPI_Wtime(void)
{
    ct__enter();
    ct__leave(MPI_SUCCESS);
    return ct_machine_clock_s();
}

int MPI_Comm_rank(MPI_Comm comm, int *rank) { return PMPI_Comm_rank(comm, rank); }
int MPI_Comm_size(MPI_Comm comm, int *size) { return PMPI_Comm_size(comm, size); }
int MPI_Finalize(void) { return MPI_SUCCESS; }

int MPI_Abort(MPI_Comm comm, int code)
{
    (void)comm;
    exit(code);
}

/* Sets the rules up, on every rank at once, which takes no time that is counted; the call from which they hold is the table's. */
int MPI_Init(int *argc, char ***argv)
{
    ct__rank *mine = ct__enter();
    (void)argc, (void)argv;
    int code = ct_team_make(MPI_COMM_WORLD, ct_sweep_leaders, &ct__program.ppn, &mine->state.team);
    ct_table_fill(&ct__program.rules, ct_cluster_ranks(), ct__program.ppn, &mine->state.table);
    ct_state_begin(&mine->state);
    return ct__leave(code);
}

static void ct__body(void *argument)
{
    (void)argument;
    ct__leave(MPI_SUCCESS);
    int code = ct_application(ct__program.argc, ct__program.argv);
    ct__program.code = code != 0 ? code : ct__program.code;
    ct__enter();
}

static bool ct__read_table(const char *path)
{
    static char text[1 << 20];
    char why[256] = "it cannot be read";
    FILE *file = fopen(path, "r");
    size_t count = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    bool fine = count > 0 && ct_table_parse(text, &ct__program.rules, why, sizeof why);
    if (file != NULL)
        fclose(file);
    if (!fine)
        fprintf(stderr, "program: %s: %s\n", path, why);
    return fine;
}

int main(int argc, char **argv)
{
    int nodes = argc > 5 ? atoi(argv[3]) : 0;
    size_t bytes = __start_ct_variables ? (size_t)(__stop_ct_variables - __start_ct_variables) : 0;
    ct__program.ppn = argc > 5 ? atoi(argv[2]) : 0;
    if (ct__program.ppn < 1 || nodes < 1 || !ct_network_make(argv[4], nodes, ct__program.ppn)) {
        fprintf(stderr, "usage: program TABLE PPN NODES NETWORK WORDS...\n");
        return 2;
    }
    if (strcmp(argv[1], "-") != 0 && !ct__read_table(argv[1]))
        return 2;
    int ranks = nodes * ct__program.ppn;
    ct__program.argc = argc - 5, ct__program.argv = argv + 5;
    ct__program.first_call = ct_table_first_call(&ct__program.rules, ranks, ct__program.ppn);
    ct__program.rank = ct__need(calloc((size_t)ranks, sizeof *ct__program.rank));
    for (int rank = 0; rank < ranks; rank++) {
        ct__program.rank[rank].variables = ct__need(malloc(bytes + 1));
        if (bytes > 0)
            memcpy(ct__program.rank[rank].variables, __start_ct_variables, bytes);
    }
    ct_cluster_run(ranks, ct__body, NULL, ct_messages_step);
    return ct__program.code;
}
