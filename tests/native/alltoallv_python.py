"""Exchanges by colltune.tuned_alltoallv and by mpi4py, in every form of a buffer; prints `right` if all are equal."""

import numpy as np
from mpi4py import MPI

import colltune

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
random = np.random.default_rng(7)
wrong = 0


def both(send: object, make: object, fresh: np.ndarray) -> int:
    mine, theirs = fresh.copy(), fresh.copy()
    colltune.tuned_alltoallv(comm, send, make(mine))
    comm.Alltoallv(send, make(theirs))
    return int(not np.array_equal(mine, theirs))


for _ in range(6):
    counts = random.integers(0, 5, (size, size))
    sends, receives = [int(n) for n in counts[rank]], [int(n) for n in counts[:, rank]]
    data = np.arange(sum(sends), dtype=np.float64) + 1000.0 * rank
    empty = np.full(sum(receives), -1.0)
    wrong += both([data, sends], lambda out, n=receives: [out, n], empty)
    wrong += both([data, sends, MPI.DOUBLE], lambda out, n=receives: [out, n, MPI.DOUBLE], empty)
    apart = [8 * peer for peer in range(size)]
    wide = np.arange(8.0 * size) + 1000.0 * rank
    far = np.full(8 * size, -1.0)
    wrong += both([wide, (sends, apart), MPI.DOUBLE], lambda out, n=receives, at=apart: [out, n, at, MPI.DOUBLE], far)
same = np.full(2 * size, float(rank))
places = [2 * peer for peer in range(size)]
wrong += both(MPI.IN_PLACE, lambda out: [out, ([1] * size, places), MPI.DOUBLE], same)
try:
    colltune.tuned_alltoallv(comm, [same, [1] * (size + 1)], [same.copy(), [1] * (size + 1)])
    wrong += 1
except ValueError as error:
    wrong += f"{size + 1} counts for {size} ranks" not in str(error)
half = comm.Split(rank % 2, rank)
mine = np.zeros(half.Get_size(), dtype=np.int32)
one_each = [1] * half.Get_size()
colltune.tuned_alltoallv(half, [np.full(half.Get_size(), rank, np.int32), one_each], [mine, one_each])
wrong += mine.tolist() != list(range(rank % 2, size, 2))

total = comm.allreduce(wrong)
if rank == 0:
    print("right" if total == 0 else f"{total} wrong")
