/* Feeds text to the reader of requests alone, for a build with sanitizers.
 *
 *   read_requests                 reads lines on standard input; prints `ok FIELDS` or `no WHY` for each
 *   read_requests SEED COUNT      reads COUNT requests that were changed at random, made from SEED
 */
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
    printf("ok id=%ld collective=%s bytes=%zu ppn=%d nodes=", r.id, r.collective, r.size_bytes, r.ppn);
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

static unsigned long state;
static unsigned draw(unsigned below)
{
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return (unsigned)((state * 2685821657736338717UL) >> 33) % below;
}

/* Changes, removes, repeats or inserts a few bytes, with a taste for those that mean something. */
static size_t mutate(char *line, size_t length, size_t capacity)
{
    static const char TELLING[] = "=,-0123456789 \t\r:choice nodes ppn";
    for (unsigned change = 0, changes = 1 + draw(6); change < changes; change++) {
        size_t at = length > 0 ? draw((unsigned)length) : 0, rest = length - at;
        size_t part = rest > 0 ? 1 + draw((unsigned)(rest < 24 ? rest : 24)) : 0;
        char byte = draw(4) ? TELLING[draw(sizeof TELLING - 1)] : (char)(1 + draw(255));
        switch (draw(4)) {
        case 0:
            if (length > 0)
                line[at] = byte;
            break;
        case 1:
            memmove(line + at, line + at + part, rest - part);
            length -= part;
            break;
        case 2:
            for (unsigned times = 1 + draw(3); times > 0 && length + part < capacity; times--) {
                memmove(line + at + part, line + at, length - at);
                length += part;
            }
            break;
        default:
            if (length + 1 < capacity) {
                memmove(line + at + 1, line + at, rest);
                line[at] = byte;
                length++;
            }
        }
    }
    line[length] = '\0';
    return length;
}

static int fuzz(long count)
{
    static const char *const SEEDS[] = {
        "measure id=1 collective=bcast bytes=64 ppn=2 nodes=0-3,7 warm_up=1 fewest=3 most=9 box_us=500 choice=",
        "measure id=77 collective=reduce_scatter bytes=4096 ppn=1 nodes=0 root=3 osu=1 seed=12 width_ppm=50000 limit_s=9 "
        "choice= choice=KNOWN_A=1,KNOWN_LONGER=-3 choice=MISSING=2,KNOWN_B=1",
        "measure id=0 collective=barrier choice= ppn=1 nodes=0",
        "measure id=8 collective=bcast ppn=1 nodes=0 names=KNOWN_A,GONE,KNOWN_B choice=0=3,2=-1 choice=1=4 names=KNOWN_C choice=3=1",
    };
    long read = 0;
    for (long i = 0; i < count; i++) {
        char line[4096], why[160];
        strcpy(line, SEEDS[draw(sizeof SEEDS / sizeof *SEEDS)]);
        size_t length = strlen(line);
        for (unsigned rounds = 1 + draw(3); rounds > 0; rounds--)
            length = mutate(line, length, sizeof line);
        char *exact = strdup(line); /* so that a read behind the end is seen */
        ct_request request;
        if (ct_request_parse(exact, length, &request, why, sizeof why)) {
            if (request.node_count < 1 || request.choice_count < 1 || request.fewest > request.most ||
                request.ppn < 1 || request.id < 0)
                abort();
            ct_request_free(&request);
            read++;
        } else if (strlen(why) == 0 || strlen(why) >= sizeof why) {
            abort();
        }
        free(exact);
    }
    printf("%ld of %ld read\n", read, count);
    return 0;
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t capacity = 0;
    if (argc == 3) {
        state = strtoul(argv[1], NULL, 10) * 2 + 1;
        return fuzz(strtol(argv[2], NULL, 10));
    }
    for (ssize_t length; (length = getline(&line, &capacity, stdin)) > 0;) {
        length -= line[length - 1] == '\n';
        line[length] = '\0';
        show(line, (size_t)length);
    }
    free(line);
    return 0;
}
