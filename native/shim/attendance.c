/* Whether every rank of the program has this library.
 *
 * What the library does at its start, and later, is collective: a rank without it would be waited for until the end of
 * time. So it must be known before the first message, and without one. Each process that has the library counts itself
 * in a few bytes of shared memory of its node before it calls the MPI's own MPI_Init. That comes back only when all ranks
 * have entered it: then all that have the library are counted, and the number is compared with the ranks of the node. */
#define _GNU_SOURCE
#include "shim.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CT__UNDECIDED, CT__WHOLE, CT__PART };

typedef struct {
    atomic_int present, decision;
} ct__roll;

static ct__roll *ct__called;
static char ct__name[128];

/* Name, parent and time of start of a process; false: not to be known. */
static bool ct__look_at(long process, char name[32], long *parent, unsigned long long *started)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    if (length <= 0)
        return false;
    text[length] = '\0';
    /* The name stands in brackets, and may hold any character. */
    char *begin = strchr(text, '('), *end = strrchr(text, ')');
    if (begin == NULL || end == NULL || end - begin > 31)
        return false;
    *end = '\0';
    strcpy(name, begin + 1);
    return sscanf(end + 1, " %*c %ld %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", parent,
                  started) == 2;
}

static bool ct__is_launcher(const char *name)
{
    static const char *const BEGINNINGS[] = {"hydra_", "pmi_proxy", "mpiexec", "mpirun", "prte", "orte", "slurmstepd", "palsd"};
    for (size_t i = 0; i < sizeof BEGINNINGS / sizeof *BEGINNINGS; i++)
        if (strncmp(name, BEGINNINGS[i], strlen(BEGINNINGS[i])) == 0)
            return true;
    return strcmp(name, "orted") == 0;
}

/* A name that the ranks of this launch on this node share, and no others: by the launcher's process that started them. */
static bool ct__find_name(void)
{
    char name[32];
    long process = getppid(), parent;
    unsigned long long started;
    for (int i = 0; i < 64 && process > 1 && ct__look_at(process, name, &parent, &started); i++, process = parent)
        if (ct__is_launcher(name)) {
            uint64_t hash = 0xcbf29ce484222325ULL; /* one daemon may start several jobs */
            for (const char *job = getenv("PMIX_NAMESPACE"); job != NULL && *job != '\0'; job++)
                hash = (hash ^ (unsigned char)*job) * 0x100000001b3ULL;
            snprintf(ct__name, sizeof ct__name, "/colltune-%ld-%llu-%llx", process, started, (unsigned long long)hash);
            return true;
        }
    return false;
}

void ct_attendance_announce(void)
{
    if (!ct__find_name())
        return;
    int file = shm_open(ct__name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    void *place = MAP_FAILED;
    if (posix_fallocate(file, 0, sizeof *ct__called) == 0)
        place = mmap(NULL, sizeof *ct__called, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (place == MAP_FAILED)
        return;
    ct__called = place;
    atomic_fetch_add(&ct__called->present, 1);
}

void ct_attendance_forget(void)
{
    if (ct__called == NULL)
        return;
    munmap(ct__called, sizeof *ct__called);
    shm_unlink(ct__name);
    ct__called = NULL;
}

static int ct__number(const char *variable)
{
    const char *text = getenv(variable);
    return text == NULL ? 0 : atoi(text);
}

/* 0: not to be known. */
static int ct__ranks_here(int world)
{
    static const char *const SAID[] = {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "PALS_LOCAL_SIZE"};
    for (size_t i = 0; i < sizeof SAID / sizeof *SAID; i++)
        if (ct__number(SAID[i]) > 0)
            return ct__number(SAID[i]);
    return ct__number("SLURM_STEP_NUM_NODES") == 1 ? world : 0;
}

/* The first that asks decides for its node. */
static bool ct__all_present(int here)
{
    int none = CT__UNDECIDED, word = atomic_load(&ct__called->present) == here ? CT__WHOLE : CT__PART;
    if (atomic_compare_exchange_strong(&ct__called->decision, &none, word)) {
        shm_unlink(ct__name); /* all have it mapped */
        if (word == CT__PART)
            fprintf(stderr, "colltune: a part of this program's ranks runs without libcolltune.so; it does nothing here. "
                            "Preload it in all ranks\n");
    } else
        word = none;
    munmap(ct__called, sizeof *ct__called);
    ct__called = NULL;
    return word == CT__WHOLE;
}

bool ct_attendance_whole(void)
{
    MPI_Comm parent = MPI_COMM_NULL;
    int world = 0, rank = 0;
    PMPI_Comm_size(MPI_COMM_WORLD, &world);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int here = ct__ranks_here(world);
    bool counted = ct__called != NULL && here > 0;
    if (counted && !ct__all_present(here))
        return false;
    ct_attendance_forget();
    /* Spawned: a program by itself, which nobody tuned or asked to profile. */
    if (PMPI_Comm_get_parent(&parent) != MPI_SUCCESS || parent != MPI_COMM_NULL)
        return false;
    /* Several programs on several nodes, where another node's ranks may be without it. */
    if (ct__number("OMPI_NUM_APP_CTX") > 1 && !(counted && here == world)) {
        if (rank == 0)
            fprintf(stderr, "colltune: several programs were launched as one on several nodes; libcolltune.so does nothing here\n");
        return false;
    }
    return true;
}
