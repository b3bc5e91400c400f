/* Rules as text, for the live selector and for the all-to-all: one choice for each shape and size of a collective.
 *
 *     colltune-rules 2
 *     choice NUMBER NEED,...|- NAME=VALUE,...|- # for people
 *     rules COLLECTIVE BASIS [FIRST_CALL]
 *     rule PPN RANKS SIZE NUMBER|- [FILL,...]
 *
 * Choices are numbered from 0. A rule belongs to the collective that was named last; the first one that applies decides,
 * and "-" in place of a choice is the library's own. PPN, RANKS and SIZE are "-" (no bound), HIGH, or LOW..HIGH, both
 * included. What a basis, a need, a setting and a fill class mean is up to the reader. "colltune-live 1", an earlier name of the
 * same text, is read as well. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { CT_RULES_CHOICES = 512, CT_RULES_WHY = 200 };

typedef struct {
    long long low, high; /* high: LLONG_MAX without a bound */
} ct_rules_range;

typedef enum { CT_RULES_END, CT_RULES_FAULT, CT_RULES_CHOICE, CT_RULES_COLLECTIVE, CT_RULES_RULE } ct_rules_kind;

/* The position in a text, and the line that was read last; only the members of its kind are set. */
typedef struct {
    char *rest;  /* the text, which reading changes */
    int line;    /* counted from 1 */
    int choices; /* read so far */
    ct_rules_range ppn, ranks, size;
    int choice;                /* of a rule; -1: the library's own */
    unsigned fill;             /* of a rule: bits of its classes; 0: any */
    char *needs, *settings;    /* of a choice: lists with commas, "" for none */
    char *collective, *basis;
    int first_call;            /* of a collective; 0: not given */
    char why[CT_RULES_WHY]; /* of a fault */
} ct_rules_text;

/* The content of a file with a 0 behind it, for the caller to free; NULL if it cannot be read. */
char *ct_rules_load(const char *path, size_t *length);
/* Starts reading `text`, which must outlive the reader. */
void ct_rules_begin(ct_rules_text *rules, char *text);
/* The next line that says something, its kind and numbers checked. */
ct_rules_kind ct_rules_next(ct_rules_text *rules);
/* Takes NAME=VALUE off a list of settings; false at its end. `value` is NULL where there is no "=". */
bool ct_rules_setting(char **settings, char **name, char **value);
/* A whole number from `least` to `most`. */
bool ct_rules_number(const char *text, long long least, long long most, long long *value);
