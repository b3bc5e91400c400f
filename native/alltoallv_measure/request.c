#include "request.h"

#include <stdio.h>
#include <string.h>

bool ct_measure_parse(const char *line, ct_measure_request *r)
{
    int used = 0, more = 0;
    ct_blocks *b = &r->blocks;
    if (sscanf(line, "measure %ld %d %d %15s %d %d %d %u%n", &r->id, &r->nodes, &r->ppn, b->distribution, &b->peers,
               &b->average, &r->repetitions, &b->seed, &used) != 8)
        return false;
    for (r->choice_count = 0; r->choice_count < CT_MEASURE_CHOICES; r->choice_count++, used += more) {
        char name[32];
        ct_alltoallv_choice *c = &r->choices[r->choice_count];
        if (sscanf(line + used, " %31[a-z_]:%d:%d:%d%n", name, &c->radix, &c->batch, &c->direct_above, &more) != 4)
            break;
        c->algorithm = strcmp(name, "tuned") == 0 ? CT_MEASURE_TUNED : ct_alltoallv_find(name);
        if (c->algorithm < 0 && c->algorithm != CT_MEASURE_TUNED)
            return false;
    }
    return r->choice_count > 0 && b->average >= 0 && b->peers >= 0 && r->repetitions > 0 && r->repetitions <= CT_MEASURE_REPETITIONS;
}
