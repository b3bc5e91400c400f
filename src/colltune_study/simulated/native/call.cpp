/* Messages, work and loops of the algorithms. */
#include "call.h"

#include <simgrid/actor.h>
#include <simgrid/engine.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

enum { TAG = 7 };

void ct_send(const ct_simulated_call &call, int to, const char *from, std::size_t bytes)
{
    MPI_Send(from, static_cast<int>(bytes), MPI_BYTE, to, TAG, call.comm);
}

void ct_receive(const ct_simulated_call &call, int from, char *into, std::size_t bytes)
{
    MPI_Recv(into, static_cast<int>(bytes), MPI_BYTE, from, TAG, call.comm, MPI_STATUS_IGNORE);
}

void ct_send_and_receive(const ct_simulated_call &call, int to, const char *out, std::size_t out_bytes, int from, char *in,
                 std::size_t in_bytes)
{
    MPI_Sendrecv(out, static_cast<int>(out_bytes), MPI_BYTE, to, TAG, in, static_cast<int>(in_bytes), MPI_BYTE, from,
                 TAG, call.comm, MPI_STATUS_IGNORE);
}

MPI_Request ct_start_send(const ct_simulated_call &call, int to, const char *from, std::size_t bytes)
{
    MPI_Request request;
    MPI_Isend(from, static_cast<int>(bytes), MPI_BYTE, to, TAG, call.comm, &request);
    return request;
}

MPI_Request ct_start_receive(const ct_simulated_call &call, int from, char *into, std::size_t bytes)
{
    MPI_Request request;
    MPI_Irecv(into, static_cast<int>(bytes), MPI_BYTE, from, TAG, call.comm, &request);
    return request;
}

void ct_wait_all(std::vector<MPI_Request> &requests)
{
    if (!requests.empty())
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    requests.clear();
}

void ct_combine(const ct_simulated_call &call, char *into, const char *from, std::size_t bytes)
{
    if (call.real) {
        for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
            std::int32_t a, b;
            std::memcpy(&a, into + i, 4);
            std::memcpy(&b, from + i, 4);
            a += b;
            std::memcpy(into + i, &a, 4);
        }
    }
    if (bytes > 0)
        sg_actor_sleep_for(static_cast<double>(bytes) * call.reduce_s_per_byte);
}

void ct_copy(const ct_simulated_call &call, char *into, const char *from, std::size_t bytes)
{
    if (call.real && bytes > 0)
        std::memmove(into, from, bytes);
    if (bytes > 0)
        sg_actor_sleep_for(static_cast<double>(bytes) * call.copy_s_per_byte);
}

std::size_t ct_part(std::size_t bytes, int parts, int i, std::size_t element)
{
    std::size_t elements = bytes / element;
    return elements * static_cast<std::size_t>(i) / static_cast<std::size_t>(parts) * element;
}

ct_simulated_call ct_call_on(const ct_simulated_call &call, MPI_Comm comm)
{
    ct_simulated_call other = call;
    other.comm = comm;
    MPI_Comm_rank(comm, &other.rank);
    MPI_Comm_size(comm, &other.ranks);
    return other;
}

ct_stepper::ct_stepper(ct_simulated_call &call, int total, ct_loop loop)
    : steps_(call.steps), index_(call.loops++), total_(total), count_(total), loop_(loop)
{
    int most = loop == CT_CYCLIC ? steps_->most : 2 * steps_->most;
    if (call.real || most <= 0 || total <= most)
        return;
    count_ = most;
    if (steps_->loops.size() <= index_)
        steps_->loops.resize(index_ + 1);
    ct_loop_record &record = steps_->loops[index_];
    record.total = total;
    record.count = count_;
    record.cyclic = loop == CT_CYCLIC;
    record.begin_s = std::max(record.begin_s, simgrid_get_clock());
}

int ct_stepper::at(int j) const
{
    if (loop_ == CT_CYCLIC || count_ == total_)
        return j;
    return static_cast<int>((2 * static_cast<std::int64_t>(j) + 1) * total_ / (2 * count_));
}

void ct_stepper::done(int j)
{
    if (count_ == total_)
        return;
    ct_loop_record &record = steps_->loops[index_];
    if (j + 1 == count_ / 2)
        record.half_s = std::max(record.half_s, simgrid_get_clock());
    if (j + 1 == count_)
        record.end_s = std::max(record.end_s, simgrid_get_clock());
}

bool ct_loop_steps::sampled() const
{
    return !loops.empty();
}

double ct_loop_steps::extra_s() const
{
    double extra_s = 0.0;
    for (const ct_loop_record &record : loops) {
        if (record.count == 0)
            continue;
        int counted = record.cyclic ? record.count - record.count / 2 : record.count;
        double from_s = record.cyclic ? record.half_s : record.begin_s;
        extra_s += (record.total - record.count) * (record.end_s - from_s) / counted;
    }
    return extra_s;
}
