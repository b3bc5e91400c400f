/* Reads look-up tables: a JSON object with "format": 1 and "entries".
 *
 * An entry: "ranks": [low, high], "ppn": [low, high], "first_call" (2 if absent), "rules": [...]; a rule: "average_bytes": [low, high], "fill": [classes]
 * (all if absent), "algorithm", "radix", "batch", "direct_above". Of entries, and of rules, the first that fits counts. */
#include "table.h"
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CT__FORMAT = 1, CT__FILE_MOST = 64 << 20, CT__FIRST_CALL = 2 };

typedef struct {
    double low, high;
    int count;
} ct__range;

typedef struct {
    ct__range bytes;
    unsigned fills; /* bits */
    ct_alltoallv_choice choice;
    bool known;
} ct__rule;

typedef struct {
    int ranks, ppn; /* ppn 0: any */
    ct_table *table; /* NULL: only `found` is wanted */
    bool found;      /* an entry that fits */
    int first_call;  /* of that one */
    int format;
    /* the entry that is being read */
    ct__range entry_ranks, entry_ppn;
    const char *rules;
    int entry_first_call;
} ct__reader;

int64_t ct_size_class_low(int size_class)
{
    if (size_class < 2)
        return size_class;
    int64_t low = (int64_t)1 << (size_class / 2);
    return size_class % 2 ? low + low / 2 : low;
}

static void ct__read_bound(ct_json *json, const char *name, void *context)
{
    ct__range *range = context;
    double value = ct_json_number(json);
    (void)name;
    if (range->count == 0)
        range->low = value;
    range->high = value;
    if (++range->count > 2)
        json->failed = true;
}

static void ct__read_range(ct_json *json, ct__range *range)
{
    *range = (ct__range){0};
    ct_json_array(json, ct__read_bound, range);
    if (range->count != 2 || range->low > range->high)
        json->failed = true;
}

static void ct__read_fill(ct_json *json, const char *name, void *context)
{
    double value = ct_json_number(json);
    (void)name;
    if (value < 0 || value >= CT_FILL_CLASSES)
        json->failed = true;
    else
        *(unsigned *)context |= 1u << (int)value;
}

static int ct__read_int(ct_json *json)
{
    double value = ct_json_number(json);
    if (!(value >= 0 && value <= 1 << 30) || value != floor(value))
        json->failed = true;
    return json->failed ? 0 : (int)value;
}

static void ct__read_rule_member(ct_json *json, const char *name, void *context)
{
    ct__rule *rule = context;
    char text[32];
    if (strcmp(name, "average_bytes") == 0) {
        ct__read_range(json, &rule->bytes);
    } else if (strcmp(name, "fill") == 0) {
        rule->fills = 0;
        ct_json_array(json, ct__read_fill, &rule->fills);
    } else if (strcmp(name, "algorithm") == 0) {
        ct_json_string(json, text, sizeof text);
        rule->choice.algorithm = ct_alltoallv_find(text);
        rule->known = rule->choice.algorithm >= 0;
    } else if (strcmp(name, "radix") == 0) {
        rule->choice.radix = ct__read_int(json);
    } else if (strcmp(name, "batch") == 0) {
        rule->choice.batch = ct__read_int(json);
    } else if (strcmp(name, "direct_above") == 0) {
        rule->choice.direct_above = ct__read_int(json);
    } else {
        ct_json_skip(json);
    }
}

/* The index of a choice; the library's where there is no room for one more. */
static int ct__index(ct_table *table, const ct_alltoallv_choice *choice)
{
    if (choice->algorithm == CT_ALLTOALLV_LIBRARY)
        return 0;
    for (int i = 1; i < table->choice_count; i++)
        if (memcmp(&table->choices[i], choice, sizeof *choice) == 0)
            return i;
    if (table->choice_count == CT_CHOICES_MOST)
        return 0;
    table->choices[table->choice_count] = *choice;
    return table->choice_count++;
}

