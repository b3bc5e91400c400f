/* glibc's thresholds, and what blocks are asked for.
 *
 * A block at or above the mmap threshold is mapped for itself, and unmapped when it is freed. The threshold is 128 KiB at
 * first; it grows to the size of any mapped block up to 32 MiB that is freed, and the trim threshold to twice that. Free
 * memory at the end of the heap beyond the trim threshold goes back to the system. Once mallopt has set either, neither
 * grows any more, so what they would have grown to is set here (mallopt(3); malloc/malloc.c of glibc). */
#define _GNU_SOURCE
#include "heap.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum {
    CT__PAGE = 4096,
    CT__HEAD = 16,                 /* of a mapped block, beside its contents */
    CT__FRESH = 128 * 1024,        /* both thresholds of a fresh program */
    CT__MOST_GROWN = 32 << 20,     /* no larger block moves a threshold */
    CT__KEEPING = 256 << 20
};

#if defined __GLIBC__ && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define CT__WATCHES 1
#else
#define CT__WATCHES 0
#endif

static size_t ct__largest;

void ct_heap_watch(void) { __atomic_store_n(&ct__largest, 0, __ATOMIC_RELAXED); }
size_t ct_heap_largest(void) { return __atomic_load_n(&ct__largest, __ATOMIC_RELAXED); }

/* The mmap threshold of a program that has only begun: what it freed by then, as MPI_Init does, has moved it. */
static size_t ct__begun = CT__FRESH;

bool ct_heap_is_large(size_t bytes) { return bytes + CT__HEAD >= ct__begun; }

#if CT__WATCHES

/* What dlsym itself asks for while the functions are looked up, in C libraries of before 2.34. */
static _Alignas(max_align_t) char ct__early[4096];
static size_t ct__early_used;

static void ct__note(size_t bytes)
{
    if (bytes <= CT__MOST_GROWN && bytes > __atomic_load_n(&ct__largest, __ATOMIC_RELAXED))
        __atomic_store_n(&ct__largest, bytes, __ATOMIC_RELAXED);
}

/* The next function of this name: the C library's, or that of an allocator which was preloaded. NULL while it is looked
 * up. */
static void *ct__next(const char *name, void **kept)
{
    static __thread bool looking;
    void *symbol = __atomic_load_n(kept, __ATOMIC_RELAXED);
    if (symbol == NULL && !looking) {
        looking = true;
        symbol = dlsym(RTLD_NEXT, name);
        looking = false;
        __atomic_store_n(kept, symbol, __ATOMIC_RELAXED);
    }
    return symbol;
}

static void *ct__ask_early(size_t bytes)
{
    size_t at = ct__early_used, rounded = (bytes + 15) / 16 * 16;
    if (rounded > sizeof ct__early - at)
        return NULL;
    ct__early_used = at + rounded;
    return ct__early + at;
}

void *malloc(size_t bytes)
{
    static void *kept;
    void *(*next)(size_t);
    *(void **)&next = ct__next("malloc", &kept);
    ct__note(bytes);
    return next == NULL ? ct__ask_early(bytes) : next(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    static void *kept;
    void *(*next)(size_t, size_t);
    *(void **)&next = ct__next("calloc", &kept);
    if (bytes == 0 || count <= SIZE_MAX / bytes)
        ct__note(count * bytes);
    return next == NULL ? ct__ask_early(count * bytes) : next(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    static void *kept;
    void *(*next)(void *, size_t);
    *(void **)&next = ct__next("realloc", &kept);
    ct__note(bytes);
    return next == NULL ? NULL : next(block, bytes);
}

#endif

bool ct_heap_moves(void)
{
    static const char *const SETTINGS[] = {"mmap_threshold", "trim_threshold", "top_pad", "mmap_max"};
    static int moves = -1;
    if (moves >= 0)
        return moves;
    const char *tunables = getenv("GLIBC_TUNABLES");
    bool set = getenv("MALLOC_MMAP_THRESHOLD_") || getenv("MALLOC_TRIM_THRESHOLD_") || getenv("MALLOC_TOP_PAD_") ||
               getenv("MALLOC_MMAP_MAX_");
    for (size_t i = 0; i < sizeof SETTINGS / sizeof *SETTINGS; i++)
        set = set || (tunables != NULL && strstr(tunables, SETTINGS[i]) != NULL);
    moves = CT__WATCHES && !set;
    return moves;
}

#if CT__WATCHES

/* Whether a block of so many bytes is mapped for itself. Freed, such a block would move the threshold, so it stays: one
 * page of it was touched. */
static bool ct__is_mapped(size_t bytes)
{
    void *block = malloc(bytes);
    if (block == NULL)
        return true;
    bool mapped = malloc_usable_size(block) - bytes > CT__PAGE / 2; /* it goes on to the end of a page of its own */
    if (!mapped) {
        free(block);
        malloc_trim(0); /* room at the end of the heap would hold the next, of whatever size */
    }
    return mapped;
}

/* Of blocks that are whole pages, the smallest that is. */
static size_t ct__find_threshold(void)
{
    size_t low = CT__FRESH / CT__PAGE, high = CT__MOST_GROWN / CT__PAGE;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ct__is_mapped(middle * CT__PAGE))
            high = middle;
        else
            low = middle + 1;
    }
    return low * CT__PAGE;
}

static void ct__set(int mapped, int trimmed)
{
    if (!ct_heap_moves())
        return;
    if (mallopt(M_MMAP_THRESHOLD, mapped) != 1) /* some releases take no more than this */
        mallopt(M_MMAP_THRESHOLD, CT__MOST_GROWN);
    mallopt(M_TRIM_THRESHOLD, trimmed);
}

void ct_heap_give_back(size_t largest)
{
    static bool known;
    if (!known && ct_heap_moves())
        ct__begun = ct__find_threshold();
    known = true;
    size_t mapped = (largest + CT__HEAD + CT__PAGE - 1) / CT__PAGE * CT__PAGE;
    mapped = mapped > ct__begun ? mapped : ct__begun;
    ct__set((int)mapped, mapped == CT__FRESH ? CT__FRESH : 2 * (int)mapped);
    if (ct_heap_moves())
        malloc_trim(0);
}

void ct_heap_keep(void) { ct__set(CT__KEEPING, CT__KEEPING); }

#else

void ct_heap_give_back(size_t largest) { (void)largest; }
void ct_heap_keep(void) {}

#endif

void *ct_heap_apart(size_t bytes)
{
    void *block = mmap(NULL, bytes > 0 ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? NULL : block;
}

void ct_heap_apart_free(void *block, size_t bytes)
{
    if (block != NULL)
        munmap(block, bytes > 0 ? bytes : 1);
}

long ct_heap_faults(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_minflt : 0;
}
