/* A collective call inside a simulation, and what its algorithms are made of.
 *
 * The algorithms are written over point-to-point messages of MPI alone. Each runs in two modes: with real data, so that
 * its result can be checked, and without (`real` false), where the simulator copies nothing and only time passes. */
#pragma once

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

/* What the ranks found together about the loops of one run, of which not all steps may have been simulated. */
struct ct_loop_record {
    int total = 0, count = 0;
    bool cyclic = false;
    double begin_s = 0.0, half_s = 0.0, end_s = 0.0; /* the clock of the last rank at its begin, half way, at its end */
};

struct ct_loop_steps {
    int most = 0; /* steps of a cyclic loop that are simulated at most, of another twice as many; 0: all */
    std::vector<ct_loop_record> loops;
    bool sampled() const;
    double extra_s() const; /* what the steps that were left out are reckoned to take */
};

struct ct_simulated_call {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm node = MPI_COMM_NULL;    /* the ranks of this rank's node */
    MPI_Comm leaders = MPI_COMM_NULL; /* the first ranks of all nodes; null on the others */
    int rank = 0, ranks = 0;
    std::size_t bytes = 0; /* as in Scenario.size_bytes */
    int k = 2;
    std::size_t segment = 0;
    char *in = nullptr, *out = nullptr, *scratch = nullptr;
    bool real = false;
    double reduce_s_per_byte = 0.0, copy_s_per_byte = 0.0;
    ct_loop_steps *steps = nullptr; /* of all ranks together */
    std::size_t loops = 0;     /* begun so far by this rank */
    std::size_t bytes_of(int blocks) const { return bytes * static_cast<std::size_t>(blocks); }
    char *block(char *data, int i) const { return data + bytes_of(i); }
};

typedef void ct_algorithm(ct_simulated_call &call);
struct ct_entry {
    const char *collective, *name;
    ct_algorithm *run;
};

/* ---- messages; every one of them is on call.comm ---- */
void ct_send(const ct_simulated_call &call, int to, const char *from, std::size_t bytes);
void ct_receive(const ct_simulated_call &call, int from, char *into, std::size_t bytes);
void ct_send_and_receive(const ct_simulated_call &call, int to, const char *out, std::size_t out_bytes, int from, char *in,
                 std::size_t in_bytes);
MPI_Request ct_start_send(const ct_simulated_call &call, int to, const char *from, std::size_t bytes);
MPI_Request ct_start_receive(const ct_simulated_call &call, int from, char *into, std::size_t bytes);
void ct_wait_all(std::vector<MPI_Request> &requests);
/* Messages that are under way at once, and awaited where it ends. */
class ct_at_once {
  public:
    explicit ct_at_once(const ct_simulated_call &call) : call_(call) {}
    ~ct_at_once() { ct_wait_all(requests_); }
    void send(int to, const char *from, std::size_t bytes) { requests_.push_back(ct_start_send(call_, to, from, bytes)); }
    void receive(int from, char *into, std::size_t bytes) { requests_.push_back(ct_start_receive(call_, from, into, bytes)); }

  private:
    const ct_simulated_call &call_;
    std::vector<MPI_Request> requests_;
};

/* ---- work of a rank, which takes time as well ---- */
void ct_combine(const ct_simulated_call &call, char *into, const char *from, std::size_t bytes); /* sums of int32 */
void ct_copy(const ct_simulated_call &call, char *into, const char *from, std::size_t bytes);

/* ---- parts of a vector: the i-th of `parts` begins at ct_part(...); whole elements of `element` bytes ---- */
std::size_t ct_part(std::size_t bytes, int parts, int i, std::size_t element);

/* The steps of a loop that are simulated: the j-th of count() stands for step at(j). A cyclic loop does the same in every
 * step, so its first steps stand for all, and its pace is that of their second half; of another loop the steps are
 * spread evenly. */
enum ct_loop { CT_CYCLIC, CT_SPREAD };
class ct_stepper {
  public:
    ct_stepper(ct_simulated_call &call, int total, ct_loop loop);
    int count() const { return count_; }
    int at(int j) const;
    void done(int j);

  private:
    ct_loop_steps *steps_;
    std::size_t index_;
    int total_, count_;
    ct_loop loop_;
};

/* ---- trees ---- */
struct ct_tree {
    int parent = -1;
    std::vector<int> children;
};
ct_tree ct_tree_knomial(int rank, int ranks, int k);
ct_tree ct_tree_binary(int rank, int ranks);
ct_tree ct_tree_chain(int rank, int ranks);
void ct_tree_bcast(const ct_simulated_call &call, const ct_tree &tree, char *data, std::size_t bytes, std::size_t segment);
/* `own` is this rank's part and is left as it is; the result is in `into` at the root (rank 0) */
void ct_tree_reduce(const ct_simulated_call &call, const ct_tree &tree, const char *own, char *into, std::size_t bytes,
                    std::size_t segment);

/* ---- parts of algorithms that several collectives share ---- */
void ct_scatter_binomial(const ct_simulated_call &call, char *data, std::size_t bytes, std::size_t element);
void ct_allgather_ring(ct_simulated_call &call, char *data, std::size_t bytes, std::size_t element, int first);
void ct_allgather_doubling(const ct_simulated_call &call, char *data, std::size_t bytes, std::size_t element);
/* afterwards rank r holds the sum of part (r + last) % ranks; `last`: 0 or 1 */
void ct_reduce_scatter_ring(ct_simulated_call &call, char *data, std::size_t bytes, int last);
void ct_allreduce_doubling(const ct_simulated_call &call, char *data, std::size_t bytes);
void ct_allreduce_rabenseifner(const ct_simulated_call &call, char *data, std::size_t bytes);
/* the same call on another communicator, or of other data */
ct_simulated_call ct_call_on(const ct_simulated_call &call, MPI_Comm comm);

/* The power of two that does the work: rank `rank` folds into or out of it. `place` is -1 for ranks that only wait. */
struct ct_fold {
    int power = 1, rest = 0, place = -1;
    int rank_of(int position) const { return position < rest ? position * 2 + 1 : position + rest; }
};
ct_fold ct_fold_of(int rank, int ranks);
void ct_fold_in(const ct_simulated_call &call, const ct_fold &fold, char *data, std::size_t bytes);
void ct_fold_out(const ct_simulated_call &call, const ct_fold &fold, char *data, std::size_t bytes);
/* Recursive halving among the ranks that work: afterwards position p has the sum of what begins at `at(p)`. */
void ct_halve(const ct_simulated_call &call, const ct_fold &fold, char *data, const std::function<std::size_t(int)> &at);

/* ---- the algorithms, one file per collective ---- */
extern const std::vector<ct_entry> ct_allgather_algorithms, ct_allreduce_algorithms, ct_alltoall_algorithms,
    ct_barrier_algorithms, ct_bcast_algorithms, ct_gather_algorithms, ct_reduce_algorithms,
    ct_reduce_scatter_algorithms, ct_scatter_algorithms;

/* Runs `run` with real data in buffers of this rank's own; whether the result of this rank is right. */
bool ct_verify(ct_simulated_call call, const std::string &collective, ct_algorithm *run);
