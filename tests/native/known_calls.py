"""The collective calls of known number that a Python program makes."""

import array

from mpi4py import MPI

world = MPI.COMM_WORLD
for _ in range(6):
    world.Allreduce(array.array("d", [1.0] * 8), array.array("d", [0.0] * 8))
buffer = array.array("i", [0] * 10)
for _ in range(2):
    world.Bcast(buffer, root=1)
half = world.Split(world.rank % 2, world.rank)
for _ in range(4):
    half.Alltoall(array.array("i", [1] * 4 * half.size), array.array("i", [0] * 4 * half.size))
half.Free()
request = world.Ibarrier()
request.Wait()
