"""Of a changed file, lint and the library are of one mind: what lint passes runs right, what it refuses fails.

``tests/recorded/lint/mutants.jsonl`` keeps what happened. Make it again, with MPICH in .venv and Open MPI in
.venv-openmpi: `PYTHONPATH=tests:tests/unit python tests/mpi/test_lint_mutants.py > tests/recorded/lint/mutants.jsonl`.
"""

import json
import os
from functools import cache
from pathlib import Path

import pytest
from jobs import OPENMPI, QUIET

import compiled
from colltune.machine.compile import build
from colltune.mpi.installation import Installation
from colltune.mpi.libraries import record_of
from colltune.prove.replay.conformance import PROGRAM, replay_arguments, run_conformance
from commands import run_to_end
from lint_mutants import COLLECTIVES, MUTANTS, RANKS, SIZES, VERSIONS, Mutant, may_run, mind, mutant, record

FEW_RANKS = (2, 3, 5)
_PATIENCE_S = 120.0  # some ranks turn in circles where the limit of a case does not end them
# What the check of results calls, by the names of the two libraries.
CALLED = {*COLLECTIVES["mpich"], *COLLECTIVES["openmpi"], "alltoallv", "exscan", "scan", "scatter"}


@cache
def program(mpi: Installation) -> Path:
    return build(mpi.mpicc, PROGRAM, None)


def outcome_of(mpi: Installation, one: Mutant, place: Path) -> str:
    """What `_ran` says; of what lint refuses, also where only unusual calls fail."""
    outcome = ran(mpi, one, place)
    if outcome == "right" and not may_run(one.findings()):
        outcome = ran(mpi, one, place, every_call=True)
        if outcome == "right" and one.collective == "reduce_scatter":
            outcome = _ran_one_byte(mpi, one, place)
    return outcome


# All ranks on one node, on two pretended ones, and each on a node of its own; Open MPI's rules do not ask for nodes.
LAYOUTS: dict[str, tuple[dict[str, str], ...]] = {
    "mpich": ({}, {"MPIR_CVAR_NUM_CLIQUES": "2"}, {"MPIR_CVAR_NOLOCAL": "1"}),
    "openmpi": ({},),
}


def ran(mpi: Installation, one: Mutant, place: Path, *, every_call: bool = False) -> str:
    """ "right", or what went wrong first, where the legal calls of the collective were made in each layout.

    ``every_call``: in all forms, on fewer rank counts, and with memory that holds something before it is written.
    """
    said = (_ran(mpi, one, place, layout, every_call) for layout in LAYOUTS[one.library])
    return next((each for each in said if each != "right"), "right")


def _ran(mpi: Installation, one: Mutant, place: Path, layout: dict[str, str], every_call: bool) -> str:
    variables = {**_written(one, place), **layout}
    sizes = sorted({max(0, size + step) for size in (*SIZES, 16000) for step in (-1, 0, 1)})
    called = {one.collective, *(check.path[0] for check in one.findings() if check.path)} & set(CALLED)
    ranks = FEW_RANKS if every_call else RANKS
    arguments = replay_arguments(ranks, short=not every_call, collectives=sorted(called), case_limit_s=20)
    for name in called - {"barrier"}:
        arguments += ["--sizes", f"{name}={','.join(map(str, sizes))}"]
    if every_call:
        variables["MALLOC_PERTURB_"] = "90"
    command = [*_mpiexec(mpi, one, ranks[-1]), str(program(mpi)), *arguments]
    result = run_conformance(command, _environment(one, variables), _PATIENCE_S)
    if result.passed:
        return "right"
    if result.wall_s >= _PATIENCE_S:
        return "hung: the check of results did not end"
    where = result.crashed_case or result.failures[0]
    return f"{'hung' if result.hung else 'ended' if result.crashed_case else 'wrong'}: {where[:120]}"


def _ran_one_byte(mpi: Installation, one: Mutant, place: Path) -> str:
    """The smallest call with an order: the check of results has its ordered operation on four bytes and more."""
    command = [*_mpiexec(mpi, one, RANKS[-1]), compiled.program(mpi.mpicc, "reduce_one.c")]
    environment = _environment(one, _written(one, place))
    done = run_to_end(command, env=environment, timeout=_PATIENCE_S)
    wrong = sorted(line for line in done.stdout.splitlines() if line.startswith("wrong: "))
    return wrong[0] if wrong else "right" if done.returncode == 0 else "ended: reduce_scatter of one byte"


def _written(one: Mutant, place: Path) -> dict[str, str]:
    """Puts the files there; the variables that make the library load them."""
    variables = dict(record_of(one.library).switches)
    for variable, name in record_of(one.library).files.items():
        if name in one.files:
            (place / name).write_bytes(one.files[name])
            variables[variable] = str(place / name)
    return variables


def _mpiexec(mpi: Installation, one: Mutant, ranks: int) -> list[str]:
    many = ["--oversubscribe"] if one.library == "openmpi" else []
    return [str(mpi.mpiexec), *many, "-n", str(ranks)]


def _environment(one: Mutant, variables: dict[str, str]) -> dict[str, str]:
    return {**os.environ, **(OPENMPI if one.library == "openmpi" else QUIET), **variables}


@pytest.mark.parametrize("seed", [*range(9), *(pytest.param(n, marks=pytest.mark.slow) for n in range(9, MUTANTS))])
@pytest.mark.parametrize("library", list(VERSIONS))
def test_the_library_does_what_lint_says(
    library: str, seed: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    installation: Installation = request.getfixturevalue({"mpich": "mpi", "openmpi": "openmpi"}[library])
    if not installation.version.startswith(VERSIONS[library].rpartition(".")[0]):
        pytest.skip(f"lint is asked about {library} {VERSIONS[library]}, and here is {installation.version}")
    one = mutant(library, seed)
    outcome = outcome_of(installation, one, tmp_path)
    assert mind(library, seed, one.findings(), outcome) in ("one", "undecided"), outcome


if __name__ == "__main__":
    import tempfile

    from colltune.mpi.detect import find_mpi

    root = Path(__file__).parents[2]
    for library, place in (("mpich", ".venv"), ("openmpi", ".venv-openmpi")):
        installation = find_mpi(str(root / place / "bin" / "mpiexec"), os.environ)
        for seed in range(MUTANTS):
            one = mutant(library, seed)
            with tempfile.TemporaryDirectory() as directory:
                outcome = outcome_of(installation, one, Path(directory))
            print(json.dumps({"library": library, "seed": seed, **record(one), "ran": outcome}), flush=True)
