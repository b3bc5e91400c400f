/* Prints, of a heap that gives back: the least block in bytes that counts as large, and the page faults of ten calls with
 * two blocks of 128 KiB each, after room was left at the end of the heap.
 *
 * Before that the process frees a mapped block of 184 KiB, as MPI libraries do when they start. */
#include "heap.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, BLOCK = 128 * 1024, MAPPED = 46 * PAGE, STAYS = 100 * 1000, ROOM = 70 * 1000 };

static void call(void)
{
    char *volatile one = malloc(BLOCK), *volatile other = malloc(BLOCK);
    memset(one, 1, BLOCK), memset(other, 1, BLOCK);
    free(other), free(one);
}

static long faults_of_ten(void)
{
    call();
    long before = ct_heap_faults();
    for (int i = 0; i < 10; i++)
        call();
    return ct_heap_faults() - before;
}

int main(void)
{
    char *volatile mapped = malloc(MAPPED - 64); /* volatile: compilers leave out what is only freed */
    free(mapped); /* with its head is the mmap threshold from now on */
    ct_heap_give_back(0);
    size_t large = 0;
    while (!ct_heap_is_large(large))
        large += 16;
    char *volatile stays = malloc(STAYS), *volatile room = malloc(ROOM);
    free(room);
    ct_heap_give_back(0);
    printf("%zu %ld\n", large, faults_of_ten());
    free(stays);
    return 0;
}
