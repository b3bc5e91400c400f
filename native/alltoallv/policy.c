/* The selection protocol, free of MPI. */
#include "policy.h"

enum { CT__REMEMBERED = 16, CT__CHANGES_MOST = 8 };

void ct_policy_start(ct_policy *policy) { *policy = (ct_policy){.choice = -1, .rest = CT_POLICY_REST_FIRST}; }

ct_agreement ct_policy_begin(ct_policy *policy, int *choice)
{
    policy->calls++;
    if (policy->choice < 0 && policy->calls >= policy->rest_until)
        return CT_AGREE_NOW;
    *choice = policy->choice < 0 ? CT_POLICY_LIBRARY : policy->choice;
    return policy->choice >= 0 && policy->calls >= policy->next ? CT_AGREE_BESIDE : CT_AGREE_NOT;
}

/* Sizes that swing from call to call are never met by a choice made one call late: the library's own serves them. */
static void ct__rest(ct_policy *policy)
{
    policy->choice = -1;
    policy->changes = 0;
    policy->rest_until = policy->calls + policy->rest;
    if (policy->rest < CT_POLICY_REST_MOST)
        policy->rest *= 2;
}

static int ct__ones(uint32_t bits)
{
    int ones = 0;
    for (; bits; bits &= bits - 1)
        ones++;
    return ones;
}

void ct_policy_agreed(ct_policy *policy, int choice)
{
    bool changed = policy->choice >= 0 && choice != policy->choice;
    policy->changes = (policy->changes << 1 | changed) & ((1u << CT__REMEMBERED) - 1);
    if (changed)
        policy->interval = 1;
    else if (policy->choice < 0)
        policy->interval = CT_POLICY_INTERVAL_FIRST;
    else if (policy->interval < (policy->changes ? CT_POLICY_INTERVAL_CHANGING : CT_POLICY_INTERVAL_MOST))
        policy->interval = 4 * policy->interval - 1; /* odd: calls of two kinds by turns are both looked at */
    policy->choice = choice;
    policy->next = policy->calls + policy->interval;
    if (ct__ones(policy->changes) >= CT__CHANGES_MOST)
        ct__rest(policy);
}
