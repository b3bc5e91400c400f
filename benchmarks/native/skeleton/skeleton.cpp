/* Replays the skeleton of a program inside one simulation: its collective calls in an order, computing between them.
 *
 * Linked with the algorithms of simulated clusters. Arguments: ranks per node, seconds per byte of a reduction, seconds per
 * byte of a copy, the file of the skeleton. Its lines:
 *
 *     kind COLLECTIVE ALGORITHM K SEGMENT BYTES      kinds are numbered from 0, by their order
 *     run KIND SECONDS                               every rank computes for SECONDS and then calls; one line a call
 *     steps N                                        of a loop over all ranks at most N steps are simulated (0: all)
 *
 * Answers "kind INDEX CALLS SECONDS" (the time of a rank in calls of that kind, the mean over the ranks), and "ended
 * SECONDS" (when the last rank ended). Nothing synchronises the ranks but the calls. Where a loop was cut, all wait for
 * one another and for what its other steps are reckoned to take. Of rooted collectives the root moves from node to
 * node, call by call, where the line says `moving` before the collective's name. */
#include "call.h"
#include "smpi.h"

#include <simgrid/actor.h>
#include <simgrid/barrier.h>
#include <simgrid/engine.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

enum { PLACES = 16 }; /* of roots: the first ranks of as many nodes */

struct Kind {
    std::function<void(ct_simulated_call &)> runner;
    int k = 2;
    std::size_t segment = 0, bytes = 0;
    bool moving = false;
    int calls = 0;
    double in_calls_s = 0.0; /* of all ranks */
};

struct Event {
    std::size_t kind = 0;
    double compute_s = 0.0;
    ct_loop_steps steps;
};

struct Skeleton {
    std::vector<Kind> kinds;
    std::vector<Event> events;
    int steps = 0;
    char *memory = nullptr;
    sg_bar_t barrier = nullptr;
    double ended_s = 0.0;
};

struct Place { /* communicators of which another node's first rank is rank 0 */
    MPI_Comm all = MPI_COMM_NULL, leaders = MPI_COMM_NULL;
};

[[noreturn]] void refuse(const std::string &why)
{
    std::fprintf(stderr, "skeleton: %s\n", why.c_str());
    std::exit(3);
}

void read_line(Skeleton &skeleton, const std::string &line)
{
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "kind") {
        Kind kind;
        std::string collective, algorithm;
        words >> collective;
        kind.moving = collective == "moving";
        if (kind.moving)
            words >> collective;
        words >> algorithm >> kind.k >> kind.segment >> kind.bytes;
        kind.runner = ct_runner_find(collective, algorithm);
        if (!kind.runner)
            refuse("no such algorithm: " + line);
        skeleton.kinds.push_back(kind);
    } else if (what == "run") {
        Event event;
        words >> event.kind >> event.compute_s;
        if (event.kind >= skeleton.kinds.size() || event.compute_s < 0.0)
            refuse("no such kind: " + line);
        skeleton.events.push_back(event);
    } else if (what == "steps") {
        words >> skeleton.steps;
    } else {
        refuse("not a line of a skeleton: " + line);
    }
    if (words.fail())
        refuse("not a line of a skeleton: " + line);
}

Skeleton *read_skeleton(const char *path, int ranks)
{
    auto *skeleton = new Skeleton;
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line))
        read_line(*skeleton, line);
    if (skeleton->events.empty())
        refuse("no calls");
    std::size_t most = 0;
    for (const Kind &kind : skeleton->kinds)
        most = std::max(most, kind.bytes);
    for (Event &event : skeleton->events)
        event.steps.most = skeleton->steps;
    /* No page of it is ever touched: without data only addresses pass. */
    std::size_t room = (4 * static_cast<std::size_t>(ranks) + 96) * most + 4096;
    void *got = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED)
        refuse("no address space");
    skeleton->memory = static_cast<char *>(got);
    skeleton->barrier = sg_barrier_init(static_cast<unsigned>(ranks));
    return skeleton;
}

std::vector<Place> places_of(const ct_simulated_call &call, int ppn)
{
    int nodes = call.ranks / ppn, count = std::min<int>(PLACES, nodes);
    std::vector<Place> places(static_cast<std::size_t>(count));
    for (int i = 0; i < count; i++) {
        int first = i * ppn;
        Place &place = places[static_cast<std::size_t>(i)];
        MPI_Comm_split(call.comm, 0, (call.rank - first + call.ranks) % call.ranks, &place.all);
        int color = call.rank % ppn == 0 ? 0 : MPI_UNDEFINED;
        MPI_Comm_split(place.all, color, 0, &place.leaders);
    }
    return places;
}

void run(Skeleton &skeleton, ct_simulated_call call, const std::vector<Place> &places)
{
    std::vector<std::size_t> made(skeleton.kinds.size(), 0);
    std::size_t n = static_cast<std::size_t>(call.ranks);
    for (Event &event : skeleton.events) {
        Kind &kind = skeleton.kinds[event.kind];
        const Place &place = places[kind.moving ? made[event.kind]++ % places.size() : 0];
        if (event.compute_s > 0.0)
            sg_actor_sleep_for(event.compute_s);
        ct_simulated_call one = ct_call_on(call, place.all);
        one.leaders = place.leaders;
        one.bytes = kind.bytes;
        one.k = kind.k;
        one.segment = kind.segment;
        one.in = skeleton.memory;
        one.out = skeleton.memory + n * kind.bytes;
        one.scratch = skeleton.memory + 2 * n * kind.bytes;
        one.steps = &event.steps;
        double begin_s = simgrid_get_clock();
        kind.runner(one);
        if (event.steps.sampled()) {
            sg_barrier_wait(skeleton.barrier);
            sg_actor_sleep_for(event.steps.extra_s());
        }
        kind.in_calls_s += simgrid_get_clock() - begin_s;
        if (call.rank == 0)
            kind.calls++;
    }
    skeleton.ended_s = std::max(skeleton.ended_s, simgrid_get_clock());
}

} // namespace

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    ct_simulated_call call;
    call.comm = MPI_COMM_WORLD;
    MPI_Comm_rank(call.comm, &call.rank);
    MPI_Comm_size(call.comm, &call.ranks);
    if (argc != 5 || std::atoi(argv[1]) < 1 || call.ranks % std::atoi(argv[1]) != 0) {
        MPI_Finalize();
        return 2;
    }
    int ppn = std::atoi(argv[1]);
    call.reduce_s_per_byte = std::atof(argv[2]);
    call.copy_s_per_byte = std::atof(argv[3]);
    Skeleton *skeleton = call.rank == 0 ? read_skeleton(argv[4], call.ranks) : nullptr;
    MPI_Bcast(&skeleton, sizeof skeleton, MPI_BYTE, 0, call.comm); /* all ranks are threads of one process */
    MPI_Comm_split(call.comm, call.rank / ppn, call.rank, &call.node);
    std::vector<Place> places = places_of(call, ppn);
    sg_barrier_wait(skeleton->barrier);
    double begin_s = simgrid_get_clock();
    ct_set_without_data(true);
    run(*skeleton, call, places);
    sg_barrier_wait(skeleton->barrier);
    ct_set_without_data(false);
    if (call.rank == 0) {
        for (std::size_t i = 0; i < skeleton->kinds.size(); i++)
            std::printf("kind %zu %d %.9g\n", i, skeleton->kinds[i].calls, skeleton->kinds[i].in_calls_s / call.ranks);
        std::printf("ended %.9g\n", skeleton->ended_s - begin_s);
        std::fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
