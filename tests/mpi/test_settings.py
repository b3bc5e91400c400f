"""Every legal call gives the right result under each setting beside the algorithm that the catalogue has for MPICH."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from jobs import QUIET

from colltune.catalog import load
from colltune.core.choice import DEFAULT, Choice
from colltune.core.scenario import COLLECTIVES, Scenario
from colltune.machine.compile import build
from colltune.prove.replay.conformance import PROGRAM, replay_arguments, run_conformance

CATALOGUE = load("mpich", "5.0.2")


def beside() -> list[tuple[str, Choice]]:
    """Every choice on eight ranks of two nodes that sets something beside its algorithm."""
    found = []
    for name in COLLECTIVES:
        for choice in CATALOGUE.legal(Scenario(name, 2, 4, 1 << 20), beside=True):
            algorithm = None if choice == DEFAULT else CATALOGUE.algorithm(name, choice)
            if (
                algorithm
                and not algorithm.composed
                and {one.name for one in algorithm.settings} & dict(choice.parameters).keys()
            ):
                found.append((name, choice))
    return found


@pytest.fixture(scope="module")
def mpiexec() -> Path:
    path = Path(os.environ.get("COLLTUNE_TEST_MPIEXEC", Path(sys.executable).parent / "mpiexec"))
    if not path.exists():
        pytest.skip(f"no MPI at {path}: set COLLTUNE_TEST_MPIEXEC")
    return path


def require_right(mpiexec: Path, variables: Mapping[str, str], *collectives: str) -> None:
    program = build(mpiexec.with_name("mpicc"), PROGRAM)
    arguments = replay_arguments(range(1, 9), short=True, collectives=collectives)
    command = [str(mpiexec), "-n", "8", str(program), *arguments]
    result = run_conformance(command, {**os.environ, **QUIET, "MPIR_CVAR_NUM_CLIQUES": "2", **variables}, 400)
    assert result.passed, result.message
    assert result.cases > 50


def test_there_are_throttles_and_chunks() -> None:
    assert {str(choice) for name, choice in beside() if name == "alltoall"} >= {"scattered(throttle=1)"}
    assert {name for name, _ in beside()} == {"allreduce", "alltoall"}


@pytest.mark.parametrize(("collective", "choice"), beside(), ids=str)
def test_every_call_is_right_beside_an_algorithm(mpiexec: Path, collective: str, choice: Choice) -> None:
    require_right(mpiexec, dict(CATALOGUE.settings(collective, choice)), collective)
