/* HieAta: the exchange between nodes. */
#ifndef CT_HIEATA_BETWEEN_H
#define CT_HIEATA_BETWEEN_H

#include "steps.h"

typedef struct {
    ct_steps steps; /* of the node's ranks; steps.home holds what this rank has to forward */
    const ct_hieata_plan *plan;
    const int *own; /* this rank's list */
    int64_t *eaten; /* [m] bytes of each local source's parcel that went out already */
} ct_hieata_call;

/* Exchanges between nodes with at most `batch` of them in flight. */
int ct_hieata_between(ct_hieata_call *call, int batch, bool staggered);

#endif