static void ct__read_rule(ct_json *json, const char *name, void *context)
{
    enum { UNSET = 255 };
    ct_table *table = context;
    ct__rule rule = {.fills = (1u << CT_FILL_CLASSES) - 1};
    (void)name;
    ct_json_object(json, ct__read_rule_member, &rule);
    if (json->failed || !rule.known || rule.bytes.count != 2) {
        json->failed = true; /* an algorithm of a later version, say: better none of the table than half of it */
        return;
    }
    int index = ct__index(table, &rule.choice);
    for (int fill = 0; fill < CT_FILL_CLASSES; fill++)
        for (int at = 0; at < CT_SIZE_CLASSES; at++)
            if ((rule.fills >> fill & 1) && table->choice_at[fill][at] == UNSET && ct_size_class_low(at) >= rule.bytes.low &&
                ct_size_class_low(at + 1) - 1 <= rule.bytes.high)
                table->choice_at[fill][at] = (uint8_t)index;
}

static void ct__read_entry_member(ct_json *json, const char *name, void *context)
{
    ct__reader *reader = context;
    if (strcmp(name, "ranks") == 0) {
        ct__read_range(json, &reader->entry_ranks);
    } else if (strcmp(name, "ppn") == 0) {
        ct__read_range(json, &reader->entry_ppn);
    } else if (strcmp(name, "first_call") == 0) {
        reader->entry_first_call = ct__read_int(json);
    } else {
        if (strcmp(name, "rules") == 0)
            reader->rules = json->at;
        ct_json_skip(json);
    }
}

static bool ct__inside(const ct__range *range, int value) { return range->count == 0 || (value >= range->low && value <= range->high); }

static void ct__read_entry(ct_json *json, const char *name, void *context)
{
    ct__reader *reader = context;
    (void)name;
    reader->entry_ranks = reader->entry_ppn = (ct__range){0};
    reader->rules = NULL;
    reader->entry_first_call = CT__FIRST_CALL;
    ct_json_object(json, ct__read_entry_member, reader);
    bool fits = !json->failed && reader->rules && ct__inside(&reader->entry_ranks, reader->ranks) &&
                (reader->ppn == 0 || ct__inside(&reader->entry_ppn, reader->ppn));
    if (!fits || reader->found)
        return;
    reader->found = true;
    reader->first_call = reader->entry_first_call;
    if (reader->table != NULL) {
        ct_json rules = {.at = reader->rules};
        ct_json_array(&rules, ct__read_rule, reader->table);
        json->failed = rules.failed;
    }
}

static void ct__read_top(ct_json *json, const char *name, void *context)
{
    ct__reader *reader = context;
    if (strcmp(name, "format") == 0)
        reader->format = ct__read_int(json);
    else if (strcmp(name, "entries") == 0)
        ct_json_array(json, ct__read_entry, reader);
    else
        ct_json_skip(json);
}

/* The whole file with a 0 behind it; NULL if it cannot be had. The caller frees it. */
static char *ct__text(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    if (file == NULL)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        long bytes = ftell(file);
        if (bytes >= 0 && bytes <= CT__FILE_MOST && fseek(file, 0, SEEK_SET) == 0 && (text = calloc((size_t)bytes + 1, 1)) &&
            fread(text, 1, (size_t)bytes, file) != (size_t)bytes) {
            free(text);
            text = NULL;
        }
    }
    fclose(file);
    return text;
}

static bool ct__read(const char *path, ct__reader *reader)
{
    char *text = ct__text(path);
    if (text == NULL)
        return false;
    ct_json json = {.at = text};
    ct_json_object(&json, ct__read_top, reader);
    bool whole = ct_json_end(&json) && reader->format == CT__FORMAT;
    free(text);
    return whole;
}

int ct_table_first_call(const char *path, int ranks)
{
    ct__reader reader = {.ranks = ranks};
    if (!ct__read(path, &reader) || !reader.found)
        return 0;
    return reader.first_call < CT__FIRST_CALL ? CT__FIRST_CALL : reader.first_call;
}

bool ct_table_load(const char *path, int ranks, int ppn, ct_table *table, char *why, size_t why_size)
{
    ct__reader reader = {.ranks = ranks, .ppn = ppn, .table = table};
    memset(table, 0, sizeof *table);
    memset(table->choice_at, 255, sizeof table->choice_at);
    table->choice_count = 1;
    bool whole = ct__read(path, &reader);
    for (int fill = 0; fill < CT_FILL_CLASSES; fill++)
        for (int at = 0; at < CT_SIZE_CLASSES; at++)
            if (!whole || table->choice_at[fill][at] >= table->choice_count)
                table->choice_at[fill][at] = 0;
    if (!whole)
        snprintf(why, why_size, "%s cannot be read, or is not a look-up table of format %d", path, CT__FORMAT);
    return whole;
}
