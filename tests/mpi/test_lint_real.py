"""Lint and the libraries are of one mind: what lint passes runs right, what it refuses fails, whoever wrote it.

``tests/recorded/lint/mutants.jsonl`` keeps what happened. Make it again, with MPICH in .venv and Open MPI in
.venv-openmpi: `PYTHONPATH=tests:tests/unit python tests/mpi/test_lint_real.py > tests/recorded/lint/mutants.jsonl`.
"""

import json
import os
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from jobs import OPENMPI, QUIET, crowded, legal_calls

import compiled
from colltune.catalog import Catalogue, load
from colltune.core.sample import COLLECTIVES as ALL_COLLECTIVES
from colltune.emit.lint.check import format_check
from colltune.emit.lint.selection_file import lint_files
from colltune.emit.mpich.defaults import DefaultTrees, cut_default_trees
from colltune.emit.mpich.selection_file import GENERAL_FILE, MpichEmitter
from colltune.emit.mpich.tree import Tree, format_tree
from colltune.machine.compile import build
from colltune.mpi.installation import Installation
from colltune.mpi.libraries import record_of
from colltune.prove.replay.conformance import PROGRAM, replay_arguments, run_conformance
from commands import run_to_end
from emitter_laws import random_rules
from lint_mutants import COLLECTIVES, MUTANTS, RANKS, SIZES, VERSIONS, Mutant, may_run, mind, mutant, record

VARIABLE = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
# A waiting rank gives its core away.
BY_UCX = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_CH4_NETMOD": "ucx"}
DOUBLING: Tree = {"algorithm=MPIR_Allgather_intra_recursive_doubling": {}}
RING: Tree = {"algorithm=MPIR_Allgather_intra_ring": {}}


@pytest.fixture(scope="module")
def catalogue(mpi: Installation) -> Catalogue:
    return load("mpich", mpi.version)


@pytest.fixture(scope="module")
def defaults(mpi: Installation) -> DefaultTrees:
    return cut_default_trees(mpi.libmpi)


Run = Callable[[int, bytes], subprocess.CompletedProcess[str]]


@pytest.fixture
def run(mpi: Installation, tmp_path: Path) -> Run:
    """Makes small legal calls of every collective on some ranks, with a general file in force."""

    def run(ranks: int, data: bytes) -> subprocess.CompletedProcess[str]:
        (tmp_path / GENERAL_FILE).write_bytes(data)
        environment = {**os.environ, VARIABLE: str(tmp_path / GENERAL_FILE), **BY_UCX}
        command = [str(mpi.mpiexec), "-n", str(ranks), *legal_calls(mpi.mpicc, ranks)]
        return run_to_end(command, env=environment, errors="replace")

    return run


def with_intra(defaults: DefaultTrees, collective: str, intra: Tree) -> bytes:
    key = f"collective={collective}"
    return format_tree({**defaults.general, key: {**defaults.general[key], "comm_type=intra": intra}})


def test_the_trees_of_the_library_are_clean(mpi: Installation, catalogue: Catalogue, defaults: DefaultTrees) -> None:
    files = {name: format_tree(getattr(defaults, name)) for name in ("general", "ch4", "posix")}
    assert [format_check(check) for check in lint_files(files, mpi.version, catalogue)] == []


def test_what_colltune_writes_around_them_is_clean(
    mpi: Installation, catalogue: Catalogue, defaults: DefaultTrees
) -> None:
    for seed in range(3):
        decided = [catalogue.collective(name) for name in ALL_COLLECTIVES if catalogue.collective(name).in_file]
        rules = [random_rules(seed, one.name, one.basis, catalogue.choices(one.name)) for one in decided]
        emitter = MpichEmitter(catalogue, defaults)
        files = emitter.emit([emitter.agreeing(one) for one in rules])
        assert [format_check(check) for check in lint_files(files, mpi.version, catalogue)] == []


@pytest.mark.parametrize("ranks", [3, 5, 6])
def test_an_algorithm_for_powers_of_two_aborts_as_lint_says(
    ranks: int, mpi: Installation, catalogue: Catalogue, defaults: DefaultTrees, run: Run
) -> None:
    data = with_intra(defaults, "allgather", DOUBLING)
    found = lint_files({GENERAL_FILE: data}, mpi.version, catalogue)
    assert ["on 3 ranks" in check.what for check in found] == [True]
    assert run(ranks, data).returncode != 0


SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut off": lambda data: data[: len(data) // 2],
    "mistyped operator": lambda data: data.replace(b'"comm_size=pow2"', b'"comm_size=pow"', 1),
    "mistyped algorithm": lambda data: data.replace(b"Allgather_intra_ring", b"Allgather_intra_rings", 1),
    "mistyped collective": lambda data: data.replace(b'"collective=allgather"', b'"collective=Allgather"'),
    "missing collective": lambda data: _edited(data, lambda tree: tree.pop("collective=allgather")),
    "rule after any": lambda data: _with(data, {"comm_size=any": RING, "comm_size<=2": RING}),
    "nothing after a comparison": lambda data: _with(data, {"comm_size<=99": RING}),
    "empty rule": lambda data: _with(data, {"comm_size<=99": {}, "comm_size=any": RING}),
    "rule beside an algorithm": lambda data: _with(data, {**RING, "comm_size=any": RING}),
    "operator of others": lambda data: _with(data, {"avg_msg_size<=9": RING, "avg_msg_size=any": RING}),
    "flag of others": lambda data: _with(data, {"is_commutative=yes": RING, "is_commutative=no": RING}),
    "calls without a rule": lambda data: _with(data, {"comm_type=inter": RING}),
}


def _edited(data: bytes, edit: Callable[[Tree], object]) -> bytes:
    tree = json.loads(data)
    edit(tree)
    return format_tree(tree)


def _with(data: bytes, intra: Tree) -> bytes:
    return _edited(data, lambda tree: tree["collective=allgather"].update({"comm_type=intra": intra}))


@pytest.mark.parametrize("spoil", list(SPOILT))
def test_what_lint_calls_an_error_ends_the_program(
    spoil: str, mpi: Installation, catalogue: Catalogue, defaults: DefaultTrees, run: Run
) -> None:
    data = SPOILT[spoil](format_tree(defaults.general))
    assert any(check.severity == "error" for check in lint_files({GENERAL_FILE: data}, mpi.version, catalogue))
    assert run(3, data).returncode != 0


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
    command = [*_mpiexec(mpi, ranks[-1]), str(program(mpi)), *arguments]
    result = run_conformance(command, _environment(one, variables), _PATIENCE_S)
    if result.passed:
        return "right"
    if result.wall_s >= _PATIENCE_S:
        return "hung: the check of results did not end"
    where = result.crashed_case or result.failures[0]
    return f"{'hung' if result.hung else 'ended' if result.crashed_case else 'wrong'}: {where[:120]}"


def _ran_one_byte(mpi: Installation, one: Mutant, place: Path) -> str:
    """The smallest call with an order: the check of results has its ordered operation on four bytes and more."""
    command = [*_mpiexec(mpi, RANKS[-1]), compiled.program(mpi.mpicc, "reduce_one.c")]
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


def _mpiexec(mpi: Installation, ranks: int) -> list[str]:
    return [str(mpi.mpiexec), *crowded(mpi), "-n", str(ranks)]


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
