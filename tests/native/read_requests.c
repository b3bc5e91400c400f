/* Feeds text to the reader of requests alone, for a build with sanitizers: reads lines on standard input, prints `ok FIELDS`
 * or `no WHY` for each. */
#include "agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names that begin with KNOWN_ are there; the number of a variable is its name's length. */
int ct_variable_find(const char *name) { return strncmp(name, "KNOWN_", 6) == 0 ? (int)strlen(name) : -1; }

static void show(const char *line, size_t length)
{
    ct_request r;
    char why[160];
    if (!ct_request_parse(line, length, &r, why, sizeof why)) {
        printf("no %s\n", why);
        return;
    }
    printf("ok id=%ld collective=%s bytes=%zu ppn=%d beside=%d nodes=", r.id, r.collective, r.size_bytes, r.ppn, r.beside);
    for (int i = 0; i < r.node_count; i++)
        printf(i == 0 ? "%d" : ",%d", r.nodes[i]);
    printf(" warm_up=%d fewest=%d most=%d box_us=%.0f limit_s=%d", r.warm_up, r.fewest, r.most, r.box_s * 1e6, r.limit_s);
    for (int i = 0; i < r.choice_count; i++) {
        printf(" choice=");
        for (int s = 0; s < r.choices[i].setting_count; s++)
            printf("%s%d:%d", s == 0 ? "" : ",", r.choices[i].settings[s].variable, r.choices[i].settings[s].value);
        printf("/%s", r.choices[i].missing == NULL ? "" : r.choices[i].missing);
    }
    printf("\n");
    ct_request_free(&r);
}

int main(void)
{
    char *line = NULL;
    size_t capacity = 0;
    for (ssize_t length; (length = getline(&line, &capacity, stdin)) > 0;) {
        length -= line[length - 1] == '\n';
        line[length] = '\0';
        show(line, (size_t)length);
    }
    free(line);
    return 0;
}
