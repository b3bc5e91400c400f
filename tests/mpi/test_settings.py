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
from colltune.mpi.detect import find_mpi
from colltune.mpi.reads import Asked, refusal_of
from colltune.prove.replay.conformance import PROGRAM, replay_arguments, run_conformance
from process_settings import process_settings

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


def require_right(mpiexec: Path, place: Path, variables: Mapping[str, str], *collectives: str) -> None:
    program = build(mpiexec.with_name("mpicc"), PROGRAM, place)
    arguments = replay_arguments(range(1, 9), short=True, collectives=collectives)
    command = [str(mpiexec), "-n", "8", str(program), *arguments]
    result = run_conformance(command, {**os.environ, **QUIET, "MPIR_CVAR_NUM_CLIQUES": "2", **variables}, 400)
    assert result.passed, result.message
    assert result.cases > 50


def test_there_are_throttles_and_chunks() -> None:
    assert {str(choice) for name, choice in beside() if name == "alltoall"} >= {"scattered(throttle=1)"}
    assert {name for name, _ in beside()} == {"allreduce", "alltoall"}


@pytest.mark.parametrize(("collective", "choice"), beside(), ids=str)
def test_every_call_is_right_beside_an_algorithm(
    mpiexec: Path, tmp_path: Path, collective: str, choice: Choice
) -> None:
    require_right(mpiexec, tmp_path, dict(CATALOGUE.settings(collective, choice)), collective)


def test_the_library_knows_every_setting_of_the_process(mpiexec: Path) -> None:
    """A setting whose name is wrong, or whose switch is off, would be compared and never be in force."""
    mpi = find_mpi(str(mpiexec), os.environ)
    named = {name: value for setting in process_settings("mpich") for name, value in setting.variables}
    assert refusal_of(mpi.libmpi, mpi.build, Asked(list(named)), os.environ) == ("", "")
    for prefix, switch in {"CH4_PROGRESS_THROTTLE_": "CH4_PROGRESS_THROTTLE", "CH4_IPC_CMA_": "CH4_CMA_ENABLE"}.items():
        for setting in process_settings("mpich"):
            if any(name.startswith(f"MPIR_CVAR_{prefix}") for name, _ in setting.variables):
                assert dict(setting.variables)[f"MPIR_CVAR_{switch}"] == "1", setting.name


@pytest.mark.slow
@pytest.mark.parametrize("setting", process_settings("mpich"), ids=lambda setting: setting.name)
def test_every_call_is_right_under_a_setting_of_the_process(mpiexec: Path, tmp_path: Path, setting) -> None:
    assert setting.risk
    require_right(mpiexec, tmp_path, dict(setting.variables))
