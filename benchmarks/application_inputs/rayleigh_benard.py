"""Rayleigh-Benard convection in two dimensions, by Dedalus. python rayleigh_benard.py NX NZ STEPS

Prints the kinetic energy at the end and the seconds of the steps.
"""

import sys
from time import perf_counter

import dedalus.public as d3
import numpy as np
from mpi4py import MPI

NX, NZ, STEPS = (int(one) for one in sys.argv[1:4])
RAYLEIGH, PRANDTL, DT = 1e5, 1.0, 0.02
coordinates = d3.CartesianCoordinates("x", "z")
dist = d3.Distributor(coordinates, dtype=np.float64)
along = d3.RealFourier(coordinates["x"], size=NX, bounds=(0.0, 4.0), dealias=1.5)
across = d3.ChebyshevT(coordinates["z"], size=NZ, bounds=(0.0, 1.0), dealias=1.5)
p, b = (dist.Field(name=name, bases=(along, across)) for name in "pb")
u = dist.VectorField(coordinates, name="u", bases=(along, across))
tau_p = dist.Field(name="tau_p")
tau_b1, tau_b2 = (dist.Field(name=f"tau_b{number}", bases=along) for number in (1, 2))
tau_u1, tau_u2 = (dist.VectorField(coordinates, name=f"tau_u{number}", bases=along) for number in (1, 2))
kappa, nu = (RAYLEIGH * PRANDTL) ** -0.5, (RAYLEIGH / PRANDTL) ** -0.5
_, z = dist.local_grids(along, across)
_, up = coordinates.unit_vector_fields(dist)
lifted = across.derivative_basis(1)


def lift(field):
    return d3.Lift(field, lifted, -1)


grad_u, grad_b = d3.grad(u) + up * lift(tau_u1), d3.grad(b) + up * lift(tau_b1)
problem = d3.IVP([p, b, u, tau_p, tau_b1, tau_b2, tau_u1, tau_u2], namespace=globals())
for equation in (
    "trace(grad_u) + tau_p = 0",
    "dt(b) - kappa*div(grad_b) + lift(tau_b2) = - u@grad(b)",
    "dt(u) - nu*div(grad_u) + grad(p) - b*up + lift(tau_u2) = - u@grad(u)",
    "b(z=0) = 1",
    "u(z=0) = 0",
    "b(z=1) = 0",
    "u(z=1) = 0",
    "integ(p) = 0",
):
    problem.add_equation(equation)
solver = problem.build_solver(d3.RK222)
b.fill_random("g", seed=42, distribution="normal", scale=1e-3)
b["g"] *= z * (1.0 - z)
b["g"] += 1.0 - z
energy = d3.Integrate(u @ u)
solver.step(DT)
comm = MPI.COMM_WORLD
comm.Barrier()
began_s = perf_counter()
for _ in range(STEPS):
    solver.step(DT)
comm.Barrier()
took_s = perf_counter() - began_s
value = energy.evaluate().allgather_data("g")
if comm.rank == 0:
    print(f"energy {float(np.ravel(value)[0]):.15e}\nloop_s {took_s:.6f}", flush=True)
