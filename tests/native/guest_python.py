"""mpi4py: its own pickling, errors as exceptions, functions of attributes in Python, what the collector frees."""

import gc
import sys
from array import array

import mpi4py

mpi4py.rc.thread_level = "funneled"  # MPICH holds a lock while functions of attributes run where more is asked for
from mpi4py import MPI  # noqa: E402

ROUNDS = 12


def mixed(total: int, values: object) -> int:
    for value in memoryview(values).tolist() if isinstance(values, array) else values:  # type: ignore[attr-defined]
        total = (total * 31 + int(value) + 7) % 1000000007
    return total


def exchange(comm: MPI.Intracomm, rounds: int = ROUNDS, objects: bool = True) -> int:
    rank, size, total = comm.Get_rank(), comm.Get_size(), 1
    for number in range(rounds):
        mine, every = array("i", [rank, number]), array("i", [0] * 2 * size)
        comm.Allgather(mine, every)
        total = mixed(total, every)
        counts, places = [2] * size, [2 * i for i in range(size)]
        sent, got = array("i", range(2 * size)), array("i", [0] * 2 * size)
        comm.Alltoallv([sent, counts, places, MPI.INT], [got, counts, places, MPI.INT])
        total = mixed(total, got)
        both = array("i", [0, 0])
        comm.Allreduce(mine, both, MPI.SUM)
        total = mixed(total, both)
        if not objects:  # for which mpi4py sets an attribute of its own, and MPICH hangs where others are being deleted
            continue
        request = comm.Ibcast(both, root=number % size)
        request.Wait()
        total = mixed(total, comm.allgather({"rank": rank, "at": number})[number % size].values())
        total = mixed(total, comm.bcast([rank, number], root=number % size))
        total = mixed(total, [comm.allreduce(rank, op=lambda one, other: 2 * one + other)])
    return total


def attributes(world: MPI.Intracomm) -> int:
    totals = []
    keyval = MPI.Comm.Create_keyval(
        delete_fn=lambda comm, key, value: totals.append(exchange(comm, 4, objects=False) + value)
    )
    for value in range(3):
        comm = world.Dup()
        comm.Set_attr(keyval, value)
        totals.append(exchange(comm) if value else 0)
        comm.Free()
    MPI.Comm.Free_keyval(keyval)
    return mixed(0, totals)


def exceptions(world: MPI.Intracomm) -> int:
    total = 0
    for number in range(ROUNDS):
        try:
            world.Bcast(array("i", [1]), root=world.Get_size() + number)
        except MPI.Exception as error:
            total += error.Get_error_class()
        total = mixed(total, [exchange(world, 1)])
    return total


def duplicates(world: MPI.Intracomm) -> int:
    copy, request = world.Idup()
    total = exchange(world, objects=False)  # Open MPI mixes up what is under way on one communicator
    request.Wait()
    total = mixed(total, [exchange(copy)])
    copy.Free()
    for _ in range(3):
        copy = world.Split(world.Get_rank() % 2)
        total = mixed(total, [exchange(copy, 3)])
        copy.Free()
        del copy
        gc.collect()
    return total


def persistent(world: MPI.Intracomm) -> int:
    values, total = array("i", [0]), 0
    request = world.Bcast_init(values, root=0)
    for number in range(ROUNDS):
        values[0] = number if world.Get_rank() == 0 else -1
        request.Start()
        request.Wait()
        total = mixed(total, values)
    request.Free()
    return total


def main() -> None:
    world, cases = MPI.COMM_WORLD, [attributes, exceptions, duplicates]
    if hasattr(MPI.Comm, "Bcast_init") and MPI.Get_version() >= (4, 0):
        cases.append(persistent)
    for case in cases:
        sys.stdout.write(f"{case.__name__} rank={world.Get_rank()} {case(world)}\n")
        sys.stdout.flush()


main()
