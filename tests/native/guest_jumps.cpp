/* Error handlers that leave the call: `guest_jumps jump|throw THREADS`, each thread with a communicator of its own. With 0
 * the first thread alone has MPI_THREAD_MULTIPLE.
 *
 * Between right calls all ranks, or one alone, make calls that the library refuses; the handler leaves by longjmp, or throws. Each
 * rank prints the calls that were refused, and the results of right calls that were wrong. */
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mpi.h>
#include <thread>
#include <vector>

namespace {

enum { MOST = 8, ROUNDS = 12 };
thread_local std::jmp_buf back;
bool throws;

void leave(MPI_Comm *, int *code, ...)
{
    if (throws)
        throw *code;
    std::longjmp(back, 1);
}

struct Blocks {
    int counts[MOST], places[MOST], sent[MOST], got[MOST];
};

int refused_by(int kind, MPI_Comm comm, Blocks &b)
{
    int kept = b.counts[0], code;
    b.counts[0] = kind == 0 ? -1 : kept;
    MPI_Datatype type = kind == 1 ? MPI_DATATYPE_NULL : MPI_INT;
    if (kind < 2)
        code = MPI_Alltoallv(b.sent, b.counts, b.places, type, b.got, b.counts, b.places, MPI_INT, comm);
    else if (kind == 2)
        code = MPI_Bcast(b.got, 1, MPI_INT, 77, comm);
    else
        code = MPI_Allreduce(b.sent, b.got, 1, MPI_INT, MPI_OP_NULL, comm);
    b.counts[0] = kept;
    return code;
}

/* Whether the handler was left, or the library said no. */
bool is_refused(int kind, MPI_Comm comm, Blocks &b)
{
    const volatile int kept = b.counts[0];
    volatile bool refused = false;
    if (throws) {
        try {
            refused_by(kind, comm, b);
        } catch (int) {
            refused = true;
        }
    } else if (setjmp(back) == 0)
        refused_by(kind, comm, b);
    else
        refused = true;
    b.counts[0] = kept;
    return refused;
}

int wrong_after(MPI_Comm comm, int rank, int size, int round, Blocks &b)
{
    int wrong = 0, word = rank == round % size ? round : -1, sum = 0;
    for (int i = 0; i < size; i++)
        b.sent[i] = 100 * rank + i + round, b.got[i] = -1;
    MPI_Alltoallv(b.sent, b.counts, b.places, MPI_INT, b.got, b.counts, b.places, MPI_INT, comm);
    for (int i = 0; i < size; i++)
        wrong += b.got[i] != 100 * i + rank + round;
    MPI_Bcast(&word, 1, MPI_INT, round % size, comm);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    return wrong + (word != round) + (sum != size * (size - 1) / 2);
}

void work(MPI_Comm parent, int figures[2])
{
    MPI_Comm comm;
    MPI_Errhandler handler;
    Blocks b;
    int rank, size;
    MPI_Comm_dup(parent, &comm);
    MPI_Comm_create_errhandler(leave, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < size; i++)
        b.counts[i] = 1, b.places[i] = i;
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 3 == 2 || rank == round % size)
            figures[0] += is_refused(round % 4, comm, b);
        figures[1] += wrong_after(comm, rank, size, round, b);
    }
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
}

} // namespace

int main(int argc, char **argv)
{
    int provided, rank, asked = argc > 2 ? std::atoi(argv[2]) : 1;
    int threads = asked == 0 ? 1 : asked;
    throws = argc > 1 && std::strcmp(argv[1], "throw") == 0;
    MPI_Init_thread(&argc, &argv, asked == 1 ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::vector<MPI_Comm> parents((std::size_t)threads);
    std::vector<std::thread> others;
    std::vector<int> figures(2 * (std::size_t)threads);
    for (MPI_Comm &parent : parents)
        MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    for (std::size_t i = 1; i < parents.size(); i++)
        others.emplace_back(work, parents[i], &figures[2 * i]);
    work(parents[0], &figures[0]);
    for (std::thread &other : others)
        other.join();
    int refused = 0, wrong = 0;
    for (std::size_t i = 0; i < parents.size(); i++) {
        refused += figures[2 * i], wrong += figures[2 * i + 1];
        MPI_Comm_free(&parents[i]);
    }
    std::printf("rank=%d refused=%d wrong=%d\n", rank, refused, wrong);
    MPI_Finalize();
    return 0;
}
