/* Radix-r Bruck over blocks, or over lists of blocks, of any size: what ParAta, two-phase Bruck and HieAta have in common. */
#ifndef CT_STEPS_H
#define CT_STEPS_H

#include "steps_message.h"

int ct_steps_run(ct_steps *steps);

#endif
