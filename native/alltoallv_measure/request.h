/* What is to be measured, from a line of the host (main.c describes it). */
#ifndef CT_ALLTOALLV_REQUEST_H
#define CT_ALLTOALLV_REQUEST_H

#include "algorithms.h"
#include "blocks.h"

enum { CT_MEASURE_TUNED = -2, CT_MEASURE_CHOICES = 128, CT_MEASURE_REPETITIONS = 10000 };

typedef struct {
    ct_blocks blocks;
    int nodes, ppn, repetitions, choice_count;
    long id;
    ct_alltoallv_choice choices[CT_MEASURE_CHOICES]; /* algorithm: CT_MEASURE_TUNED for the table in force */
} ct_measure_request;

/* False for a line that cannot be read, or asks for what cannot be. Whether the job has such a part is not known here. */
bool ct_measure_parse(const char *line, ct_measure_request *request);

#endif
