/* The text of the rules.
 *
 *     colltune-live 1
 *     choice NUMBER NEED,leaders-NEED,node-NEED|- VARIABLE=VALUE,...|- # for people
 *     rules COLLECTIVE none|message|total
 *     rule MAX_PPN|- MAX_RANKS|- MAX_SIZE|- NUMBER|-
 *
 * A rule belongs to the collective that was named last. */
#define _POSIX_C_SOURCE 200809L

#include "select.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ct_select_choice ct_select_choices[CT_SELECT_CHOICES];
int ct_select_choice_count;
ct_select_rules ct_select_table[CT_FUNCTIONS];

/* What follows the beginning of `word`, or NULL if that is another. */
static const char *ct__after(const char *word, const char *beginning)
{
    size_t length = strlen(beginning);
    return strncmp(word, beginning, length) == 0 ? word + length : NULL;
}

static bool ct__parse_needs(char *text, ct_select_needs *needs)
{
    static const char *const NAMES[] = {"power-of-two", "commutative", "builtin-op", "count-ge-pof2", "regular-counts",
                                        "not-in-place", "in-place", "parent-comm", "one-node", "two-ranks",
                                        "even-ranks", "count-ge-ranks"};
    enum { COUNT = sizeof NAMES / sizeof *NAMES };
    *needs = (ct_select_needs){0};
    char *rest = NULL;
    for (char *word = strtok_r(text, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        const char *leaders = ct__after(word, "leaders-"), *node = ct__after(word, "node-");
        const char *name = leaders != NULL ? leaders : node != NULL ? node : word;
        unsigned *of = leaders != NULL ? &needs->leaders : node != NULL ? &needs->node : &needs->whole;
        int i = 0;
        while (i < COUNT && strcmp(name, NAMES[i]) != 0)
            i++;
        if (i == COUNT && strcmp(word, "-") != 0)
            return false;
        if (i < COUNT)
            *of |= 1u << i;
    }
    return true;
}

/* A bound, or the largest number for "-". */
static bool ct__parse_bound(const char *text, long long largest, long long *value)
{
    char *end;
    *value = strcmp(text, "-") == 0 ? largest : strtoll(text, &end, 10);
    return strcmp(text, "-") == 0 || (end != text && *end == '\0' && *value >= 0 && *value <= largest);
}

static bool ct__parse_choice(char *words[4], char *why, size_t why_size)
{
    if (ct_select_choice_count == CT_SELECT_CHOICES || atoi(words[0]) != ct_select_choice_count)
        return snprintf(why, why_size, "choice %s is not number %d", words[0], ct_select_choice_count), false;
    ct_select_choice *choice = &ct_select_choices[ct_select_choice_count];
    if (!ct__parse_needs(words[1], &choice->needs))
        return snprintf(why, why_size, "choice %s has a need that is not known", words[0]), false;
    char *rest = NULL;
    bool none = strcmp(words[2], "-") == 0;
    for (char *pair = none ? NULL : strtok_r(words[2], ",", &rest); pair != NULL; pair = strtok_r(NULL, ",", &rest)) {
        char *equals = strchr(pair, '=');
        if (equals == NULL || choice->count == CT_SELECT_SETTINGS)
            return snprintf(why, why_size, "choice %s has settings that cannot be read", words[0]), false;
        *equals = '\0';
        ct_setting *setting = &choice->settings[choice->count++];
        *setting = (ct_setting){.variable = ct_variable_find(pair), .value = atoi(equals + 1)};
        if (setting->variable < 0)
            return snprintf(why, why_size, "this MPI has no control variable %s", pair), false;
    }
    ct_select_choice_count++;
    return true;
}

static bool ct__parse_rules(char *words[4], ct_select_rules **rules)
{
    static const char *const BASES[] = {"none", "message", "total"};
    *rules = NULL;
    for (int f = 0; f < CT_FUNCTIONS; f++)
        if (strcmp(words[0], ct_function_name((ct_function)f)) == 0)
            *rules = &ct_select_table[f];
    for (int b = 0; b < 3 && *rules != NULL; b++)
        if (strcmp(words[1], BASES[b]) == 0)
            return (*rules)->basis = (ct_basis)b, true;
    return false;
}

static bool ct__parse_rule(char *words[4], ct_select_rules *rules)
{
    long long ppn, ranks, size, choice;
    if (rules == NULL || !ct__parse_bound(words[0], LONG_MAX, &ppn) || !ct__parse_bound(words[1], LONG_MAX, &ranks) ||
        !ct__parse_bound(words[2], LLONG_MAX, &size) || !ct__parse_bound(words[3], LLONG_MAX, &choice))
        return false;
    choice = choice == LLONG_MAX ? -1 : choice;
    ct_select_rule *larger = realloc(rules->rules, sizeof *larger * (size_t)(rules->count + 1));
    if (larger == NULL || choice >= ct_select_choice_count)
        return false;
    rules->rules = larger;
    rules->rules[rules->count++] = (ct_select_rule){(long)ppn, (long)ranks, (MPI_Count)size, (int)choice};
    return true;
}

bool ct_select_parse(char *text, char *why, size_t why_size)
{
    ct_select_rules *rules = NULL;
    char *rest = NULL;
    int number = 0;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        char *more = NULL, *kind, *words[4] = {NULL};
        number++;
        line[strcspn(line, "#")] = '\0';
        kind = strtok_r(line, " ", &more);
        for (int i = 0; i < 4 && kind != NULL; i++)
            words[i] = strtok_r(NULL, " ", &more);
        bool fine = false;
        snprintf(why, why_size, "line %d of the rules cannot be read", number);
        if (kind == NULL)
            fine = number > 1;
        else if (number == 1)
            fine = strcmp(kind, "colltune-live") == 0 && words[0] != NULL && strcmp(words[0], "1") == 0;
        else if (strcmp(kind, "choice") == 0)
            fine = words[2] != NULL && ct__parse_choice(words, why, why_size);
        else if (strcmp(kind, "rules") == 0)
            fine = words[1] != NULL && ct__parse_rules(words, &rules);
        else if (strcmp(kind, "rule") == 0)
            fine = words[3] != NULL && ct__parse_rule(words, rules);
        if (!fine)
            return false;
    }
    return number > 0;
}
