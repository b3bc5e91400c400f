/* Whether every rank of the program has this library.
 *
 * What the library does at its start, and later, is collective: a rank without it would be waited for until the end of
 * time. So it must be known before the first message, and without one. MPI_Init comes back only when all ranks have entered it.
 * Each process that has the library says so before it calls the MPI's own MPI_Init; after it, all that have the library have
 * said so. On one node they count themselves in a few bytes of shared memory, and the number is compared with the ranks of the
 * node. In a job of several nodes the last of a node that is whole puts that into the launcher's key-value space (keys.h). Where
 * that cannot be spoken to, each node goes by its own count. */
#define _GNU_SOURCE
#include "shim.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CT__UNDECIDED, CT__DECIDING, CT__WHOLE, CT__PART };
enum { CT__MAX_RANKS = 4096 }; /* of a node */

typedef struct {
    atomic_int entered, present, decision;
    atomic_flag nameless;
    int ranks[CT__MAX_RANKS];
    int speaker; /* the rank that says it where a part is missing */
} ct__roll;

static ct__roll *ct__called; /* NULL: no such memory here */
static char ct__name[128];
static bool ct__absent; /* could not be counted: so the others find that a part is missing */

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
static bool ct__find_name(bool *hydra)
{
    char name[32];
    long process = getppid(), parent;
    unsigned long long started;
    for (int i = 0; i < 64 && process > 1 && ct__look_at(process, name, &parent, &started); i++, process = parent)
        if (ct__is_launcher(name)) {
            uint64_t hash = 0xcbf29ce484222325ULL; /* one daemon may start several jobs */
            for (const char *job = getenv("PMIX_NAMESPACE"); job != NULL && *job != '\0'; job++)
                hash = (hash ^ (unsigned char)*job) * 0x100000001b3ULL;
            *hydra = strncmp(name, "hydra_", 6) == 0 || strncmp(name, "pmi_proxy", 9) == 0;
            snprintf(ct__name, sizeof ct__name, "/colltune-%ld-%llu-%llx", process, started, (unsigned long long)hash);
            return true;
        }
    return false;
}

/* The first of `variables` that is set, or -1. */
static int ct__number(const char *const variables[])
{
    for (; *variables != NULL; variables++)
        if (getenv(*variables) != NULL)
            return atoi(getenv(*variables));
    return -1;
}

/* What launchers tell a rank. */
#ifdef OPEN_MPI
static const char *const CT__RANK[] = {"OMPI_COMM_WORLD_RANK", NULL}, *const CT__SIZE[] = {"OMPI_COMM_WORLD_SIZE", NULL},
                         *const CT__HERE[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", NULL};
#else
static const char *const CT__RANK[] = {"PMI_RANK", NULL}, *const CT__SIZE[] = {"PMI_SIZE", NULL},
                         *const CT__HERE[] = {"MPI_LOCALNRANKS", "PALS_LOCAL_SIZE", NULL};
#endif
static const char *const CT__PROGRAMS[] = {"OMPI_NUM_APP_CTX", NULL}, *const CT__SLURM_NODES[] = {"SLURM_STEP_NUM_NODES", NULL};

static bool ct__map_roll(void)
{
    int file = shm_open(ct__name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0)
        return false;
    void *place = MAP_FAILED;
    struct stat about;
    /* Anybody may have made a file of that name, and could cut it off while ranks look into it. */
    bool own = fstat(file, &about) == 0 && about.st_uid == geteuid() && (about.st_mode & (S_IRWXG | S_IRWXO)) == 0;
    if (own && posix_fallocate(file, 0, sizeof *ct__called) == 0)
        place = mmap(NULL, sizeof *ct__called, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (place != MAP_FAILED)
        ct__called = place;
    return place != MAP_FAILED;
}

void ct_attendance_announce(void)
{
    bool hydra = false;
    int rank = ct__number(CT__RANK), here = ct__number(CT__HERE);
    if (!ct__find_name(&hydra))
        return;
    ct__absent = !ct__map_roll();
    if (ct__absent)
        return;
    int place = atomic_fetch_add(&ct__called->entered, 1);
    if (place < CT__MAX_RANKS)
        ct__called->ranks[place] = rank;
    int present = atomic_fetch_add(&ct__called->present, 1) + 1;
    if (rank < 0 || here < 1 || here > CT__MAX_RANKS || here == ct__number(CT__SIZE))
        return;
    ct_keys_put(hydra, ct__called->ranks, present == here ? here : 0);
}

void ct_attendance_forget(void)
{
    if (ct__called == NULL)
        return;
    if (!atomic_flag_test_and_set(&ct__called->nameless)) /* all have it mapped */
        shm_unlink(ct__name);
    munmap(ct__called, sizeof *ct__called);
    ct__called = NULL;
}

/* 0: not to be known. */
static int ct__ranks_here(int world)
{
    int here = ct__number(CT__HERE);
    return here > 0 ? here : ct__number(CT__SLURM_NODES) == 1 ? world : 0;
}

/* The first that asks decides for its node. */
static bool ct__all_present(int here, int world, int rank)
{
    int word = CT__UNDECIDED, speaker = -1;
    if (atomic_compare_exchange_strong(&ct__called->decision, &word, CT__DECIDING)) {
        bool whole = ct_keys_are_there() ? ct_keys_hold_all(world, &speaker) : atomic_load(&ct__called->present) == here;
        ct__called->speaker = speaker < 0 ? rank : speaker;
        atomic_store(&ct__called->decision, whole ? CT__WHOLE : CT__PART);
    }
    while ((word = atomic_load(&ct__called->decision)) == CT__DECIDING)
        sched_yield();
    if (word == CT__PART && ct__called->speaker == rank)
        fprintf(stderr, "colltune: a part of this program's ranks runs without libcolltune.so; it does nothing here. "
                        "Preload it in all ranks\n");
    return word == CT__WHOLE;
}

static bool ct__whole(int world, int rank)
{
    MPI_Comm parent = MPI_COMM_NULL;
    int here = ct__ranks_here(world);
    bool counted = ct__called != NULL && here > 0;
    /* Spawned: a program by itself, which nobody tuned or asked to profile. */
    if (PMPI_Comm_get_parent(&parent) != MPI_SUCCESS || parent != MPI_COMM_NULL)
        return false;
    if (ct__absent && rank == 0)
        fprintf(stderr, "colltune: /dev/shm%s cannot be made, or others may write to it; libcolltune.so does nothing here\n", ct__name);
    if (ct__absent)
        return false;
    if (counted && !ct__all_present(here, world, rank))
        return false;
    /* Several programs on several nodes, where another node's ranks may be without it. */
    if (ct_keys_are_there() || ct__number(CT__PROGRAMS) <= 1 || (counted && here == world))
        return true;
    if (rank == 0)
        fprintf(stderr, "colltune: several programs were launched as one on several nodes; libcolltune.so does nothing here\n");
    return false;
}

bool ct_attendance_whole(void)
{
    int world = 0, rank = 0;
    PMPI_Comm_size(MPI_COMM_WORLD, &world);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    bool whole = ct__whole(world, rank);
    ct_attendance_forget();
    return whole;
}
