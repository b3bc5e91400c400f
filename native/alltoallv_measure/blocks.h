/* The blocks that are exchanged while settings are measured. */
#ifndef CT_BLOCKS_H
#define CT_BLOCKS_H

#include "weights.h"

#include <mpi.h>

/* The files with matrices of bytes, in text, a row for each sender. They are read when they are asked for. */
void ct_blocks_files(int count, char **paths);
/* Bytes that this rank of `comm` sends to and receives from each. Collective; an MPI error code, MPI_ERR_FILE for a matrix of
 * another number of ranks: then the first rank knows why. */
int ct_blocks_draw(const ct_blocks *b, MPI_Comm comm, int *sent, int *received);
const char *ct_blocks_why(void);

#endif
