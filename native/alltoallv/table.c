/* Reads look-up tables, from the text that common/rules.h describes: the collective is "alltoallv", the size its
 * "average" block, and the settings of a choice are "algorithm", "radix", "batch" and "direct_above". */
#include "table.h"
#include "rules.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CT__FIRST_CALL = 2, CT__UNSET = 255 };

int64_t ct_size_class_low(int size_class)
{
    if (size_class < 2)
        return size_class;
    int64_t low = (int64_t)1 << (size_class / 2);
    return size_class % 2 ? low + low / 2 : low;
}

static bool ct__parse_choice(char *settings, ct_alltoallv_choice *choice)
{
    char *name, *value;
    long long number;
    *choice = (ct_alltoallv_choice){.algorithm = -1};
    while (ct_rules_setting(&settings, &name, &value)) {
        int *to = strcmp(name, "radix") == 0          ? &choice->radix
                  : strcmp(name, "batch") == 0        ? &choice->batch
                  : strcmp(name, "direct_above") == 0 ? &choice->direct_above
                                                      : NULL;
        if (value != NULL && strcmp(name, "algorithm") == 0)
            choice->algorithm = ct_alltoallv_find(value);
        else if (value != NULL && to != NULL && ct_rules_number(value, 0, 1 << 30, &number))
            *to = (int)number;
        else
            return false;
    }
    return choice->algorithm >= 0;
}

/* The index of a choice; the library's where there is no room for one more. */
static int ct__index(ct_table *table, const ct_alltoallv_choice *choice)
{
    if (choice == NULL || choice->algorithm == CT_ALLTOALLV_LIBRARY)
        return 0;
    for (int i = 1; i < table->choice_count; i++)
        if (memcmp(&table->choices[i], choice, sizeof *choice) == 0)
            return i;
    if (table->choice_count == CT_CHOICES_MOST)
        return 0;
    table->choices[table->choice_count] = *choice;
    return table->choice_count++;
}

/* Writes `choice`, or the library's own for NULL, into the cells of a rule that no earlier rule has written. */
static void ct__apply(ct_table *table, const ct_rules_text *rule, const ct_alltoallv_choice *choice)
{
    int index = ct__index(table, choice);
    for (int fill = 0; fill < CT_FILL_CLASSES; fill++)
        for (int at = 0; at < CT_SIZE_CLASSES; at++)
            if ((rule->fill == 0 || rule->fill >> fill & 1) && table->choice_at[fill][at] == CT__UNSET &&
                ct_size_class_low(at) >= rule->size.low && ct_size_class_low(at + 1) - 1 <= rule->size.high)
                table->choice_at[fill][at] = (uint8_t)index;
}

static bool ct__holds(const ct_rules_range *range, int value) { return value >= range->low && value <= range->high; }

/* Reads the text for so many ranks, and ranks per node (0: any). `table` may be NULL. `first_call`: of the rules that hold for
 * them the latest, 0 if none does: what is set up too early may be for nothing. */
static bool ct__parse(ct_rules_text *text, int ranks, int ppn, ct_table *table, int *first_call)
{
    static const char NAME[] = "alltoallv", BASIS[] = "average";
    ct_alltoallv_choice choices[CT_RULES_CHOICES];
    for (ct_rules_kind kind; (kind = ct_rules_next(text)) != CT_RULES_END;) {
        bool fine = kind == CT_RULES_RULE && text->fill >> CT_FILL_CLASSES == 0;
        if (kind == CT_RULES_CHOICE) /* an algorithm of a later version, say: better none of the table than half of it */
            fine = ct__parse_choice(text->settings, &choices[text->choices - 1]);
        else if (kind == CT_RULES_COLLECTIVE)
            fine = strcmp(text->collective, NAME) == 0 && strcmp(text->basis, BASIS) == 0;
        if (!fine) {
            if (kind != CT_RULES_FAULT)
                snprintf(text->why, sizeof text->why, "line %d of the table cannot be read", text->line);
            return false;
        }
        if (kind != CT_RULES_RULE || !ct__holds(&text->ranks, ranks) || (ppn > 0 && !ct__holds(&text->ppn, ppn)))
            continue;
        int call = text->first_call < CT__FIRST_CALL ? CT__FIRST_CALL : text->first_call;
        if (*first_call == 0 || (ppn == 0 && *first_call < call))
            *first_call = call;
        if (table != NULL)
            ct__apply(table, text, text->choice < 0 ? NULL : &choices[text->choice]);
    }
    return true;
}

/* As ct__parse, from a file. Says in `why` what is wrong. */
static bool ct__read(const char *path, int ranks, int ppn, ct_table *table, int *first_call, char *why, size_t why_size)
{
    size_t length;
    ct_rules_text text = {.why = "it cannot be read"};
    char *content = ct_rules_load(path, &length);
    bool whole = false;
    if (content != NULL) {
        ct_rules_begin(&text, content);
        whole = ct__parse(&text, ranks, ppn, table, first_call);
    }
    if (!whole)
        snprintf(why, why_size, "%s (%s)", text.why, path);
    free(content);
    return whole;
}

int ct_table_first_call(const char *path, int ranks, int ppn, char *why, size_t why_size)
{
    int first_call = 0;
    return ct__read(path, ranks, ppn, NULL, &first_call, why, why_size) ? first_call : -1;
}

bool ct_table_load(const char *path, int ranks, int ppn, ct_table *table, char *why, size_t why_size)
{
    int first_call = 0;
    memset(table, 0, sizeof *table);
    memset(table->choice_at, CT__UNSET, sizeof table->choice_at);
    table->choice_count = 1;
    bool whole = ct__read(path, ranks, ppn, table, &first_call, why, why_size);
    for (int fill = 0; fill < CT_FILL_CLASSES; fill++)
        for (int at = 0; at < CT_SIZE_CLASSES; at++)
            if (!whole || table->choice_at[fill][at] >= table->choice_count)
                table->choice_at[fill][at] = 0;
    if (!whole)
        table->choice_count = 1;
    return whole;
}
