/* Where the ranks are, and the communicators over parts of the job. */
#include "agent.h"

#include <stdlib.h>
#include <string.h>

int ct_world_make(ct_world *world)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &world->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world->size);
    CT_TRY(ct_nodes_find(MPI_COMM_WORLD, &world->nodes));
    CT_TRY(ct_watch_make(MPI_COMM_WORLD, &world->watch));
    ct_watch_start(&world->watch);
    return MPI_SUCCESS;
}

int ct_world_members(const ct_world *world, const ct_request *request, int *members)
{
    int count = 0;
    for (int n = 0; n < request->node_count; n++) {
        int node = request->nodes[n];
        if (node >= world->nodes.count || (long)request->ppn * request->beside > ct_nodes_ranks(&world->nodes, node))
            return -1;
        for (int earlier = 0; earlier < n; earlier++)
            if (request->nodes[earlier] == node)
                return -1;
    }
    for (int part = 0; part < request->beside; part++)
        for (int n = 0; n < request->node_count; n++)
            for (int local = 0; local < request->ppn; local++)
                members[count++] =
                    world->nodes.member[world->nodes.first[request->nodes[n]] + part * request->ppn + local];
    return count;
}

/* Rank 0 numbers the communicators, so that all ranks agree on which exist (see dispatch.c). */
static struct {
    ct_group group;
    bool made;
} ct__groups[CT_MAX_GROUPS];

int ct_group_make(ct_world *world, int slot, const int *members, int count, int beside, ct_group **group)
{
    ct_group *made = &ct__groups[slot].group;
    int rank;
    MPI_Group everyone, chosen;
    MPI_Comm_group(MPI_COMM_WORLD, &everyone);
    MPI_Group_incl(everyone, count, members, &chosen);
    /* Only the members take part: the other ranks may be asleep or measuring. */
    int code = MPI_Comm_create_group(MPI_COMM_WORLD, chosen, CT_TAG_SYNC + slot, &made->comm);
    MPI_Group_free(&chosen);
    MPI_Group_free(&everyone);
    CT_TRY(code);
    made->part = made->comm;
    MPI_Comm_rank(made->comm, &rank);
    if (beside > 1)
        CT_TRY(MPI_Comm_split(made->comm, rank / (count / beside), rank, &made->part));
    ct__groups[slot].made = true;
    made->fresh = true;
    made->variant_count = 0;
    made->watch = &world->watch;
    made->leads = ct_watch_leads(&world->watch, members, count);
    made->node = world->nodes.node_of[world->rank];
    *group = made;
    MPI_Comm_set_errhandler(made->part, MPI_ERRORS_RETURN);
    return MPI_Comm_set_errhandler(made->comm, MPI_ERRORS_RETURN);
}

ct_group *ct_group_get(int slot)
{
    return slot >= 0 && slot < CT_MAX_GROUPS && ct__groups[slot].made ? &ct__groups[slot].group : NULL;
}

static int ct__forget_variants(ct_group *group)
{
    while (group->variant_count > 0) {
        ct_variant *variant = &group->variants[--group->variant_count];
        free(variant->settings);
        CT_TRY(MPI_Comm_free(&variant->comm));
    }
    return MPI_SUCCESS;
}

int ct_group_release(int slot)
{
    ct_group *group = &ct__groups[slot].group;
    CT_TRY(ct__forget_variants(group));
    free(group->variants);
    group->variants = NULL;
    group->variant_capacity = 0;
    ct__groups[slot].made = false;
    if (group->part != group->comm)
        CT_TRY(MPI_Comm_free(&group->part));
    return MPI_Comm_free(&group->comm);
}

int ct_group_reserve(ct_group *group, const ct_request *request)
{
    if (!ct_settings_by_communicator(false))
        return MPI_SUCCESS;
    int needed = request->choice_count > CT_USUAL_VARIANTS ? request->choice_count : CT_USUAL_VARIANTS;
    if (group->variant_count + request->choice_count > needed)
        CT_TRY(ct__forget_variants(group));
    if (needed > group->variant_capacity) {
        ct_variant *larger = realloc(group->variants, sizeof *larger * (size_t)needed);
        if (larger == NULL)
            return MPI_ERR_NO_MEM;
        group->variants = larger;
        group->variant_capacity = needed;
    }
    return MPI_SUCCESS;
}

static bool ct__same(const ct_variant *variant, const ct_choice *choice)
{
    if (variant->setting_count != choice->setting_count)
        return false;
    for (int i = 0; i < choice->setting_count; i++)
        if (variant->settings[i].variable != choice->settings[i].variable ||
            variant->settings[i].value != choice->settings[i].value)
            return false;
    return true;
}

int ct_group_variant(ct_group *group, bool nonblocking, const ct_choice *choice, MPI_Comm *comm)
{
    *comm = group->part;
    if (!ct_settings_by_communicator(nonblocking) || choice->setting_count == 0 ||
        ct_settings_ours(choice->settings, choice->setting_count))
        return MPI_SUCCESS;
    for (int i = 0; i < group->variant_count; i++)
        if (ct__same(&group->variants[i], choice)) {
            *comm = group->variants[i].comm;
            return MPI_SUCCESS;
        }
    /* The settings of other collectives are at their initial values: an algorithm that is made of other collectives
     * would take theirs along. */
    int code = ct_settings_write(choice->settings, choice->setting_count);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_dup(group->part, comm);
    ct_keep_first(&code, ct_settings_restore(choice->settings, choice->setting_count));
    CT_TRY(code);
    size_t size = sizeof *choice->settings * (size_t)choice->setting_count;
    ct_setting *settings = malloc(size);
    if (settings == NULL)
        return MPI_ERR_NO_MEM;
    memcpy(settings, choice->settings, size);
    group->variants[group->variant_count++] =
        (ct_variant){.setting_count = choice->setting_count, .settings = settings, .comm = *comm};
    return MPI_SUCCESS;
}
