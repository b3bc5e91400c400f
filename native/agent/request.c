/* Requests as text: `measure key=value ...`. The reader trusts nothing: what it cannot read it refuses. */
#include "agent.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool ct__refuse(char *why, size_t why_size, const char *what, const char *value)
{
    snprintf(why, why_size, "%s %.80s", what, value);
    return false;
}

static bool ct__read_long(const char *text, long low, long high, long *value)
{
    char *end;
    errno = 0;
    *value = strtol(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *value >= low && *value <= high;
}

/* "0-3,7" -> 0 1 2 3 7 */
static bool ct__read_nodes(const char *text, ct_request *request)
{
    enum { LARGEST = 1 << 20 };
    int capacity = 16, count = 0;
    int *nodes = malloc(sizeof *nodes * (size_t)capacity);
    const char *at = text;
    while (nodes != NULL) {
        char *end;
        long first = strtol(at, &end, 10), last = first;
        if (end == at || first < 0 || first >= LARGEST)
            break;
        if (*end == '-') {
            at = end + 1;
            last = strtol(at, &end, 10);
            if (end == at || last < first || last >= LARGEST)
                break;
        }
        for (long node = first; node <= last && nodes != NULL; node++) {
            if (count == capacity) {
                capacity *= 2;
                int *larger = realloc(nodes, sizeof *nodes * (size_t)capacity);
                if (larger == NULL)
                    free(nodes);
                nodes = larger;
            }
            if (nodes != NULL)
                nodes[count++] = (int)node;
        }
        if (*end == '\0' && nodes != NULL) {
            request->nodes = nodes;
            request->node_count = count;
            return true;
        }
        if (*end != ',' || count > LARGEST)
            break;
        at = end + 1;
    }
    free(nodes);
    return false;
}

/* "NAME=3,OTHER=1" or "" */
static bool ct__read_choice(char *text, ct_choice *choice)
{
    choice->setting_count = 0;
    choice->missing[0] = '\0';
    char *rest = text;
    while (rest != NULL && *rest != '\0') {
        char *item = rest;
        rest = strchr(item, ',');
        if (rest != NULL)
            *rest++ = '\0';
        char *equals = strchr(item, '=');
        long value;
        if (equals == NULL || equals == item || choice->setting_count == CT_MAX_SETTINGS)
            return false;
        *equals = '\0';
        if (strlen(item) >= CT_MAX_NAME || !ct__read_long(equals + 1, INT_MIN, INT_MAX, &value))
            return false;
        int variable = ct_control_find(item);
        if (variable < 0) {
            if (choice->missing[0] == '\0')
                strcpy(choice->missing, item);
            continue;
        }
        choice->settings[choice->setting_count++] = (ct_setting){.variable = variable, .value = (int)value};
    }
    return true;
}

static bool ct__read_field(const char *key, char *value, ct_request *request)
{
    static const struct {
        const char *key;
        size_t offset;
        long low, high;
    } INTEGERS[] = {
        {"ppn", offsetof(ct_request, ppn), 1, 1 << 16},
        {"root", offsetof(ct_request, root), 0, INT_MAX},
        {"warm_up", offsetof(ct_request, warm_up), 0, 1000},
        {"fewest", offsetof(ct_request, fewest), 1, CT_MAX_REPETITIONS},
        {"most", offsetof(ct_request, most), 1, CT_MAX_REPETITIONS},
        {"limit_s", offsetof(ct_request, limit_s), 0, 1 << 20},
    };
    long number;
    for (size_t i = 0; i < sizeof INTEGERS / sizeof *INTEGERS; i++)
        if (strcmp(key, INTEGERS[i].key) == 0) {
            if (!ct__read_long(value, INTEGERS[i].low, INTEGERS[i].high, &number))
                return false;
            *(int *)((char *)request + INTEGERS[i].offset) = (int)number;
            return true;
        }
    if (strcmp(key, "id") == 0)
        return ct__read_long(value, 0, LONG_MAX, &request->id);
    if (strcmp(key, "nodes") == 0)
        return request->nodes == NULL && ct__read_nodes(value, request);
    if (strcmp(key, "choice") == 0)
        return request->choice_count < CT_MAX_CHOICES &&
               ct__read_choice(value, &request->choices[request->choice_count++]);
    if (strcmp(key, "collective") == 0) {
        if (strlen(value) >= sizeof request->collective)
            return false;
        strcpy(request->collective, value);
        return true;
    }
    bool read = true;
    if (strcmp(key, "bytes") == 0 && (read = ct__read_long(value, 0, LONG_MAX / 4, &number)))
        request->size_bytes = (size_t)number;
    else if (strcmp(key, "box_us") == 0 && (read = ct__read_long(value, 0, 3600L * 1000000, &number)))
        request->box_s = (double)number * 1e-6;
    else if (strcmp(key, "width_ppm") == 0 && (read = ct__read_long(value, 0, 10000000, &number)))
        request->relative_width = (double)number * 1e-6;
    else if (strcmp(key, "seed") == 0 && (read = ct__read_long(value, 0, LONG_MAX, &number)))
        request->seed = (uint64_t)number;
    else if (strcmp(key, "osu") == 0 && (read = ct__read_long(value, 0, 1, &number)))
        request->osu = number == 1;
    else
        return false;
    return read;
}

bool ct_request_parse(const char *line, ct_request *request, char *why, size_t why_size)
{
    *request = (ct_request){.id = -1, .warm_up = 2, .fewest = 10, .most = 1000, .box_s = 0.05, .relative_width = 0.05};
    char *copy = strdup(line);
    if (copy == NULL)
        return ct__refuse(why, why_size, "no memory for a request", "");
    char *rest = NULL, *word = strtok_r(copy, " \t\r\n", &rest);
    bool fine = word != NULL && strcmp(word, "measure") == 0;
    if (!fine)
        ct__refuse(why, why_size, "not a request:", word == NULL ? "(empty)" : word);
    while (fine && (word = strtok_r(NULL, " \t\r\n", &rest)) != NULL) {
        char *equals = strchr(word, '=');
        if (equals != NULL)
            *equals = '\0';
        if (equals == NULL || !ct__read_field(word, equals + 1, request))
            fine = ct__refuse(why, why_size, "cannot read the field", word);
    }
    free(copy);
    if (fine && (request->id < 0 || request->ppn < 1 || request->node_count < 1 || request->choice_count < 1 ||
                 request->collective[0] == '\0' || request->fewest > request->most))
        fine = ct__refuse(why, why_size, "a field is missing: id, collective, ppn, nodes, choice", "");
    if (!fine)
        ct_request_free(request);
    return fine;
}

void ct_request_free(ct_request *request)
{
    free(request->nodes);
    request->nodes = NULL;
}
