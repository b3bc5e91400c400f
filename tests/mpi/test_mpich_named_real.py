"""MPICH with the redesigned selection reads our named trees, and ends where lint says that it ends.

No release has it. COLLTUNE_TEST_MPICH_NAMED names the prefix of a build (pull request 7547 of pmodels/mpich). As a
program this file records what `test_mpich_named_recorded` compares: the counters, or with "replay" the conformance
replay, which goes on where it was cut off.
"""

import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from jobs import C_FLAGS, QUIET

from colltune.bench.backends import open_backend
from colltune.core.choice import DEFAULT, Choice, parse_choice
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.scenario import SizeBasis
from colltune.emit.lint.check import format_check
from colltune.emit.next.lint_named import lint_named_files
from colltune.emit.next.mpich_named import NAMED_FILE, MpichNamedEmitter, cut_named_trees
from colltune.emit.next.mpich_named_grammar import VARIABLE
from colltune.machine.compile import build
from colltune.mpi.detect import find_mpi
from colltune.mpi.reads import Asked, refusal_of
from colltune.prove.replay.conformance import (
    PROGRAM,
    ConformanceResult,
    beyond_the_library,
    replay_arguments,
    run_conformance,
)
from commands import run_to_end
from named_mpich import BYTES, CATALOGUE, OFTEN, RECORDED, REPLAYED, check_counted, rounds

pytestmark = pytest.mark.mpi
NATIVE = Path(__file__).parents[1] / "native"
LEAF = {"algorithm=MPIR_Bcast_intra_binomial": {}}
COUNTED = {
    "MPIR_CVAR_DUMP_COLL_ALGO_COUNTERS": "0",
    "FI_PROVIDER": "tcp",
    # From the first call on, not from the fifth.
    "MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD": "0",
    **QUIET,
}
OLD = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"


@pytest.fixture(scope="module")
def prefix() -> Path:
    named = os.environ.get("COLLTUNE_TEST_MPICH_NAMED")
    if named is None:
        pytest.skip("COLLTUNE_TEST_MPICH_NAMED names no build of MPICH with named trees")
    return Path(named)


@pytest.fixture(scope="module")
def library(prefix: Path) -> Path:
    return prefix / "lib" / "libmpi.so"


