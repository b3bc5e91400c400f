/* JSON by recursive descent, in place. */
#include "json.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static char ct__peek(ct_json *json)
{
    while (*json->at != '\0' && strchr(" \t\r\n", *json->at) != NULL)
        json->at++;
    return *json->at;
}

static bool ct__take(ct_json *json, char wanted)
{
    if (json->failed || ct__peek(json) != wanted)
        return false;
    json->at++;
    return true;
}

static void ct__need(ct_json *json, char wanted)
{
    if (!ct__take(json, wanted))
        json->failed = true;
}

static void ct__series(ct_json *json, char open, char close, ct_json_visit *visit, void *context)
{
    char name[64] = "";
    ct__need(json, open);
    if (json->failed || ct__take(json, close))
        return;
    do {
        if (open == '{') {
            ct_json_string(json, name, sizeof name);
            ct__need(json, ':');
        }
        if (!json->failed)
            visit(json, name, context);
    } while (ct__take(json, ','));
    ct__need(json, close);
}

void ct_json_object(ct_json *json, ct_json_visit *visit, void *context) { ct__series(json, '{', '}', visit, context); }
void ct_json_array(ct_json *json, ct_json_visit *visit, void *context) { ct__series(json, '[', ']', visit, context); }

double ct_json_number(ct_json *json)
{
    char *end;
    char first = ct__peek(json);
    if (json->failed || !(isdigit((unsigned char)first) || first == '-')) {
        json->failed = true;
        return 0.0;
    }
    double value = strtod(json->at, &end);
    json->failed = end == json->at;
    json->at = end;
    return value;
}

/* Escapes are kept as they are written; no name of ours has any. */
void ct_json_string(ct_json *json, char *to, size_t size)
{
    size_t length = 0;
    ct__need(json, '"');
    while (!json->failed && *json->at != '"') {
        if (*json->at == '\\' && json->at[1] != '\0')
            json->at++;
        json->failed = *json->at == '\0';
        if (!json->failed && length + 1 < size)
            to[length++] = *json->at;
        if (!json->failed)
            json->at++;
    }
    if (size > 0)
        to[length] = '\0';
    ct__need(json, '"');
}

static void ct__skip_one(ct_json *json, const char *name, void *context)
{
    int *depth = context;
    (void)name;
    if (++*depth > 64) /* so that a hostile file cannot use up the stack */
        json->failed = true;
    char first = ct__peek(json), text[8];
    if (json->failed)
        return;
    if (first == '{')
        ct_json_object(json, ct__skip_one, depth);
    else if (first == '[')
        ct_json_array(json, ct__skip_one, depth);
    else if (first == '"')
        ct_json_string(json, text, sizeof text);
    else if (isalpha((unsigned char)first))
        while (isalpha((unsigned char)*json->at))
            json->at++;
    else
        ct_json_number(json);
    --*depth;
}

void ct_json_skip(ct_json *json)
{
    int depth = 0;
    ct__skip_one(json, "", &depth);
}

bool ct_json_end(ct_json *json) { return !json->failed && ct__peek(json) == '\0'; }
