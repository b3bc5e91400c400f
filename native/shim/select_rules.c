/* The rules of the live selector, from the text that native/common/rules.h describes. */
#define _POSIX_C_SOURCE 200809L

#include "rules.h"
#include "select.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ct_select_choice ct_select_choices[CT_SELECT_CHOICES];
int ct_select_choice_count, ct_select_first_candidate = CT_SELECT_CHOICES;
ct_select_tables ct_select_table;

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
        if (i == COUNT)
            return false;
        *of |= 1u << i;
    }
    return true;
}

static bool ct__parse_settings(char *settings, ct_select_choice *choice, char *why, size_t why_size)
{
    char *name, *value;
    long long number;
    while (ct_rules_setting(&settings, &name, &value)) {
        if (value == NULL || choice->count == CT_SELECT_SETTINGS || !ct_rules_number(value, INT_MIN, INT_MAX, &number))
            return snprintf(why, why_size, "choice %d has settings that cannot be read", ct_select_choice_count), false;
        ct_setting *setting = &choice->settings[choice->count++];
        *setting = (ct_setting){.variable = ct_variable_find(name), .value = (int)number};
        if (setting->variable < 0)
            return snprintf(why, why_size, "this MPI has no control variable %s", name), false;
    }
    return true;
}

static bool ct__parse_choice(const ct_rules_text *text, char *why, size_t why_size)
{
    if (ct_select_choice_count == CT_SELECT_CHOICES)
        return snprintf(why, why_size, "there are more than %d choices", CT_SELECT_CHOICES), false;
    ct_select_choice *choice = &ct_select_choices[ct_select_choice_count];
    if (!ct__parse_needs(text->needs, &choice->needs))
        return snprintf(why, why_size, "choice %d has a need that is not known", ct_select_choice_count), false;
    if (!ct__parse_settings(text->settings, choice, why, why_size))
        return false;
    ct_select_choice_count++;
    return true;
}

/* "bcast", or "ibcast" for the other forms. */
static bool ct__parse_collective(const ct_rules_text *text, ct_select_rules table[CT_SELECT_KINDS],
                                 ct_select_rules **rules)
{
    static const char *const BASES[] = {"none", "message", "total"};
    *rules = NULL;
    for (int f = 0; f < CT_FUNCTIONS; f++) {
        const char *name = ct_function_name((ct_function)f);
        if (strcmp(text->collective, name) == 0)
            *rules = &table[f];
        else if (text->collective[0] == 'i' && strcmp(text->collective + 1, name) == 0)
            *rules = &table[CT_FUNCTIONS + f];
    }
    for (int b = 0; b < 3 && *rules != NULL; b++)
        if (strcmp(text->basis, BASES[b]) == 0)
            return (*rules)->basis = (ct_basis)b, true;
    return false;
}

/* A rule of the selector has upper bounds alone: those before it have decided what lies below. */
static bool ct__add_rule(const ct_rules_text *text, int first_choice, ct_select_rules *rules)
{
    if (text->ppn.low > 0 || text->ranks.low > 0 || text->size.low > 0 || text->fill != 0)
        return false;
    ct_select_rule *larger = realloc(rules->rules, sizeof *larger * (size_t)(rules->count + 1));
    if (larger == NULL)
        return false;
    rules->rules = larger;
    ct_select_rule *rule = &rules->rules[rules->count++];
    *rule = (ct_select_rule){(long)text->ppn.high, (long)text->ranks.high, (MPI_Count)text->size.high,
                             text->choice < 0 ? -1 : first_choice + text->choice, rules->count};
    for (int i = rules->count - 2; i >= 0 && larger[i].max_ppn == rule->max_ppn && larger[i].max_ranks == rule->max_ranks; i--)
        larger[i].next_shape = rules->count;
    return true;
}

bool ct_select_parse(char *content, ct_select_rules table[CT_SELECT_KINDS], char *why, size_t why_size)
{
    int first_choice = ct_select_choice_count;
    ct_rules_text text;
    ct_select_rules *rules = NULL;
    bool fine = true;
    ct_rules_begin(&text, content);
    for (ct_rules_kind kind; fine && (kind = ct_rules_next(&text)) != CT_RULES_END;) {
        snprintf(why, why_size, "line %d of the rules cannot be read", text.line);
        if (kind == CT_RULES_FAULT)
            return snprintf(why, why_size, "%s", text.why), false;
        fine = kind == CT_RULES_CHOICE       ? ct__parse_choice(&text, why, why_size)
               : kind == CT_RULES_COLLECTIVE ? ct__parse_collective(&text, table, &rules)
                                             : ct__add_rule(&text, first_choice, rules);
    }
    return fine;
}
