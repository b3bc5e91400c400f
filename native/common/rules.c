#define _POSIX_C_SOURCE 200809L

#include "rules.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CT__FILE_MOST = 64 << 20, CT__WORDS_MOST = 8 /* more than any line has */, CT__FILLS_MOST = 32 };

char *ct_rules_load(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    if (file == NULL)
        return NULL;
    long bytes = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (bytes >= 0 && bytes <= CT__FILE_MOST && fseek(file, 0, SEEK_SET) == 0)
        text = calloc((size_t)bytes + 1, 1);
    if (text != NULL && fread(text, 1, (size_t)bytes, file) != (size_t)bytes) {
        free(text);
        text = NULL;
    }
    fclose(file);
    *length = text != NULL ? (size_t)bytes : 0;
    return text;
}

void ct_rules_begin(ct_rules_text *rules, char *text) { *rules = (ct_rules_text){.rest = text}; }

bool ct_rules_number(const char *text, long long least, long long most, long long *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0 && *value >= least && *value <= most;
}

bool ct_rules_setting(char **settings, char **name, char **value)
{
    size_t length = strcspn(*settings, ",");
    if (**settings == '\0')
        return false;
    *name = *settings;
    *settings += length + ((*settings)[length] == ',');
    (*name)[length] = '\0';
    *value = strchr(*name, '=');
    if (*value != NULL)
        *(*value)++ = '\0';
    return true;
}

static bool ct__range(char *text, ct_rules_range *range)
{
    char *dots = strstr(text, "..");
    *range = (ct_rules_range){0, LLONG_MAX};
    if (strcmp(text, "-") == 0)
        return true;
    if (dots == NULL)
        return ct_rules_number(text, 0, LLONG_MAX, &range->high);
    *dots = '\0';
    return ct_rules_number(text, 0, LLONG_MAX, &range->low) &&
           ct_rules_number(dots + 2, range->low, LLONG_MAX, &range->high);
}

static bool ct__fill(char *list, unsigned *fill)
{
    char *rest = NULL;
    long long class;
    for (char *word = strtok_r(list, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        if (!ct_rules_number(word, 0, CT__FILLS_MOST - 1, &class))
            return false;
        *fill |= 1u << class;
    }
    return true;
}

static bool ct__choice(ct_rules_text *rules, char **words, int count)
{
    long long number;
    if (count != 3 || rules->choices == CT_RULES_CHOICES ||
        !ct_rules_number(words[0], rules->choices, rules->choices, &number))
        return false;
    rules->choices++;
    rules->needs = strcmp(words[1], "-") == 0 ? words[1] + 1 : words[1];
    rules->settings = strcmp(words[2], "-") == 0 ? words[2] + 1 : words[2];
    return true;
}

static bool ct__collective(ct_rules_text *rules, char **words, int count)
{
    long long call = 0;
    if (count < 2 || count > 3 || (count == 3 && !ct_rules_number(words[2], 1, INT_MAX, &call)))
        return false;
    rules->collective = words[0], rules->basis = words[1], rules->first_call = (int)call;
    return true;
}

static bool ct__rule(ct_rules_text *rules, char **words, int count)
{
    long long choice = -1;
    rules->fill = 0;
    bool fine = count >= 4 && count <= 5 && rules->collective != NULL && ct__range(words[0], &rules->ppn) &&
                ct__range(words[1], &rules->ranks) && ct__range(words[2], &rules->size) &&
                (strcmp(words[3], "-") == 0 || ct_rules_number(words[3], 0, rules->choices - 1, &choice)) &&
                (count == 4 || ct__fill(words[4], &rules->fill));
    rules->choice = (int)choice;
    return fine;
}

/* The next line, without its comment, cut into words; their number, or -1 at the end. */
static int ct__split(ct_rules_text *rules, char *words[CT__WORDS_MOST])
{
    char *line = rules->rest, *rest = NULL;
    if (*line == '\0')
        return -1;
    size_t length = strcspn(line, "\n");
    rules->rest = line + length + (line[length] == '\n');
    rules->line++;
    line[length] = '\0';
    line[strcspn(line, "#")] = '\0';
    int count = 0;
    for (char *word = strtok_r(line, " \t\r", &rest); word != NULL && count < CT__WORDS_MOST; count++) {
        words[count] = word;
        word = strtok_r(NULL, " \t\r", &rest);
    }
    return count;
}

static bool ct__is_head(char **words, int count)
{
    return count == 2 && ((strcmp(words[0], "colltune-rules") == 0 && strcmp(words[1], "2") == 0) ||
                          (strcmp(words[0], "colltune-live") == 0 && strcmp(words[1], "1") == 0));
}

ct_rules_kind ct_rules_next(ct_rules_text *rules)
{
    char *words[CT__WORDS_MOST];
    int count;
    if (rules->line == 0 && !ct__is_head(words, ct__split(rules, words))) {
        snprintf(rules->why, sizeof rules->why, "line 1 is not \"colltune-rules 2\"; tune again with this colltune");
        return CT_RULES_FAULT;
    }
    do
        count = ct__split(rules, words);
    while (count == 0);
    if (count < 0)
        return CT_RULES_END;
    if (strcmp(words[0], "choice") == 0 && ct__choice(rules, words + 1, count - 1))
        return CT_RULES_CHOICE;
    if (strcmp(words[0], "rules") == 0 && ct__collective(rules, words + 1, count - 1))
        return CT_RULES_COLLECTIVE;
    if (strcmp(words[0], "rule") == 0 && ct__rule(rules, words + 1, count - 1))
        return CT_RULES_RULE;
    snprintf(rules->why, sizeof rules->why, "line %d of the rules cannot be read", rules->line);
    return CT_RULES_FAULT;
}
