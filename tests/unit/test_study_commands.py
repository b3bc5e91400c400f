"""`colltune study`: the commands of colltune-study where that is installed, and how to get it elsewhere."""

import sys
from pathlib import Path

import pytest

import commands
from colltune.core import extras
from colltune.core.extras import __version__

_INSTALL = "Run pip install ./packaging/study"


def test_the_commands_of_the_study_are_listed_and_run() -> None:
    shown = commands.colltune("study", "--help", code=0)
    for name in ("collect", "evaluate", "train"):
        assert f"\n  {name} " in shown.stdout
        assert commands.colltune("study", name, "--help").returncode == 0


@pytest.mark.parametrize("words", [["study"], ["study", "evaluate", "data.csv", "--seeds", "3"]])
def test_without_the_study_one_line_says_how_to_get_it(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "_study_version", lambda: "")
    done = commands.colltune(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("colltune: this needs colltune-study, which is not installed. " + _INSTALL)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("version", "entry", "what"),
    [
        ("9.9.0", "colltune_study.cli:COMMANDS", f"9.9.0 does not fit colltune {__version__}"),
        (__version__, "absent_module:COMMANDS", "cannot be loaded: No module named 'absent_module'"),
        (__version__, "colltune_study.cli:ABSENT", "cannot be loaded: module 'colltune_study.cli' has no attribute"),
    ],
)
def test_a_study_that_does_not_fit_is_named_and_not_run(
    version: str, entry: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / f"colltune_study-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: colltune-study\nVersion: {version}\n")
    (about / "entry_points.txt").write_text(f"[colltune.study]\ncommands = {entry}\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    done = commands.colltune("study", "evaluate", "data.csv", code=2)
    assert what in done.stderr
    assert _INSTALL in done.stderr
    assert "Traceback" not in done.stderr
    # The other commands do not care.
    assert commands.colltune("--help").returncode == 0
