#include "smpi.h"

#include <simgrid/s4u/Actor.hpp>
#include <xbt/Extendable.hpp>

#include <algorithm>
#include <cstring>

/* Exported by libsimgrid, declared in no public header; alike in 3.32 and 4.1. */
namespace simgrid {
namespace smpi {
struct s_mpi_coll_description_t {
    std::string name;
    std::string description;
    void *coll;
};
class ActorExt {
  public:
    static simgrid::xbt::Extension<simgrid::s4u::Actor, ActorExt> EXTENSION_ID;
    void set_replaying(bool);
};
namespace colls {
std::vector<s_mpi_coll_description_t> *get_smpi_coll_descriptions(const std::string &name);
}
} // namespace smpi
} // namespace simgrid

void ct_set_without_data(bool on)
{
    simgrid::s4u::Actor::self()->extension<simgrid::smpi::ActorExt>()->set_replaying(on);
}

static void *find_own(const std::string &collective, const std::string &name)
{
    for (const auto &one : *simgrid::smpi::colls::get_smpi_coll_descriptions(collective)) {
        std::string lower = one.name;
        std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
        if (lower == name)
            return one.coll;
    }
    return nullptr;
}

typedef int vector_call(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
typedef int rooted_vector_call(const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
typedef int scattered_vector_call(const void *, void *, const int *, MPI_Datatype, MPI_Op, MPI_Comm);
typedef int bcast_call(void *, int, MPI_Datatype, int, MPI_Comm);
typedef int block_call(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
typedef int rooted_block_call(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm);
typedef int barrier_call(MPI_Comm);

static void call_own(const std::string &collective, void *own, ct_simulated_call &call)
{
    int bytes = static_cast<int>(call.bytes), elements = bytes / 4;
    if (collective == "bcast") {
        reinterpret_cast<bcast_call *>(own)(call.out, bytes, MPI_BYTE, 0, call.comm);
    } else if (collective == "allreduce") {
        reinterpret_cast<vector_call *>(own)(call.in, call.out, elements, MPI_INT, MPI_SUM, call.comm);
    } else if (collective == "reduce") {
        reinterpret_cast<rooted_vector_call *>(own)(call.in, call.out, elements, MPI_INT, MPI_SUM, 0, call.comm);
    } else if (collective == "reduce_scatter") {
        std::vector<int> counts(static_cast<std::size_t>(call.ranks));
        for (int i = 0; i < call.ranks; i++)
            counts[static_cast<std::size_t>(i)] = static_cast<int>(
                (ct_part(call.bytes, call.ranks, i + 1, 4) - ct_part(call.bytes, call.ranks, i, 4)) / 4);
        reinterpret_cast<scattered_vector_call *>(own)(call.in, call.out, counts.data(), MPI_INT, MPI_SUM, call.comm);
    } else if (collective == "allgather" || collective == "alltoall") {
        reinterpret_cast<block_call *>(own)(call.in, bytes, MPI_BYTE, call.out, bytes, MPI_BYTE, call.comm);
    } else if (collective == "gather" || collective == "scatter") {
        reinterpret_cast<rooted_block_call *>(own)(call.in, bytes, MPI_BYTE, call.out, bytes, MPI_BYTE, 0, call.comm);
    } else if (collective == "barrier") {
        reinterpret_cast<barrier_call *>(own)(call.comm);
    }
}

static const std::vector<const std::vector<ct_entry> *> all_algorithms = {
    &ct_allgather_algorithms, &ct_allreduce_algorithms, &ct_alltoall_algorithms,
    &ct_barrier_algorithms,   &ct_bcast_algorithms,     &ct_gather_algorithms,
    &ct_reduce_algorithms,    &ct_reduce_scatter_algorithms, &ct_scatter_algorithms};

std::function<void(ct_simulated_call &)> ct_runner_find(const std::string &collective, const std::string &algorithm)
{
    for (const auto *list : all_algorithms)
        for (const ct_entry &entry : *list)
            if (collective == entry.collective && algorithm == entry.name)
                return entry.run;
    if (algorithm.rfind("smpi.", 0) != 0)
        return nullptr;
    static const std::vector<std::string> known = {"allgather", "allreduce", "alltoall", "barrier", "bcast",
                                                   "gather",    "reduce",    "reduce_scatter", "scatter"};
    if (std::find(known.begin(), known.end(), collective) == known.end())
        return nullptr;
    void *own = find_own(collective, algorithm.substr(5));
    if (own == nullptr)
        return nullptr;
    return [collective, own](ct_simulated_call &call) { call_own(collective, own, call); };
}
