/* Choices: their names, the form that is run, and running it. */
#include "algorithms.h"

#include <string.h>

static const char *const CT__NAMES[CT_ALLTOALLV_ALGORITHMS] = {"library", "linear", "parata", "hieata"};

const char *ct_alltoallv_name(int algorithm)
{
    return algorithm >= 0 && algorithm < CT_ALLTOALLV_ALGORITHMS ? CT__NAMES[algorithm] : NULL;
}

int ct_alltoallv_find(const char *name)
{
    for (int i = 0; i < CT_ALLTOALLV_ALGORITHMS; i++)
        if (strcmp(name, CT__NAMES[i]) == 0)
            return i;
    return -1;
}

ct_alltoallv_choice ct_choice_normal(const ct_alltoallv_choice *choice, int size)
{
    ct_alltoallv_choice normal = *choice;
    if (normal.radix < 2)
        normal.radix = 2;
    if (normal.radix > size)
        normal.radix = size;
    /* With radix size - 1 or more no block is forwarded: that is spread-out. */
    if (normal.algorithm == CT_ALLTOALLV_PARATA && normal.radix >= size - 1)
        normal.algorithm = CT_ALLTOALLV_LINEAR;
    if (size < 3 && normal.algorithm != CT_ALLTOALLV_LIBRARY)
        normal.algorithm = CT_ALLTOALLV_LINEAR;
    return normal;
}

bool ct_choice_agrees(const ct_alltoallv_choice *normal)
{
    return normal->algorithm == CT_ALLTOALLV_PARATA || normal->algorithm == CT_ALLTOALLV_HIEATA;
}

static int ct__run(ct_team *team, const ct_exchange *x, const ct_alltoallv_choice *normal, ct_statistic *statistic)
{
    switch (normal->algorithm) {
    case CT_ALLTOALLV_LINEAR:
        return ct_linear(team, x, normal->batch);
    case CT_ALLTOALLV_PARATA:
        return ct_parata(team, x, normal, statistic);
    case CT_ALLTOALLV_HIEATA:
        return ct_hieata(team, x, normal, statistic);
    }
    return MPI_ERR_ARG;
}

/* A block that is too long for its room is this rank's error: the others get theirs all the same. */
int ct_run(ct_team *team, const ct_exchange *x, const ct_alltoallv_choice *normal, ct_statistic *statistic)
{
    team->calls++;
    int own = ct_block_copy_own(x, team->rank, team->comm), code = ct__run(team, x, normal, statistic);
    return code == MPI_SUCCESS ? own : code;
}
