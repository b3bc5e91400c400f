/* A reader of JSON text, value by value; enough for look-up tables, strict about their form. */
#ifndef CT_JSON_H
#define CT_JSON_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *at;
    bool failed; /* once set, every further call does nothing */
} ct_json;

/* Called for each member or item; reads exactly one value. `name` is "" for items. */
typedef void ct_json_visit(ct_json *json, const char *name, void *context);

void ct_json_object(ct_json *json, ct_json_visit *visit, void *context);
void ct_json_array(ct_json *json, ct_json_visit *visit, void *context);
double ct_json_number(ct_json *json);
void ct_json_string(ct_json *json, char *to, size_t size);
void ct_json_skip(ct_json *json);
/* Whether nothing but white space is left. */
bool ct_json_end(ct_json *json);

#endif
