/* The selection protocol and the table as a library for tests, and what a selection takes.
 *
 * Run as a program, on one rank, it prints nanoseconds of a repeated call's selection, of a look-up, and of the statistic. */
#define _GNU_SOURCE
#include "policy.h"
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

int policy_bytes(void) { return (int)sizeof(ct_policy); }
int find_choice(const ct_table *table, int64_t bytes, int64_t idle, int size)
{
    ct_statistic statistic = {.bytes = bytes, .idle = idle};
    return ct_table_find(table, &statistic, size);
}

/* The call at which a file's rules take over, and what it says; -1, and `why`, if it is faulty, and the library's own for all. */
int load_table(const char *path, int ranks, int ppn, ct_table *table, char *why)
{
    size_t length;
    ct_table_rules rules = {0};
    char *text = ct_rules_load(path, &length);
    bool whole = text != NULL && ct_table_parse(text, &rules, why, CT_RULES_WHY);
    int call = whole ? ct_table_first_call(&rules, ranks, ppn) : -1;
    ct_table_fill(&rules, ranks, ppn, table);
    ct_table_forget(&rules);
    free(text);
    return call;
}

/* Of a rank with these counts, in bytes. */
void statistic_of(const int *sent, const int *received, int rank, int size, int64_t found[2])
{
    ct_exchange x = {.send = {.counts = sent, .type_bytes = 1, .plain = true},
                     .receive = {.counts = received, .type_bytes = 1, .plain = true}};
    ct_statistic statistic = ct_exchange_statistic(&x, rank, size);
    found[0] = statistic.bytes, found[1] = statistic.idle;
}

/* A repeated call's selection: the communicator's state, where it is an attribute, and what the protocol says. */
static double select_ns(int calls)
{
    ct_policy policy;
    int choice = 0, keyval, found;
    volatile long sum = 0;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &policy);
    ct_policy_start(&policy);
    double began_ns = now_ns();
    for (int i = 0; i < calls; i++) {
        ct_policy *mine;
        PMPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &mine, &found);
        if (ct_policy_begin(mine, &choice) != CT_AGREE_NOT)
            ct_policy_agreed(mine, 1);
        sum += choice;
    }
    double took_ns = now_ns() - began_ns;
    MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval);
    MPI_Comm_free_keyval(&keyval);
    return took_ns / calls;
}

static double look_up_ns(int calls)
{
    static ct_table table = {.choice_count = 1};
    volatile long sum = 0;
    double began_ns = now_ns();
    for (long i = 0; i < calls; i++)
        sum += find_choice(&table, i * 977 & 0xffffff, i & 63, 64);
    return (now_ns() - began_ns) / calls;
}

/* What an algorithm that carries the statistic adds to each call: the sums over 64 ranks' counts. */
static double statistic_ns(int calls)
{
    enum { RANKS = 64 };
    int counts[RANKS], displacements[RANKS] = {0};
    ct_exchange x = {0};
    volatile int64_t sum = 0;
    for (int i = 0; i < RANKS; i++)
        counts[i] = i;
    ct_side_set(&x.send, NULL, counts, displacements, MPI_BYTE, false);
    ct_side_set(&x.receive, NULL, counts, displacements, MPI_BYTE, false);
    double began_ns = now_ns();
    for (int i = 0; i < calls; i++)
        sum += ct_exchange_statistic(&x, 0, RANKS).bytes;
    return (now_ns() - began_ns) / calls;
}

int main(int argc, char **argv)
{
    enum { CALLS = 4000000 };
    MPI_Init(&argc, &argv);
    printf("%.3f %.3f %.3f\n", select_ns(CALLS), look_up_ns(CALLS), statistic_ns(CALLS));
    MPI_Finalize();
    return 0;
}
