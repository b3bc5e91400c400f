/* The state of this process's heap while calls are timed (docs/design/agent.md, "The heap").
 *
 * A program that links heap.c has its malloc, calloc and realloc pass through it: it notes the size of blocks, and nothing
 * else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether this process can be brought into either state: glibc's thresholds can be moved, unless the environment sets them. */
bool ct_heap_moves(void);
/* From now on, `ct_heap_largest` is the largest block that this process asked for, in bytes. */
void ct_heap_watch(void);
size_t ct_heap_largest(void);
/* Whether a block of so many bytes makes a difference to the heap of a fresh program. */
bool ct_heap_is_large(size_t bytes);
/* The heap gives back what is freed, as in a fresh program all of whose calls ask for blocks of up to `largest` bytes. The
 * first time the thresholds as they are count as those of a program that has only begun. */
void ct_heap_give_back(size_t largest);
/* The heap keeps what is freed. */
void ct_heap_keep(void);
/* Whole pages of zeros that are no part of the heap: what is freed in it would leave room that a fresh program has not. NULL:
 * there is no memory. */
void *ct_heap_apart(size_t bytes);
void ct_heap_apart_free(void *block, size_t bytes);
/* Page faults that this thread has had which needed no disk. */
long ct_heap_faults(void);
