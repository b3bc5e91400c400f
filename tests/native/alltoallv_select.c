/* The selection protocol and the table as a library for tests, and what a selection takes.
 *
 * Run as a program, it prints nanoseconds of a repeated call's selection, and of a look-up. */
#define _GNU_SOURCE
#include "policy.h"
#include "table.h"

#include <stdio.h>
#include <time.h>

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

int policy_bytes(void) { return (int)sizeof(ct_policy); }
int find_choice(const ct_table *table, int64_t bytes, int64_t peers, int size)
{
    ct_statistic statistic = {.bytes = bytes, .peers = peers};
    return ct_table_find(table, &statistic, size);
}

int main(void)
{
    enum { CALLS = 4000000 };
    static ct_table table = {.choice_count = 1};
    ct_policy policy;
    int choice = 0;
    volatile long sum = 0;
    ct_policy_start(&policy);
    double began_ns = now_ns();
    for (long i = 0; i < CALLS; i++) {
        if (ct_policy_begin(&policy, &choice) != CT_AGREE_NOT)
            ct_policy_agreed(&policy, 1);
        sum += choice;
    }
    double select_ns = (now_ns() - began_ns) / CALLS;
    began_ns = now_ns();
    for (long i = 0; i < CALLS; i++)
        sum += find_choice(&table, i * 977 & 0xffffff, i & 63, 64);
    printf("%.3f %.3f\n", select_ns, (now_ns() - began_ns) / CALLS);
    return 0;
}
