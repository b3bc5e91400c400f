/* Times collectives inside one simulation: rank 0 reads requests on standard input, one line each, and answers.
 *
 *     time COLLECTIVE ALGORITHM K SEGMENT BYTES STEPS   ->  T seconds sampled
 *     check COLLECTIVE ALGORITHM K SEGMENT BYTES        ->  C ranks-with-a-wrong-result
 *
 * E reason answers what cannot be run. The time is from a moment at which all ranks begin to the end of the last one;
 * simulated barriers cost nothing, so there is no synchronisation to be subtracted. STEPS: see ct_stepper; 0 simulates
 * all. While rank 0 waits for a line no simulated time passes. Arguments: ranks per node, seconds per byte of a
 * reduction, seconds per byte of a copy. */
#include "call.h"

#include <simgrid/barrier.h>
#include <simgrid/engine.h>
#include <simgrid/s4u/Actor.hpp>
#include <sys/mman.h>
#include <xbt/Extendable.hpp>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

/* Exported by libsimgrid, declared in no public header; alike in 3.32 and 4.1. */
namespace simgrid::smpi {
class ActorExt {
  public:
    static simgrid::xbt::Extension<simgrid::s4u::Actor, ActorExt> EXTENSION_ID;
    void set_replaying(bool);
};
} // namespace simgrid::smpi

namespace {

/* For the calling rank: messages copy nothing, and times stay as they are. */
void set_without_data(bool on)
{
    simgrid::s4u::Actor::self()->extension<simgrid::smpi::ActorExt>()->set_replaying(on);
}

/* NULL: there is none of that name. */
ct_algorithm *find(const std::string &collective, const std::string &algorithm)
{
    for (const auto *all : {&ct_allgather_algorithms, &ct_allreduce_algorithms, &ct_alltoall_algorithms, &ct_barrier_algorithms,
                            &ct_bcast_algorithms, &ct_gather_algorithms, &ct_reduce_algorithms, &ct_reduce_scatter_algorithms,
                            &ct_scatter_algorithms})
        for (const ct_entry &entry : *all)
            if (collective == entry.collective && algorithm == entry.name)
                return entry.run;
    return nullptr;
}

struct Request {
    std::string what, collective, algorithm;
    int k = 2, steps = 0;
    std::size_t segment = 0, bytes = 0;
    bool end = false;
};

struct Shared {
    sg_bar_t barrier;
    Request request;
    ct_loop_steps steps;
    int wrong = 0;
    char *memory = nullptr;
    std::size_t room = 0;
};

/* No page of it is ever touched: without data only addresses pass. */
void reserve(Shared &shared, std::size_t bytes)
{
    if (bytes <= shared.room)
        return;
    if (shared.memory != nullptr)
        munmap(shared.memory, shared.room);
    void *got = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) {
        std::printf("E no address space for %zu bytes\n", bytes);
        std::fflush(stdout);
        std::exit(3);
    }
    shared.memory = static_cast<char *>(got);
    shared.room = bytes;
}

bool read_request(Request &request)
{
    std::string line;
    if (!std::getline(std::cin, line)) {
        request.end = true;
        return true;
    }
    std::istringstream words(line);
    request = Request();
    words >> request.what >> request.collective >> request.algorithm >> request.k >> request.segment >> request.bytes;
    if (request.what == "time")
        words >> request.steps;
    return !words.fail() && (request.what == "time" || request.what == "check") && request.k >= 2 && request.k <= 62;
}

/* Rank 0 only: the next request that can be run. */
void next_request(Shared &shared, int ranks)
{
    for (;;) {
        bool read = read_request(shared.request);
        if (shared.request.end)
            return;
        if (read && find(shared.request.collective, shared.request.algorithm) != nullptr)
            break;
        std::printf("E %s\n", read ? "no such algorithm" : "cannot read the request");
        std::fflush(stdout);
    }
    shared.steps = ct_loop_steps();
    shared.steps.most = shared.request.steps;
    shared.wrong = 0;
    if (shared.request.what == "time")
        reserve(shared, (4 * static_cast<std::size_t>(ranks) + 96) * shared.request.bytes + 4096);
}

void answer(const Shared &shared, double time_s)
{
    if (shared.request.what == "check")
        std::printf("C %d\n", shared.wrong);
    else
        std::printf("T %.17g %d\n", time_s + shared.steps.extra_s(), shared.steps.sampled() ? 1 : 0);
    std::fflush(stdout);
}

void run(Shared &shared, ct_simulated_call call)
{
    const Request &request = shared.request;
    call.bytes = request.bytes;
    call.k = request.k;
    call.segment = request.segment;
    call.steps = &shared.steps;
    ct_algorithm *runner = find(request.collective, request.algorithm);
    set_without_data(request.what == "time");
    if (request.what == "time") {
        call.in = shared.memory;
        call.out = call.block(call.in, call.ranks);
        call.scratch = call.block(call.out, call.ranks);
        sg_barrier_wait(shared.barrier);
        double begin_s = simgrid_get_clock();
        runner(call);
        sg_barrier_wait(shared.barrier);
        if (call.rank == 0)
            answer(shared, simgrid_get_clock() - begin_s);
    } else {
        sg_barrier_wait(shared.barrier);
        if (!ct_verify(call, request.collective, runner))
            shared.wrong++;
        sg_barrier_wait(shared.barrier);
        if (call.rank == 0)
            answer(shared, 0.0);
    }
    set_without_data(false);
}

} // namespace

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    ct_simulated_call call;
    call.comm = MPI_COMM_WORLD;
    MPI_Comm_rank(call.comm, &call.rank);
    MPI_Comm_size(call.comm, &call.ranks);
    if (argc != 4 || std::atoi(argv[1]) < 1) {
        MPI_Finalize();
        return 2;
    }
    int ppn = std::atoi(argv[1]);
    call.reduce_s_per_byte = std::atof(argv[2]);
    call.copy_s_per_byte = std::atof(argv[3]);
    Shared *shared = call.rank == 0 ? new Shared{sg_barrier_init(static_cast<unsigned>(call.ranks)), {}, {}} : nullptr;
    MPI_Bcast(&shared, sizeof shared, MPI_BYTE, 0, call.comm); /* all ranks are threads of one process */
    MPI_Comm_split(call.comm, call.rank / ppn, call.rank, &call.node);
    MPI_Comm_split(call.comm, call.rank % ppn == 0 ? 0 : MPI_UNDEFINED, call.rank, &call.leaders);
    if (call.rank == 0) {
        std::printf("R %d\n", call.ranks);
        std::fflush(stdout);
    }
    for (;;) {
        sg_barrier_wait(shared->barrier);
        if (call.rank == 0)
            next_request(*shared, call.ranks);
        sg_barrier_wait(shared->barrier);
        if (shared->request.end)
            break;
        run(*shared, call);
    }
    MPI_Finalize();
    return 0;
}
