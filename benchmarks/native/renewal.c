/* What of a launch's times is new after one of its parts was made anew (benchmarks/renewal.py).
 *
 *   renewal BIRTHS GO COLLECTIVE:BYTES:NAME=INTEGER,... ...
 *
 * BIRTHS: a letter for each measurement: a and r nothing is new, b buffers, c communicators, s the whole library by
 * MPI_Session_finalize and MPI_Session_init; x at the end: leave MPI without its end. GO: a file that each rank waits for, asleep, before it measures; - for none.
 * A line for each birth: "birth LETTER SECONDS default other default other ...", the seconds that making anew took, and
 * the medians over the calls of the slowest rank in microseconds, by the library's default and under the variables. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { CT__ROUNDS = 3, CT__CALLS = 10, CT__WARM_UP = 2, CT__MOST_POINTS = 64, CT__MOST_BYTES = 1 << 22, CT__MOST = 8 };

typedef struct {
    char name[32];
    int bytes, count;
    struct {
        char name[64];
        int value, initial;
        MPI_T_cvar_handle handle;
    } settings[CT__MOST];
    MPI_Comm comm; /* made under the settings, which Open MPI reads then */
} ct__point;

static ct__point ct__points[CT__MOST_POINTS];
static int ct__count, ct__rank, ct__size;
static MPI_Session ct__session;
static MPI_Comm ct__world, ct__plain;
static char *ct__send, *ct__receive;

static double ct__now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Ranks that share cores take turns of equal length, as tests/native/realtime.c lets them. */
static void ct__turns(int on)
{
    struct sched_param parameters = {.sched_priority = on};
    if (sched_setscheduler(0, on ? SCHED_RR : SCHED_OTHER, &parameters) == 0 && on)
        prctl(PR_SET_TIMERSLACK, 1UL);
}

static void ct__nap(void) { nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); }

static void ct__write(const ct__point *point, int on)
{
    for (int i = 0; i < point->count; i++) {
        int value = on ? point->settings[i].value : point->settings[i].initial;
        MPI_T_cvar_write(point->settings[i].handle, &value);
    }
}

static void ct__find(ct__point *point)
{
    for (int i = 0; i < point->count; i++) {
        int index, elements;
        if (MPI_T_cvar_get_index(point->settings[i].name, &index) != MPI_SUCCESS ||
            MPI_T_cvar_handle_alloc(index, NULL, &point->settings[i].handle, &elements) != MPI_SUCCESS ||
            MPI_T_cvar_read(point->settings[i].handle, &point->settings[i].initial) != MPI_SUCCESS) {
            fprintf(stderr, "renewal: no variable %s\n", point->settings[i].name);
            exit(2);
        }
    }
}

static void ct__make_comms(void)
{
    MPI_Comm_dup(ct__world, &ct__plain);
    for (int i = 0; i < ct__count; i++) {
        ct__write(&ct__points[i], 1);
        MPI_Comm_dup(ct__world, &ct__points[i].comm);
        ct__write(&ct__points[i], 0);
    }
}

static void ct__free_comms(void)
{
    MPI_Comm_free(&ct__plain);
    for (int i = 0; i < ct__count; i++)
        MPI_Comm_free(&ct__points[i].comm);
}

static char *ct__pages(char *old)
{
    char *made = mmap(NULL, CT__MOST_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED)
        exit(3);
    memset(made, 1, CT__MOST_BYTES);
    if (old != NULL)
        munmap(old, CT__MOST_BYTES); /* after the new ones are there, so that they are others */
    return made;
}

static void ct__make_buffers(void)
{
    ct__send = ct__pages(ct__send);
    ct__receive = ct__pages(ct__receive);
}

static void ct__open(void)
{
    int provided;
    MPI_Group group;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &ct__session) != MPI_SUCCESS)
        exit(4);
    MPI_Group_from_session_pset(ct__session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "renewal", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &ct__world);
    MPI_Group_free(&group);
    MPI_Comm_rank(ct__world, &ct__rank);
    MPI_Comm_size(ct__world, &ct__size);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    for (int i = 0; i < ct__count; i++)
        ct__find(&ct__points[i]);
    ct__make_comms();
    ct__make_buffers();
    MPI_Barrier(ct__world); /* before the turns: connections are made by processes that spin */
    ct__turns(1);
    ct__nap(); /* until all have their turns */
}

