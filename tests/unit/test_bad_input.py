"""Slips of the fingers: one line that says what is wrong and what to do, before anything heavy is loaded or started."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from colltune.core.errors import InputError
from colltune.store.tuning import MANIFEST, load_tuning
from commands import colltune
from terminals import MEASURED


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["tune", "--profile", "PROGRAM"],
            "is a program or other binary file, and no profile. Make one: colltune profile",
        ),
        (["profile", "show", "PROGRAM"], "is a program or other binary file"),
        (["tune", "bcast", "--min-size", "1MiB", "--max-size", "4"], "--min-size 1 MiB is above --max-size 4 B"),
        (["plan", "bcast", "--min-size", "1MiB", "--max-size", "4"], "--min-size 1 MiB is above --max-size 4 B"),
        (["report", "absent"], "absent does not exist (tuning.json). Make one: colltune tune"),
        (["verify", "."], ". holds no tuning"),
        (["env", "PROGRAM"], "is a program or other binary file, and no tuning. Give the directory of one"),
        (["site", "status", "absent"], "absent is no store of a site: No such file"),
        (["study", "evaluate", "absent"], "there is no file absent. Give a CSV"),
    ],
)
def test_bad_input_gets_one_line(words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = str(Path(sys.executable).resolve())
    done = colltune(*(program if word == "PROGRAM" else word for word in words))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("field", "value"), [("total_s", 1e300), ("samples", 10**30)])
def test_numbers_that_nobody_measured_are_refused(field: str, value: float, tmp_path: Path) -> None:
    place = tmp_path / "tuned"
    shutil.copytree(MEASURED, place)
    manifest = json.loads((place / MANIFEST).read_text())
    manifest["summary"][field] = value
    (place / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="out of range"):
        load_tuning(place)
