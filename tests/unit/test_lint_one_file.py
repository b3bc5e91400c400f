"""colltune-lint, the one file, says what `colltune lint` says, without anything beside it."""

import json
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

from colltune.cli.app import app
from commands import run_to_end
from examples import examples
from lint_mutants import COLLECTIVES, MUTANTS, UNDECIDED, VERSIONS, Mutant, mind, mutant, record, valid_files
from lint_trees import complete_file

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
RECORDED = ROOT / "tests" / "recorded" / "lint" / "mutants.jsonl"


@pytest.fixture(scope="module")
def one_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made from the package, in a folder of its own."""
    made = run_to_end([sys.executable, ROOT / "packaging" / "lint" / "one_file.py"], check=True)
    path = tmp_path_factory.mktemp("lint") / "colltune_lint.py"
    path.write_text(made.stdout, encoding="utf-8")
    return path


def alone(one_file: Path, *words: str | Path) -> tuple[int, str]:
    """Its exit code and output in a Python that has no other packages than its own."""
    command = [sys.executable, "-I", "-S", one_file, *words]
    done = run_to_end(command, cwd=one_file.parent, env={})
    return done.returncode, done.stdout + done.stderr


def package(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["lint", *map(str, words)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def same(one_file: Path, version: str, *paths: Path) -> tuple[int, str]:
    """What both say."""
    said = alone(one_file, *paths, "--mpi-version", version)
    assert said == package(*paths, "--mpi-version", version)
    return said


def written(place: Path, one: Mutant) -> list[Path]:
    place.mkdir(exist_ok=True)
    for name, data in one.files.items():
        (place / name).write_bytes(data)
    return [place / name for name in one.files]


@pytest.mark.parametrize("library", list(VERSIONS))
def test_valid_files_are_clean_and_changed_ones_get_the_same_findings(
    one_file: Path, library: str, tmp_path: Path
) -> None:
    for seed in examples(2, 6):
        random = Random(f"valid {seed}")
        collective = random.choice(COLLECTIVES[library])
        valid = Mutant(library, collective, valid_files(library, collective, random), "")
        code, output = same(one_file, VERSIONS[library], *written(tmp_path / f"{seed}", valid))
        assert (code, output.count(": 0 errors, 0 warnings")) == (0, 1)
        same(one_file, VERSIONS[library], *written(tmp_path / f"{seed}", mutant(library, seed)))


def test_every_format_of_the_two_libraries_is_read(one_file: Path, tmp_path: Path) -> None:
    for version in ("4.0.3", "4.3.2", "5.0.2"):
        (tmp_path / "complete.json").write_bytes(complete_file(version))
        assert same(one_file, version, tmp_path / "complete.json")[0] == 0
    assert same(one_file, "5.0.2", GOLDEN / "mpich" / "5.0" / "mpich-coll.json")[0] == 1


def test_what_it_cannot_look_at_is_one_line(one_file: Path, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    for words, said in (
        ([tmp_path / "none.json", "--mpi-version", "5.0.2"], "No such file"),
        ([tmp_path, "--mpi-version", "5.0.2"], "is a directory"),
        ([tmp_path / "a.json", "--mpi-version", "3.2"], "is older than"),
        ([tmp_path / "a.json", "--mpi-version", "five"], "cannot read the version"),
    ):
        code, output = alone(one_file, *words)
        assert (code, said in output, output.count("\n")) == (2, True, 1), output


def test_it_says_its_version(one_file: Path) -> None:
    assert alone(one_file, "--version")[1].startswith("colltune-lint ")


@pytest.mark.parametrize("step", [10, pytest.param(1, marks=pytest.mark.slow)])
def test_lint_says_of_500_changed_files_what_was_recorded_and_the_libraries_agree(step: int) -> None:
    """tests/mpi/test_lint_mutants.py asks the libraries again. ``step``: one in so many is looked at."""
    rows = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == len(VERSIONS) * MUTANTS
    rows = rows[::step]
    said: Counter[str] = Counter()
    for row in rows:
        one = mutant(row["library"], row["seed"])
        outcome = row.pop("ran")
        assert {"library": row["library"], "seed": row["seed"], **record(one)} == row
        said[mind(row["library"], row["seed"], one.findings(), outcome)] += 1
    undecided = sum((row["library"], row["seed"]) in UNDECIDED for row in rows)
    assert said == Counter(one=len(rows) - undecided, undecided=undecided)
