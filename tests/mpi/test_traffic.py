"""What the descriptions of algorithms say is sent, against the messages and bytes that the libraries really send.

MPICH's are counted where they enter UCX, Open MPI's by its own monitoring. Every flat entry of both catalogues is
compared, rank by rank and peer by peer; of MPICH's compositions what crosses between the nodes.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import lcm
from pathlib import Path

import numpy as np
import pytest
from jobs import OPENMPI, QUIET, crowded
from one_call import compiled_for, ucx_counter

from colltune.catalog import Catalogue, load
from colltune.catalog.entries import Kind
from colltune.core.sample import COLLECTIVES, DEFAULT, Choice, Scenario
from colltune.machine.compile import build
from colltune.measure.request import resolve_settings
from colltune.mpi.installation import Installation
from colltune.traffic.rounds import AllPairs, Floats, Schedule
from colltune_study.training.recorded_algorithms import schedule_of
from commands import run_to_end

_PATIENCE_S = 300
# These call other collectives of Open MPI, which chooses their algorithms by size.
BY_DEFAULT = {
    ("allgather", "linear"),
    ("allgatherv", "gather_bcast"),
    ("allreduce", "nonoverlapping"),
    ("reduce_scatter", "non_overlapping"),
    ("reduce_scatter_block", "basic_linear"),
}
# Nodes, ranks on each, and a factor of the size.
PLAIN = ((5, 1, 1), (8, 1, 40))
_COUNTS = {1: (2, 4, 6, 9, 10, 12, 13, 14, 16), 40: (3, 7, 11, 15, 16)}
SLOW = tuple((count, 1, factor) for factor, counts in _COUNTS.items() for count in counts)
# Trees of radix 8 between nodes need seven of them, and long messages to be cut.
SHAPES = ((4, 2, 1), (3, 2, 40), (4, 3, 1), (8, 2, 40))
Shapes = Sequence[tuple[int, int, int]]


def _entries(library: str) -> list[tuple[str, Choice]]:
    catalogue = load(library, "5.0")
    return [(name, choice) for name in COLLECTIVES for choice in catalogue.choices(name) if choice != DEFAULT]


def _size(collective: str, ranks: int, factor: int) -> int:
    """Divides evenly into all blocks: of ranks, of powers of two and of powers of three."""
    size = 4 * lcm(ranks, 16, 27) * factor
    if collective == "barrier":
        return 0
    return size * ranks if collective == "reduce_scatter_block" else size


@dataclass(frozen=True)
class Counted:
    """(p, p) messages, bytes, and messages whose bytes were not counted."""

    messages: Floats
    bytes_: Floats
    packed: Floats


@dataclass
class Counter:
    """Runs the counting program on one library, once for all entries at some ranks."""

    mpi: Installation
    catalogue: Catalogue
    command: list[str]
    agent: Path
    environment: dict[str, str]
    done: dict[tuple[int, int, int], dict[tuple[str, Choice], Counted]] = field(default_factory=dict)

    def counted(self, nodes: int, ppn: int, factor: int) -> dict[tuple[str, Choice], Counted]:
        """``ppn`` 1: flat entries; else compositions. ``nodes`` have their ranks in turns."""
        key = (nodes, ppn, factor)
        if key not in self.done:
            self.done[key] = self._count(nodes, ppn, factor)
        return self.done[key]

    def _count(self, nodes: int, ppn: int, factor: int) -> dict[tuple[str, Choice], Counted]:
        ranks = nodes * ppn
        wanted = []
        for name in COLLECTIVES:
            for choice in self.catalogue.legal(Scenario(name, nodes, ppn, _size(name, ranks, factor))):
                if choice != DEFAULT:
                    algorithm = self.catalogue.algorithm(name, choice)
                    if algorithm.kind is Kind.FLAT if ppn == 1 else algorithm.leaders is not None:
                        wanted.append((name, choice))
        named = {key: self.catalogue.settings(*key) for key in wanted}
        resolved = resolve_settings(self.agent, named, {**os.environ, **self.environment})
        known = [key for key in wanted if resolved[key] is not None]
        arguments: list[str] = []
        for name, choice in known:
            size = _size(name, ranks, factor) // (ranks if name == "reduce_scatter_block" else 1)
            settings = ",".join(f"{variable}={value}" for variable, value in resolved[name, choice] or ())
            arguments += [name, str(size), settings or "-"]
        more = {"MPIR_CVAR_NUM_CLIQUES": str(nodes)} if ppn > 1 else {"MPIR_CVAR_NOLOCAL": "1"}
        run = run_to_end(
            [*self.command[:1], "-n", str(ranks), *self.command[1:], *arguments],
            env={**os.environ, **self.environment, **more},
            timeout=_PATIENCE_S,
            check=True,
        )
        found = {key: Counted(*(np.zeros((ranks, ranks)) for _ in range(3))) for key in known}
        for line in run.stdout.splitlines():
            number, source, target, messages, bytes_, packed = map(int, line.split())
            of = found[known[number]]
            of.messages[source, target] += messages
            of.bytes_[source, target] += bytes_
            of.packed[source, target] += packed
        return found


@pytest.fixture(scope="module")
def mpich(mpi: Installation, cache: Path) -> Counter:
    environment = {**QUIET, "MPIR_CVAR_CH4_NETMOD": "ucx", "LD_PRELOAD": ucx_counter()}
    return _counter(mpi, cache, environment)


@pytest.fixture(scope="module")
def open_mpi(openmpi: Installation, cache: Path) -> Counter:
    monitored = {"OMPI_MCA_pml_monitoring_enable": "1", "OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}
    return _counter(openmpi, cache, {**OPENMPI, **monitored})


def _counter(mpi: Installation, cache: Path, environment: dict[str, str]) -> Counter:
    command = [str(mpi.mpiexec), *crowded(mpi), compiled_for(mpi.mpicc)]
    return Counter(mpi, load(mpi.library, mpi.version), command, build(mpi.mpicc, "agent", cache), environment)


def _matrices(plan: Schedule, ranks: int) -> tuple[Floats, Floats]:
    """(p, p) messages and shares from each rank to each other: what a counter on the wire sees."""
    messages, shares = np.zeros((ranks, ranks)), np.zeros((ranks, ranks))
    for step in plan.steps:
        if isinstance(step, AllPairs):
            for group in step.members:
                for one in group:
                    others = group[group != one]
                    messages[one, others] += 1.0
                    shares[one, others] += step.share
        else:
            np.add.at(messages, (step.source, step.target), step.times * step.pieces)
            np.add.at(shares, (step.source, step.target), step.times * step.share)
    return messages, shares


def _compare(
    found: dict[tuple[str, Choice], Counted], entry: tuple[str, Choice], library: str, nodes: int, ppn: int, factor: int
) -> bool:
    """Asserts that an entry sends what its description says; False where it is not legal there."""
    if entry not in found:
        return False
    name, choice = entry
    ranks = nodes * ppn
    size = _size(name, ranks, factor)
    plan = schedule_of(Scenario(name, nodes, ppn, size), choice, library)
    assert plan is not None, f"{name} {choice} is not described"
    messages, shares = _matrices(plan, ranks)
    # MPICH deals the ranks out to its nodes in turns, the descriptions in blocks.
    place = [(rank % nodes) * ppn + rank // nodes for rank in range(ranks)] if ppn > 1 else list(range(ranks))
    counted, bytes_, packed = (np.zeros((ranks, ranks)) for _ in range(3))
    for mine, theirs in (
        (counted, found[entry].messages),
        (bytes_, found[entry].bytes_),
        (packed, found[entry].packed),
    ):
        mine[np.ix_(place, place)] = theirs
    node = np.arange(ranks) // ppn
    seen = node[:, None] != node[None, :]
    if (name, choice.algorithm) in BY_DEFAULT and library == "openmpi":
        # Whatever trees the library chooses, somebody gets the whole, and as much leaves.
        assert bytes_.sum() == pytest.approx(shares.sum() * size, rel=0.7)
        return True
    assert np.array_equal(messages[seen], counted[seen]), f"{name} {choice} on {nodes} x {ppn}, {size} bytes"
    known = seen & (packed == 0)
    assert np.abs(shares * size - bytes_)[known].max(initial=0.0) <= 8.0 * max(1.0, counted.max())
    return True


def _compare_all(counter: Counter, entry: tuple[str, Choice], shapes: Shapes) -> None:
    compared = [_compare(counter.counted(*shape), entry, str(counter.mpi.library), *shape) for shape in shapes]
    if not any(compared):
        pytest.skip("not legal on these shapes, or not in this version")


_FLAT = {
    library: [entry for entry in _entries(library) if load(library, "5.0").algorithm(*entry).kind is Kind.FLAT]
    for library in ("mpich", "openmpi")
}
_COMPOSED = [entry for entry in _entries("mpich") if load("mpich", "5.0").algorithm(*entry).leaders is not None]


def _of(entries: Sequence[tuple[str, Choice]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("entry", entries, ids=lambda entry: f"{entry[0]}-{entry[1]}")


on_ranks = pytest.mark.parametrize(
    "shapes", [pytest.param(PLAIN, id="few"), pytest.param(SLOW, id="many", marks=pytest.mark.slow)]
)


@on_ranks
@_of(_FLAT["mpich"])
def test_mpich_sends_what_is_described(mpich: Counter, entry: tuple[str, Choice], shapes: Shapes) -> None:
    _compare_all(mpich, entry, shapes)


@on_ranks
@_of(_FLAT["openmpi"])
def test_openmpi_sends_what_is_described(open_mpi: Counter, entry: tuple[str, Choice], shapes: Shapes) -> None:
    _compare_all(open_mpi, entry, shapes)


@_of(_COMPOSED)
def test_compositions_send_between_nodes_what_is_described(mpich: Counter, entry: tuple[str, Choice]) -> None:
    _compare_all(mpich, entry, SHAPES)


@pytest.mark.parametrize("library", ["mpich", "openmpi"])
def test_every_entry_is_legal_where_it_is_compared(library: str) -> None:
    """But for bare compositions: which algorithms these run is the library's own choice."""
    catalogue = load(library, "5.0")
    legal = {
        (name, nodes, ppn, factor): set(catalogue.legal(Scenario(name, nodes, ppn, _size(name, nodes * ppn, factor))))
        for name in COLLECTIVES
        for nodes, ppn, factor in (*PLAIN, *SLOW, *SHAPES)
    }
    for name, choice in _entries(library):
        algorithm = catalogue.algorithm(name, choice)
        flat = algorithm.kind is Kind.FLAT
        if flat or algorithm.leaders is not None:
            assert any(
                choice in found for (own, _, ppn, _), found in legal.items() if own == name and (ppn == 1) == flat
            ), f"{name} {choice}"


def test_a_wrong_description_is_seen(mpich: Counter) -> None:
    found = mpich.counted(8, 1, 40)
    ring = found["allgather", Choice("ring")]
    with pytest.raises(AssertionError):
        _compare({("allgather", Choice("brucks")): ring}, ("allgather", Choice("brucks")), "mpich", 8, 1, 40)