static void ct__close(void)
{
    ct__free_comms();
    MPI_Barrier(ct__world);
    ct__turns(0);
    MPI_Comm_free(&ct__world);
    for (int i = 0; i < ct__count; i++)
        for (int j = 0; j < ct__points[i].count; j++)
            MPI_T_cvar_handle_free(&ct__points[i].settings[j].handle);
    MPI_T_finalize(); /* before the session: Open MPI does not survive the other order */
    MPI_Session_finalize(&ct__session);
}

static void ct__call(const ct__point *point, MPI_Comm comm)
{
    int bytes = point->bytes;
    if (strcmp(point->name, "bcast") == 0)
        MPI_Bcast(ct__send, bytes, MPI_BYTE, 0, comm);
    else if (strcmp(point->name, "allreduce") == 0)
        MPI_Allreduce(ct__send, ct__receive, bytes / 4, MPI_INT, MPI_SUM, comm);
    else if (strcmp(point->name, "allgather") == 0)
        MPI_Allgather(ct__send, bytes, MPI_BYTE, ct__receive, bytes, MPI_BYTE, comm);
    else
        MPI_Alltoall(ct__send, bytes, MPI_BYTE, ct__receive, bytes, MPI_BYTE, comm);
}

static void ct__time(const ct__point *point, int chosen, int warm_up, int calls, double *own)
{
    MPI_Comm comm = chosen ? point->comm : ct__plain;
    if (chosen)
        ct__write(point, 1);
    for (int i = -warm_up; i < calls; i++) {
        MPI_Barrier(ct__world);
        double start = ct__now();
        ct__call(point, comm);
        if (i >= 0)
            own[i] = ct__now() - start;
    }
    if (chosen)
        ct__write(point, 0);
}

static int ct__ascending(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static void ct__measure(char letter, double took, unsigned seed)
{
    enum { ALL = CT__ROUNDS * CT__CALLS };
    if (ct__rank == 0)
        printf("birth %c %.6f", letter, took);
    for (int i = 0; i < ct__count; i++) {
        double own[2][ALL], slowest[2][ALL];
        for (int round = 0; round < CT__ROUNDS; round++) {
            int first = (int)((seed * 2654435761u >> (round + i % 8)) & 1); /* the same on all ranks */
            for (int turn = 0; turn < 2; turn++)
                ct__time(&ct__points[i], first ^ turn, round == 0 ? 2 * CT__WARM_UP : CT__WARM_UP, CT__CALLS,
                         own[first ^ turn] + round * CT__CALLS);
        }
        MPI_Reduce(own, slowest, 2 * ALL, MPI_DOUBLE, MPI_MAX, 0, ct__world);
        for (int chosen = 0; ct__rank == 0 && chosen < 2; chosen++) {
            qsort(slowest[chosen], ALL, sizeof(double), ct__ascending);
            printf(" %.3f", 5e5 * (slowest[chosen][ALL / 2] + slowest[chosen][ALL / 2 - 1]));
        }
    }
    if (ct__rank == 0) {
        printf("\n");
        fflush(stdout);
    }
}

static int ct__read_point(char *text)
{
    ct__point *point = &ct__points[ct__count++];
    char *settings;
    if (ct__count > CT__MOST_POINTS || sscanf(text, "%31[^:]:%d:", point->name, &point->bytes) != 2)
        return 0;
    settings = strrchr(text, ':') + 1;
    for (char *item = strtok(settings, ","); item != NULL && point->count < CT__MOST; item = strtok(NULL, ","), point->count++)
        if (sscanf(item, "%63[^=]=%d", point->settings[point->count].name, &point->settings[point->count].value) != 2)
            return 0;
    return 1;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    for (int i = 3; i < argc; i++)
        if (!ct__read_point(argv[i]))
            return 2;
    ct__open();
    if (ct__rank == 0) {
        printf("ready\n");
        fflush(stdout);
    }
    while (strcmp(argv[2], "-") != 0 && access(argv[2], F_OK) != 0)
        ct__nap();
    unsigned seed = 1;
    for (const char *birth = argv[1]; *birth != '\0'; birth++) {
        double start = ct__now();
        if (*birth == 'x') { /* Open MPI 5.0.11 does not survive the end of a second session */
            MPI_Barrier(ct__world);
            ct__nap();
            _exit(0);
        }
        if (*birth == 's') {
            ct__close();
            ct__open();
        } else if (*birth == 'b')
            ct__make_buffers();
        else if (*birth == 'c') {
            ct__free_comms();
            ct__make_comms();
        }
        MPI_Barrier(ct__world);
        ct__measure(*birth, ct__now() - start, 17 * seed++);
    }
    ct__close();
    return 0;
}
