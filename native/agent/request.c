/* Requests as text: `measure key=value ...`. The reader trusts nothing: what it cannot read it refuses. */
#include "agent.h"
#include "rules.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What may be wrong with a field; NULL: nothing. */
static const char *const CT__UNREADABLE = "cannot read the field", *const CT__NO_MEMORY = "no memory for the field";

static bool ct__refuse(char *why, size_t why_size, const char *what, const char *value)
{
    snprintf(why, why_size, "%s %.80s", what, value);
    return false;
}

/* "0-3,7" -> 0 1 2 3 7 */
static bool ct__read_nodes(const char *text, ct_request *request)
{
    enum { LARGEST = 1 << 20 };
    int capacity = 0, count = 0, *nodes = NULL;
    for (const char *at = text;;) {
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
        for (long node = first; node <= last; node++) {
            int *larger = ct_grown(nodes, count, &capacity, sizeof *nodes);
            if (larger == NULL)
                return free(nodes), false;
            nodes = larger;
            nodes[count++] = (int)node;
        }
        if (*end == '\0') {
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

/* "NAME,OTHER": control variables that choices name by their places in this list. */
static const char *ct__read_names(char *text, ct_request *request)
{
    int capacity = request->name_count;
    for (char *name, *none; ct_rules_setting(&text, &name, &none);) {
        char **names = ct_grown(request->names, request->name_count, &capacity, sizeof *names);
        if (names == NULL)
            return CT__NO_MEMORY;
        request->names = names;
        names[request->name_count] = strdup(name);
        if (names[request->name_count] == NULL)
            return CT__NO_MEMORY;
        request->name_count++;
    }
    return NULL;
}

/* "NAME=3" or "0=3": one more setting, or the name of a variable that is missing. */
static const char *ct__read_setting(const char *name, const char *text, const ct_request *request, ct_choice *choice,
                                    int *capacity)
{
    long long value, place;
    if (text == NULL || *name == '\0' || !ct_rules_number(text, INT_MIN, INT_MAX, &value))
        return CT__UNREADABLE;
    if (ct_rules_number(name, INT_MIN, INT_MAX, &place)) {
        if (place < 0 || place >= request->name_count)
            return CT__UNREADABLE;
        name = request->names[place];
    }
    int variable = ct_variable_find(name);
    if (variable == CT_VARIABLE_NO_MEMORY)
        return CT__NO_MEMORY;
    if (variable < 0) {
        if (choice->missing == NULL)
            choice->missing = strdup(name);
        return choice->missing == NULL ? CT__NO_MEMORY : NULL;
    }
    ct_setting *settings = ct_grown(choice->settings, choice->setting_count, capacity, sizeof *settings);
    if (settings == NULL)
        return CT__NO_MEMORY;
    choice->settings = settings;
    settings[choice->setting_count++] = (ct_setting){.variable = variable, .value = (int)value};
    return NULL;
}

/* "NAME=3,OTHER=1", "0=3,1=1" or "": one more choice. */
static const char *ct__read_choice(char *text, ct_request *request)
{
    ct_choice *choices =
        ct_grown(request->choices, request->choice_count, &request->choice_capacity, sizeof *choices);
    if (choices == NULL)
        return CT__NO_MEMORY;
    request->choices = choices;
    ct_choice *choice = &choices[request->choice_count++];
    *choice = (ct_choice){0};
    int capacity = 0;
    const char *wrong = NULL;
    for (char *name, *value; wrong == NULL && ct_rules_setting(&text, &name, &value);)
        wrong = ct__read_setting(name, value, request, choice, &capacity);
    return wrong;
}

/* A field that is a plain number; false: it is none of these. */
static bool ct__read_number(const char *key, const char *value, ct_request *request, const char **wrong)
{
    enum ct__type { INT, LONG, MILLIONTHS };
    static const struct {
        const char *key;
        size_t offset;
        long low, high;
        enum ct__type type;
    } NUMBERS[] = {
        {"ppn", offsetof(ct_request, ppn), 1, 1 << 16, INT},
        {"beside", offsetof(ct_request, beside), 1, 1 << 16, INT},
        {"root", offsetof(ct_request, root), 0, INT_MAX, INT},
        {"warm_up", offsetof(ct_request, warm_up), 0, 1000, INT},
        {"fewest", offsetof(ct_request, fewest), 1, CT_MAX_REPETITIONS, INT},
        {"most", offsetof(ct_request, most), 1, CT_MAX_REPETITIONS, INT},
        {"limit_s", offsetof(ct_request, limit_s), 0, 1 << 20, INT},
        {"id", offsetof(ct_request, id), 0, LONG_MAX, LONG},
        {"bytes", offsetof(ct_request, size_bytes), 0, LONG_MAX / 4, LONG},
        {"seed", offsetof(ct_request, seed), 0, LONG_MAX, LONG},
        {"box_us", offsetof(ct_request, box_s), 0, 3600L * 1000000, MILLIONTHS},
        {"skew_us", offsetof(ct_request, skew_s), 0, 3600L * 1000000, MILLIONTHS},
        {"width_ppm", offsetof(ct_request, relative_width), 0, 10000000, MILLIONTHS},
    };
    long long number;
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
        if (strcmp(key, NUMBERS[i].key) != 0)
            continue;
        void *at = (char *)request + NUMBERS[i].offset;
        *wrong = ct_rules_number(value, NUMBERS[i].low, NUMBERS[i].high, &number) ? NULL : CT__UNREADABLE;
        if (*wrong == NULL && NUMBERS[i].type == INT)
            *(int *)at = (int)number;
        else if (*wrong == NULL && NUMBERS[i].type == LONG)
            *(long *)at = (long)number;
        else if (*wrong == NULL)
            *(double *)at = (double)number * 1e-6;
        return true;
    }
    return false;
}

static const char *ct__read_field(const char *key, char *value, ct_request *request)
{
    const char *wrong = CT__UNREADABLE;
    if (ct__read_number(key, value, request, &wrong))
        return wrong;
    if (strcmp(key, "choice") == 0)
        return ct__read_choice(value, request);
    if (strcmp(key, "names") == 0)
        return ct__read_names(value, request);
    if (strcmp(key, "nodes") == 0 && request->nodes == NULL && ct__read_nodes(value, request))
        return NULL;
    if (strcmp(key, "collective") == 0 && request->collective == NULL && *value != '\0')
        return (request->collective = strdup(value)) == NULL ? CT__NO_MEMORY : NULL;
    return wrong;
}

static bool ct__read_fields(char *text, ct_request *request, char *why, size_t why_size)
{
    char *rest = NULL, *word = strtok_r(text, " \t\r\n", &rest), shown[81];
    if (word == NULL || strcmp(word, "measure") != 0)
        return ct__refuse(why, why_size, "not a request:", word == NULL ? "(empty)" : word);
    while ((word = strtok_r(NULL, " \t\r\n", &rest)) != NULL) {
        snprintf(shown, sizeof shown, "%s", word); /* reading cuts it into pieces */
        char *equals = strchr(word, '=');
        if (equals != NULL)
            *equals = '\0';
        const char *wrong = equals == NULL ? CT__UNREADABLE : ct__read_field(word, equals + 1, request);
        if (wrong != NULL)
            return ct__refuse(why, why_size, wrong, shown);
    }
    if (request->id < 0 || request->ppn < 1 || request->node_count < 1 || request->choice_count < 1 ||
        request->collective == NULL)
        return ct__refuse(why, why_size, "a field is missing: id, collective, ppn, nodes, choice", "");
    if (request->fewest > request->most)
        return ct__refuse(why, why_size, "fewest is more than most", "");
    /* All times of a point are counted with an int. */
    if (request->choice_count > INT_MAX / 2 / request->most)
        return ct__refuse(why, why_size, "so many choices cannot be repeated so often", "");
    return true;
}

bool ct_request_parse(const char *line, size_t length, ct_request *request, char *why, size_t why_size)
{
    *request = (ct_request){.id = -1, .beside = 1, .warm_up = 2, .fewest = 10, .most = 1000, .box_s = 0.05, .relative_width = 0.05};
    char *copy = malloc(length + 1);
    if (copy == NULL)
        return ct__refuse(why, why_size, "no memory for a request", "");
    memcpy(copy, line, length + 1);
    bool fine = ct__read_fields(copy, request, why, why_size);
    if (strlen(line) < length) /* what stands before it was read for the id */
        fine = ct__refuse(why, why_size, "a zero byte in a request", "");
    free(copy);
    if (!fine)
        ct_request_free(request);
    return fine;
}

void ct_request_free(ct_request *request)
{
    for (int i = 0; i < request->choice_count; i++) {
        free(request->choices[i].settings);
        free(request->choices[i].missing);
    }
    for (int i = 0; i < request->name_count; i++)
        free(request->names[i]);
    free(request->names);
    free(request->choices);
    free(request->nodes);
    free(request->collective);
    *request = (ct_request){.id = request->id};
}
