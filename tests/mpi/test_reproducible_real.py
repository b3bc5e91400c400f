"""On the real MPICH: which reductions add up in one order, by the bits of sums that depend on it."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from colltune.catalog import Catalogue, load
from colltune.core.sample import REDUCTIONS, Choice, Scenario
from colltune.distill.reproducible import distill_reproducible
from colltune.emit.contract import variables_for
from colltune.emit.mpich.selection_file import MpichEmitter
from colltune.mpi.installation import Installation
from commands import run_to_end
from compiled import program

SOURCE = Path(__file__).parents[1] / "native" / "sum_order.c"
RANKS = 7  # no power of two, nor of any radix
COUNTS = ("1", "8", "3000")
Orders = Callable[..., tuple[int, int, int]]


@pytest.fixture(scope="module")
def catalogue(mpi: Installation) -> Catalogue:
    return load("mpich", mpi.version)


@pytest.fixture(scope="module")
def orders(mpi: Installation) -> Orders:
    """Different results of element 0, of any element, and of the ranks."""
    made = program(mpi.mpicc, "sum_order.c")

    def orders(collective: str, variables: Mapping[str, str], *counts: str) -> tuple[int, int, int]:
        done = run_to_end(
            [str(mpi.mpiexec), "-n", str(RANKS), made, collective, *(counts or COUNTS)],
            env={**os.environ, "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", **variables},
            check=True,
        )
        first, any_, ranks = map(int, re.findall(r"\d+", done.stdout))
        return first, any_, ranks

    return orders


@pytest.mark.parametrize("collective", sorted(REDUCTIONS))
def test_what_the_catalogue_calls_reproducible_is(catalogue: Catalogue, orders: Orders, collective: str) -> None:
    tested = 0
    # Radices beyond the ranks repeat each other; legal leaves these out.
    for choice in catalogue.legal(Scenario(collective, 1, RANKS, 4 * RANKS * 8))[1:]:
        if catalogue.algorithm(collective, choice).reproducible:
            # With this setting the library says so, where it would run another algorithm in its place.
            variables = {"MPIR_CVAR_COLLECTIVE_FALLBACK": "error", **dict(catalogue.settings(collective, choice))}
            assert (choice, orders(collective, variables)) == (choice, (1, 1, 1))
            tested += 1
    assert tested


def test_an_order_that_depends_on_the_place_is_seen(catalogue: Catalogue, orders: Orders) -> None:
    if catalogue.version == "4.0":
        pytest.skip("4.0 has no ring")
    _, any_, _ = orders("allreduce", dict(catalogue.settings("allreduce", Choice("ring"))))
    assert any_ > 1


def test_the_default_changes_its_order_and_the_reproducible_file_does_not(
    mpi: Installation, catalogue: Catalogue, orders: Orders, tmp_path: Path
) -> None:
    scenario = Scenario("allreduce", 1, RANKS, 32)
    tree = Choice("tree", (("k", 2),))
    measured = {(scenario, Choice("recursive_doubling")): 1.0}
    if catalogue.version != "4.0":
        measured[scenario, tree] = 0.5
    rules = [distill_reproducible(name, measured, {}, catalogue).rule_set for name in sorted(REDUCTIONS)]
    emitter = MpichEmitter.from_library(mpi.libmpi, mpi.version)
    files = emitter.emit(rules)
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    for name in ("allreduce", "reduce"):
        assert orders(name, {})[0] > 1
        assert orders(name, variables_for(emitter, tmp_path, files)) == (1, 1, 1)
