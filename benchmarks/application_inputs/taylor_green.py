"""Taylor-Green vortex: the incompressible Navier-Stokes equations in a periodic cube, by mpi4py-fft.

python taylor_green.py N STEPS [slab|pencil]. Prints the kinetic energy at the end and the seconds of the steps.
"""

import sys
from time import perf_counter

import numpy as np
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray

N, STEPS = int(sys.argv[1]), int(sys.argv[2])
VISCOSITY, DT = 1.0 / 1600.0, 0.01
comm = MPI.COMM_WORLD
fft = PFFT(comm, (N, N, N), axes=(0, 1, 2), dtype=float, slab="pencil" not in sys.argv)

velocity, vorticity, product = (newDistArray(fft, False, rank=1) for _ in range(3))
spectrum, change, curl = (newDistArray(fft, True, rank=1) for _ in range(3))

place = fft.local_slice(True)
whole = [np.fft.fftfreq(N, 1.0 / N), np.fft.fftfreq(N, 1.0 / N), np.fft.rfftfreq(N, 1.0 / N)]
wave = np.array(np.meshgrid(*(one[part] for one, part in zip(whole, place, strict=True)), indexing="ij"))
square = np.sum(wave * wave, axis=0)
over_square = wave / np.where(square == 0.0, 1.0, square)
kept = np.all(np.abs(wave) < N / 3.0, axis=0)
x, y, z = np.meshgrid(*(2.0 * np.pi * np.arange(N)[part] / N for part in fft.local_slice(False)), indexing="ij")
velocity[0], velocity[1], velocity[2] = np.sin(x) * np.cos(y) * np.cos(z), -np.cos(x) * np.sin(y) * np.cos(z), 0.0
for axis in range(3):
    fft.forward(velocity[axis], spectrum[axis])


def rate():
    """Fills ``change``: the curl form of the advection, without its gradient part, and viscosity."""
    curl[:] = 1j * np.cross(wave, spectrum, axis=0)
    for axis in range(3):
        fft.backward(spectrum[axis], velocity[axis])
        fft.backward(curl[axis], vorticity[axis])
    product[:] = np.cross(velocity, vorticity, axis=0)
    for axis in range(3):
        fft.forward(product[axis], change[axis])
    change[:] *= kept
    change[:] -= over_square * np.sum(change * wave, axis=0) + VISCOSITY * square * spectrum


comm.Barrier()
began_s = perf_counter()
for _ in range(STEPS):
    start = spectrum.copy()
    rate()
    spectrum[:] = start + 0.5 * DT * change
    rate()
    spectrum[:] = start + DT * change
comm.Barrier()
took_s = perf_counter() - began_s
for axis in range(3):
    fft.backward(spectrum[axis], velocity[axis])
energy = comm.allreduce(float(np.sum(np.asarray(velocity) ** 2))) / 2.0 / N**3
if comm.rank == 0:
    print(f"energy {energy:.15e}\nloop_s {took_s:.6f}", flush=True)
