"""`colltune lint` as a command and as one file, the table of its findings, and the guarded copy."""

import json
import re
import sys
from collections import Counter
from pathlib import Path
from random import Random
from string import Formatter

import pytest
from test_lint import DOUBLING, RING, file_with
from typer.testing import CliRunner

from colltune.catalog import load
from colltune.catalog.read import read_toml
from colltune.cli.app import app
from colltune.core.errors import InputError
from colltune.core.sample import Environment
from colltune.emit.lint.check import FindingsOfFile, Severity
from colltune.emit.mpich.tree import format_tree
from colltune.session.lint import lint_selection
from colltune.store.tuning import Tuning, save_tuning
from commands import colltune, run_to_end
from examples import examples
from lint_mutants import COLLECTIVES, MUTANTS, UNDECIDED, Mutant, mind, mutant, record, valid_files
from lint_mutants import VERSIONS as RELEASES
from lint_trees import complete_file, complete_trees


def run(*arguments: str | Path, version: str = "5.0.2") -> tuple[int, str]:
    result = CliRunner().invoke(app, ["lint", *map(str, arguments), "--mpi-version", version], catch_exceptions=False)
    return result.exit_code, result.output


def test_a_clean_file_or_a_warning_alone_ends_with_0(tmp_path: Path) -> None:
    clean, device, warned = (tmp_path / name for name in ("a.json", "b.json", "c.json"))
    clean.write_bytes(file_with("allgather", RING))
    device.write_bytes(format_tree(complete_trees(load("mpich", "5.0.2")).ch4))
    assert run(clean, device) == (0, "2 files for MPICH 5.0.2: 0 errors, 0 warnings\n")
    done = colltune("lint", str(clean), "--mpi-version", "99.0")
    assert "mpich 99.0 is not in the catalogue; it is taken for" in done.stdout + done.stderr
    warned.write_bytes(file_with("allgather", {"comm_size<=8": RING, "comm_size<=4": RING, "comm_size=any": RING}))
    code, output = run(warned)
    assert code == 0
    assert "0 errors, 1 warning" in output


def test_a_tuning_is_linted_for_its_own_mpi_where_that_is_not_here(tmp_path: Path) -> None:
    environment = Environment("openmpi", "4.1.4", "abc", "a machine", 1, 4, "single")
    rules = {"openmpi/rules.conf": b"1\n7\n1\n2\n1\n0 6 0 0\n"}
    save_tuning(tmp_path / "tuned", Tuning(environment, {}, rules, {}))
    nowhere = {"PATH": str(tmp_path)}
    assert lint_selection([tmp_path / "tuned"], nowhere).version == "4.1.4"
    with pytest.raises(InputError, match="mpiexec"):
        lint_selection([tmp_path / "tuned" / "openmpi" / "rules.conf"], nowhere)


def test_a_tuning_directory_is_linted_file_by_file_and_an_error_is_shown_with_its_place(tmp_path: Path) -> None:
    environment = Environment("mpich", "5.0.2", "abc", "a machine", 1, 4, "single")
    files = {"mpich/a.json": file_with("allgather", DOUBLING), "mpich/b.json": file_with("allgather", RING)}
    save_tuning(tmp_path / "tuned", Tuning(environment, {}, {**files, "live/rules": b"x"}, {}))
    code, output = run(tmp_path / "tuned")
    bad = tmp_path / "tuned" / "mpich" / "a.json"
    line = bad.read_text().split("\n").index('   "algorithm=MPIR_Allgather_intra_recursive_doubling": {}') + 1
    error = f"{bad}:{line}: error: MPIR_Allgather_intra_recursive_doubling can be reached on 3 ranks\n"
    assert (code, output[: len(error)]) == (1, error)
    assert output.endswith("2 files for MPICH 5.0.2: 1 error, 0 warnings\n")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="is a directory and holds no tuning"):
        run(tmp_path / "empty")


TABLE = read_toml("lint_findings")
SOURCE = "".join(
    path.read_text(encoding="utf-8") for path in (Path(__file__).parents[2] / "src/colltune/emit").rglob("*.py")
)
FINDINGS = [(form, name) for form, rows in TABLE.items() for name in rows if name != "phrases"]


@pytest.mark.parametrize(("form", "name"), FINDINGS)
def test_a_finding_of_the_table_is_named_in_the_code_and_can_be_made(form: str, name: str) -> None:
    assert f'"{name}"' in SOURCE, "nothing says it"
    row = TABLE[form][name]
    assert row.keys() - {"severity"} == {"what", "why", "fix"}
    fields = {field for part in ("what", "why", "fix") for _, field, _, _ in Formatter().parse(row[part]) if field}
    values = {field: 1.0 if field == "wait_s" else "{x}" for field in fields - TABLE[form]["phrases"].keys()}
    check = FindingsOfFile(form, "a file").finding(name, 3, ("a", "b"), **values)
    assert (check.file, check.line, check.path) == ("a file", 3, ("a", "b"))
    assert check.severity is Severity(row.get("severity", "error"))
    assert not re.search(r"\{(?!x\}|\.\.\.\}|\})", check.what + check.why + check.fix), "a place that was not filled"


def test_every_form_of_the_code_is_in_the_table() -> None:
    named = re.findall(r'(?:FindingsOfFile|super\(\).__init__|_Lint)\("([a-z-]+)", ?name|__init__\("([a-z-]+)"', SOURCE)
    assert {one or other for one, other in named} >= TABLE.keys()


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


def same(one_file: Path, version: str, *paths: Path) -> tuple[int, str]:
    """What both say."""
    said = alone(one_file, *paths, "--mpi-version", version)
    assert said == run(*paths, version=version)
    return said


def written(place: Path, one: Mutant) -> list[Path]:
    place.mkdir(exist_ok=True)
    for name, data in one.files.items():
        (place / name).write_bytes(data)
    return [place / name for name in one.files]


@pytest.mark.parametrize("library", list(RELEASES))
def test_valid_files_are_clean_and_changed_ones_get_the_same_findings(
    one_file: Path, library: str, tmp_path: Path
) -> None:
    for seed in examples(2, 6):
        random = Random(f"valid {seed}")
        collective = random.choice(COLLECTIVES[library])
        valid = Mutant(library, collective, valid_files(library, collective, random), "")
        code, output = same(one_file, RELEASES[library], *written(tmp_path / f"{seed}", valid))
        assert (code, output.count(": 0 errors, 0 warnings")) == (0, 1)
        same(one_file, RELEASES[library], *written(tmp_path / f"{seed}", mutant(library, seed)))


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
    """tests/mpi/test_lint_real.py asks the libraries again. ``step``: one in so many is looked at."""
    rows = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == len(RELEASES) * MUTANTS
    rows = rows[::step]
    said: Counter[str] = Counter()
    for row in rows:
        one = mutant(row["library"], row["seed"])
        outcome = row.pop("ran")
        assert {"library": row["library"], "seed": row["seed"], **record(one)} == row
        said[mind(row["library"], row["seed"], one.findings(), outcome)] += 1
    undecided = sum((row["library"], row["seed"]) in UNDECIDED for row in rows)
    assert said == Counter(one=len(rows) - undecided, undecided=undecided)
