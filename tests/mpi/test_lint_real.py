"""Lint and the real MPICH are of one mind: what is found fault with ends the program, whoever wrote it."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import legal_calls

from colltune.catalog import Catalogue, load
from colltune.core.sample import COLLECTIVES
from colltune.emit.lint.check import format_check
from colltune.emit.lint.selection_file import lint_files
from colltune.emit.mpich.defaults import DefaultTrees, cut_default_trees
from colltune.emit.mpich.selection_file import GENERAL_FILE, MpichEmitter
from colltune.emit.mpich.tree import Tree, format_tree
from colltune.mpi.installation import Installation
from commands import run_to_end
from emitter_laws import random_rules

VARIABLE = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
# A waiting rank gives its core away.
QUIET = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_CH4_NETMOD": "ucx"}
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
        environment = {**os.environ, VARIABLE: str(tmp_path / GENERAL_FILE), **QUIET}
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
        decided = [catalogue.collective(name) for name in COLLECTIVES if catalogue.collective(name).in_file]
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
