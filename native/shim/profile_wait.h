/* How long ranks wait for the last one. */
#ifndef CT_PROFILE_WAIT_H
#define CT_PROFILE_WAIT_H

#include "profile_table.h"

/* How many calls a blocking call of a communicator stands for in what is sampled; 0: it is not sampled. */
uint32_t ct_profile_sampled(const ct_comm *comm, uint64_t sequence);
/* Notes a blocking call for the estimate of waiting, if it is one of those that are sampled. */
void ct_profile_stamp_call(const ct_call *call, const ct_profile_record *record, uint64_t sequence, uint64_t elapsed_ns);
/* Collective: the clocks of the nodes against that of the first. */
void ct_profile_clocks(bool at_end);
/* Collective: fills in the counters of waiting from the stamps of all ranks. */
void ct_profile_waiting(void);

#endif
