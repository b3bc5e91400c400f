/* Reads look-up tables, from the text that common/rules.h describes: the collective is "alltoallv", the size its
 * "average" block, and the settings of a choice are "algorithm", "radix", "batch" and "direct_above". */
#include "table.h"
#include "algorithms.h"

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

bool ct_table_parse(char *content, ct_table_rules *rules, char *why, size_t why_size)
{
    static const char NAME[] = "alltoallv", BASIS[] = "average";
    ct_rules_text text;
    ct_rules_begin(&text, content);
    *rules = (ct_table_rules){0};
    bool fine = true;
    int room = 0;
    for (ct_rules_kind kind; fine && (kind = ct_rules_next(&text)) != CT_RULES_END;) {
        fine = kind == CT_RULES_RULE && text.fill >> CT_FILL_CLASSES == 0;
        if (kind == CT_RULES_CHOICE) /* an algorithm of a later version, say: better none of the table than half of it */
            fine = ct__parse_choice(text.settings, &rules->choices[text.choices - 1]);
        else if (kind == CT_RULES_COLLECTIVE)
            fine = strcmp(text.collective, NAME) == 0 && strcmp(text.basis, BASIS) == 0;
        if (!fine && kind != CT_RULES_FAULT)
            snprintf(text.why, sizeof text.why, "line %d of the table cannot be read", text.line);
        if (!fine || kind != CT_RULES_RULE)
            continue;
        ct_table_rule *more = ct_grown(rules->rules, rules->count, &room, sizeof *more);
        if ((fine = more != NULL))
            rules->rules = more;
        else
            snprintf(text.why, sizeof text.why, "no memory for the table");
        if (fine)
            rules->rules[rules->count++] = (ct_table_rule){
                text.ranks, text.ppn, text.size, text.fill,
                text.first_call < CT__FIRST_CALL ? CT__FIRST_CALL : text.first_call, text.choice};
    }
    if (!fine) {
        ct_table_forget(rules);
        snprintf(why, why_size, "%s", text.why);
    }
    return fine;
}

void ct_table_forget(ct_table_rules *rules)
{
    free(rules->rules);
    *rules = (ct_table_rules){0};
}

static bool ct__holds(const ct_table_rule *rule, int ranks, int ppn)
{
    return ranks >= rule->ranks.low && ranks <= rule->ranks.high && (ppn == 0 || (ppn >= rule->ppn.low && ppn <= rule->ppn.high));
}

int ct_table_first_call(const ct_table_rules *rules, int ranks, int ppn)
{
    int first_call = 0;
    for (const ct_table_rule *rule = rules->rules; rule < rules->rules + rules->count; rule++)
        if (ct__holds(rule, ranks, ppn) && (first_call == 0 || (ppn == 0 && first_call < rule->first_call)))
            first_call = rule->first_call;
    return first_call;
}

/* Writes `choice`, or the library's own for NULL, into the cells of a rule that no earlier rule has written. */
static void ct__apply(ct_table *table, const ct_table_rule *rule, const ct_alltoallv_choice *choice)
{
    int index = ct__index(table, choice);
    for (int fill = 0; fill < CT_FILL_CLASSES; fill++)
        for (int at = 0; at < CT_SIZE_CLASSES; at++)
            if ((rule->fill == 0 || rule->fill >> fill & 1) && table->choice_at[fill][at] == CT__UNSET &&
                ct_size_class_low(at) >= rule->size.low && ct_size_class_low(at + 1) - 1 <= rule->size.high)
                table->choice_at[fill][at] = (uint8_t)index;
}

void ct_table_fill(const ct_table_rules *rules, int ranks, int ppn, ct_table *table)
{
    memset(table, 0, sizeof *table);
    memset(table->choice_at, CT__UNSET, sizeof table->choice_at);
    table->choice_count = 1;
    for (const ct_table_rule *rule = rules->rules; rule < rules->rules + rules->count; rule++)
        if (ct__holds(rule, ranks, ppn))
            ct__apply(table, rule, rule->choice < 0 ? NULL : &rules->choices[rule->choice]);
    ct__apply(table, &(ct_table_rule){.size = {0, INT64_MAX}}, NULL); /* what no rule has written */
    for (int i = 1; i < table->choice_count; i++)
        table->choices[i] = ct_choice_normal(&table->choices[i], ranks);
}
