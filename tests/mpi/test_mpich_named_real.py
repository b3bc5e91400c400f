"""MPICH with the redesigned selection reads our named trees, and ends where lint says that it ends.

No release has it. COLLTUNE_TEST_MPICH_NAMED names the prefix of a build (pull request 7547 of pmodels/mpich).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest
from jobs import C_FLAGS

from colltune.catalog import load
from colltune.core.choice import DEFAULT, Choice, parse_choice
from colltune.core.rules import Rule, RuleSet
from colltune.core.scenario import SizeBasis
from colltune.emit.lint_check import format_check
from colltune.emit.lint_named import lint_named_files
from colltune.emit.mpich_named import NAMED_FILE, MpichNamedEmitter, cut_named_trees
from colltune.emit.mpich_named_grammar import VARIABLE
from colltune.mpi.reads import Asked, refusal_of

pytestmark = pytest.mark.mpi
NATIVE = Path(__file__).parents[1] / "native"
LEAF = {"algorithm=MPIR_Bcast_intra_binomial": {}}
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
    made = tmp_path_factory.mktemp("program") / "legal_calls"
    command = [str(prefix / "bin" / "mpicc"), *C_FLAGS, str(NATIVE / "legal_calls.c"), "-o", str(made)]
    subprocess.run(command, check=True, timeout=120)
    return made


def refused(library: Path, data: bytes, place: Path) -> str:
    path = place / "a.json"
    path.write_bytes(data)
    build = sha256(library.read_bytes()).hexdigest()
    return refusal_of(library, build, Asked([VARIABLE], files={VARIABLE: str(path)}), os.environ)[0]


def test_the_older_variable_is_unknown_there(library: Path) -> None:
    build = sha256(library.read_bytes()).hexdigest()
    assert f"does not know {OLD}" in refusal_of(library, build, Asked([OLD]), os.environ)[0]


def test_its_own_trees_are_clean_and_it_runs_what_our_file_says(
    library: Path, prefix: Path, program: Path, tmp_path: Path
) -> None:
    """Every legal call under rules; the library's own counters say which algorithms ran."""
    own = cut_named_trees(library)
    text = json.dumps({f"name={name}": tree for name, tree in own.items()}).encode()
    assert [format_check(one) for one in lint_named_files({"own": text}, "5.1.0")] == []
    emitter = MpichNamedEmitter(load("mpich", "5.0.2"), own)
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
    variables = {**emitter.environment(tmp_path), "MPIR_CVAR_DUMP_COLL_ALGO_COUNTERS": "0", "FI_PROVIDER": "tcp"}
    done = subprocess.run(
        [str(prefix / "bin" / "mpiexec"), "-n", "3", str(program), "0", "5"],
        env={**os.environ, **variables}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    for name in ("Bcast_intra_scatter_ring_allgather", "Allgather_intra_k_brucks", "Alltoall_intra_pairwise"):
        assert re.search(rf"MPIR_{name}\b.*[1-9]", done.stdout), done.stdout[-2000:]
    # Behind its preconditions: on three ranks fewer elements than two keep the library's own choice.
    assert "MPIR_Allreduce_intra_reduce_scatter_allgather" in done.stdout


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