@pytest.fixture(scope="module")
def program(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(prefix, "legal_calls", tmp_path_factory.mktemp("program"))


@pytest.fixture(scope="module")
def each(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(prefix, "call_each", tmp_path_factory.mktemp("each"))


def compiled(prefix: Path, name: str, place: Path) -> Path:
    command = [str(prefix / "bin" / "mpicc"), *C_FLAGS, str(NATIVE / f"{name}.c"), "-o", str(place / name)]
    subprocess.run(command, check=True, timeout=120)
    return place / name


def counters(prefix: Path, each: Path, ranks: int, *written: str, **variables: str) -> dict[str, int]:
    """What ran on rank 0 in OFTEN calls of each collective, by the library's own counters.

    ``written``: NAME=INTEGER of variables that the program writes by MPI_T; ``variables``: of its environment.
    """
    done = run_to_end(
        [str(prefix / "bin" / "mpiexec"), "-n", str(ranks), str(each), str(OFTEN), str(BYTES), *written],
        env={**os.environ, **COUNTED, **variables},
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    return read_counters(done.stdout)


def read_counters(text: str) -> dict[str, int]:
    return {name: int(count) for count, name in re.findall(r"^ *(\d+)  (\w+)$", text, re.MULTILINE)}


def refused(library: Path, data: bytes, place: Path) -> str:
    path = place / "a.json"
    path.write_bytes(data)
    build = sha256(library.read_bytes()).hexdigest()
    return refusal_of(library, build, Asked([VARIABLE], files={VARIABLE: str(path)}), os.environ)[0]


def test_the_older_variable_is_unknown_there(library: Path) -> None:
    build = sha256(library.read_bytes()).hexdigest()
    assert f"does not know {OLD}" in refusal_of(library, build, Asked([OLD]), os.environ)[0]


def test_variables_that_choose_an_algorithm_are_read_at_the_start_alone(prefix: Path, each: Path) -> None:
    """Why nothing can be measured side by side there; where this fails, `open_backend` need not refuse it any more."""
    by_environment = counters(prefix, each, 2, MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM="circ_graph")
    assert by_environment["MPIR_Allgather_intra_circ_graph"] == OFTEN
    numbers = [f"MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM={number}" for number in range(1, 9)]
    for number in numbers:
        assert counters(prefix, each, 2, number) == counters(prefix, each, 2), number
    with pytest.raises(InputError, match="side by side"):
        open_backend(find_mpi(str(prefix / "bin" / "mpiexec"), os.environ))


def test_its_own_trees_are_clean_and_it_runs_what_our_file_says(
    library: Path, prefix: Path, program: Path, tmp_path: Path
) -> None:
    """Every legal call under rules; the library's own counters say which algorithms ran."""
    own = cut_named_trees(library)
    text = json.dumps({f"name={name}": tree for name, tree in own.items()}).encode()
    assert [format_check(one) for one in lint_named_files({"own": text}, "5.1.0")] == []
    emitter = MpichNamedEmitter(CATALOGUE, own)
    small = Rule(None, None, 16, Choice("scatter_ring_allgather"))
    rules = [
        RuleSet("bcast", SizeBasis.MESSAGE, (small, Rule(None, None, None, DEFAULT))),
        RuleSet.always("allgather", SizeBasis.TOTAL, parse_choice("k_brucks(k=4)")),
        RuleSet.always("alltoall", SizeBasis.MESSAGE, Choice("pairwise")),
        RuleSet.always("allreduce", SizeBasis.MESSAGE, Choice("reduce_scatter_allgather")),
    ]
    files = emitter.emit(rules)
    assert refused(library, files[NAMED_FILE], tmp_path) == ""
    (tmp_path / NAMED_FILE).write_bytes(files[NAMED_FILE])
    done = run_to_end(
        [str(prefix / "bin" / "mpiexec"), "-n", "3", str(program), "0", "5"],
        env={**os.environ, **COUNTED, **emitter.environment(tmp_path)},
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    ran = read_counters(done.stdout)
    for name in ("Bcast_intra_scatter_ring_allgather", "Allgather_intra_k_brucks", "Alltoall_intra_pairwise"):
        assert ran[f"MPIR_{name}"] > 0, ran
    # Behind its preconditions: on three ranks fewer elements than two keep the library's own choice.
    assert ran["MPIR_Allreduce_intra_reduce_scatter_allgather"] > 0, ran


SHAPES = [*((ranks, 1) for ranks in range(1, 9)), *((ranks, 2) for ranks in range(2, 9))]


def run_rounds(prefix: Path, each: Path, place: Path, shapes: Sequence[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """What the library counted under the file of each round, in jobs of ``shapes`` (ranks, pretended nodes)."""
    emitter = MpichNamedEmitter(CATALOGUE, cut_named_trees(prefix / "lib" / "libmpi.so"))
    for rule_sets in rounds():
        (place / NAMED_FILE).write_bytes(emitter.emit(rule_sets)[NAMED_FILE])
        for ranks, nodes in shapes:
            cliques = {"MPIR_CVAR_NUM_CLIQUES": str(nodes)} if nodes > 1 else {}
            ran = counters(prefix, each, ranks, **emitter.environment(place), **cliques)
            choices = {one.collective: str(one.rules[0].choice) for one in rule_sets}
            yield {"ranks": ranks, "nodes": nodes, "choices": choices, "counted": ran}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape[0]} ranks on {shape[1]}")
def test_every_choice_runs_where_the_file_says(
    library: Path, prefix: Path, each: Path, tmp_path: Path, shape: tuple[int, int]
) -> None:
    own = cut_named_trees(library)
    for run in run_rounds(prefix, each, tmp_path, [shape]):
        check_counted(own, run)


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("number", range(len(rounds())))
def test_every_legal_call_is_right_under_every_choice(
    library: Path, prefix: Path, tmp_path: Path, number: int, nodes: int
) -> None:
    """The conformance check on 1 to 8 ranks; what the library fails without a file is not the file's fault."""
    found = replay(prefix, tmp_path, number, nodes)
    assert found.passed, found.message
    assert found.cases > 1500


def replay(prefix: Path, place: Path, number: int, nodes: int) -> ConformanceResult:
    """The whole replay under the file of round ``number``, on 8 ranks of ``nodes`` pretended nodes."""
    emitter = MpichNamedEmitter(CATALOGUE, cut_named_trees(prefix / "lib" / "libmpi.so"))
    (place / NAMED_FILE).write_bytes(emitter.emit(rounds()[number])[NAMED_FILE])
    program = build(prefix / "bin" / "mpicc", PROGRAM, place / "cache")
    command = [str(prefix / "bin" / "mpiexec"), "-n", "8", str(program), *replay_arguments(range(1, 9), short=True)]
    environment = {**os.environ, "FI_PROVIDER": "tcp", **QUIET, "MPIR_CVAR_NUM_CLIQUES": str(nodes)}
    found = run_conformance(command, {**environment, **emitter.environment(place)}, 600)
    return found if found.passed else beyond_the_library(found, run_conformance(command, environment, 600))


@pytest.mark.parametrize(
    "tree",
    [
        {"comm_avg_ppn<=8": LEAF, "any": LEAF},
        {"comm_size <= 8": LEAF, "any": LEAF},
        {"algorithm=MPIDI_Bcast_intra_composition_alpha": {}},
        {"algorithm=MPIR_Bcast_intra_tree": {"k=2": {}}},
        {},
        "call=nowhere",
        "bcast-intra-auto",
    ],
)
def test_what_lint_says_ends_the_job_does_so(library: Path, tree: object, tmp_path: Path) -> None:
    data = json.dumps({"name=bcast-intra-auto": tree}).encode()
    assert [one.severity for one in lint_named_files({"a": data}, "5.1.0")] == ["error"]
    assert "ends a job at the files" in refused(library, data, tmp_path)


def test_what_cannot_be_parsed_is_ignored_in_silence(library: Path, tmp_path: Path) -> None:
    """The reason why lint must find it: the library says nothing."""
    data = b'{"name=bcast-intra-auto": {"any": '
    assert lint_named_files({"a": data}, "5.1.0")
    assert refused(library, data, tmp_path) == ""


def record(prefix: Path, path: Path) -> None:
    """Writes what the library counts in every round and shape, and its own trees, for `test_mpich_named_recorded`."""
    with tempfile.TemporaryDirectory() as place:
        made = compiled(prefix, "call_each", Path(place))
        own = cut_named_trees(prefix / "lib" / "libmpi.so")
        runs = []
        for run in run_rounds(prefix, made, Path(place), SHAPES):
            check_counted(own, run)
            runs.append(run)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps({"own": own, "runs": runs}, indent=0).encode(), mtime=0))


def record_replay(prefix: Path, path: Path) -> None:
    """Appends a line for each round and number of nodes that ``path`` lacks: the choices, and what the replay found."""
    known = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for nodes in (1, 2):
        for number, rule_sets in enumerate(rounds()):
            choices = {one.collective: str(one.rules[0].choice) for one in rule_sets}
            if any((one["nodes"], one["choices"]) == (nodes, choices) for one in known):
                continue
            with tempfile.TemporaryDirectory() as place:
                found = replay(prefix, Path(place), number, nodes)
            line = {"nodes": nodes, "choices": choices, "cases": found.cases, "passed": found.passed}
            with path.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(line, "" if found.passed else found.message, flush=True)


if __name__ == "__main__":
    built = Path(os.environ["COLLTUNE_TEST_MPICH_NAMED"])
    record_replay(built, REPLAYED) if sys.argv[1:] == ["replay"] else record(built, RECORDED)
