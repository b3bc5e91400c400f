"""What `make artifact` runs: every row of the page of results has a step, or a reason why none makes it."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import artifact
from commands import run_to_end

ROOT = Path(__file__).parents[2]


def test_every_row_of_the_results_has_a_step_or_a_reason() -> None:
    rows = set(artifact.rows_of(artifact.PAGE.read_text(encoding="utf-8")))
    assert len(rows) > 40
    assert rows == set(artifact.ROWS), (
        "a row of docs/results.md came or went: say in benchmarks/artifact.py what makes it"
    )
    assert set(artifact.STEPS) <= set(artifact.ROWS.values()), "a step makes no row"


def test_all_steps_together_take_an_hour_at_most() -> None:
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


def test_a_step_that_is_not_done_in_its_time_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text("import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])\n")
    monkeypatch.setattr(artifact, "ROOT", tmp_path)
    step = artifact.Step(str(slow), "never.json", 0.01)
    assert artifact.run(step) == "cut off after 0.01 minutes"
    quick = tmp_path / "quick.py"
    quick.write_text("open('made.json', 'w').write('{}')\n")
    assert artifact.run(artifact.Step(str(quick), "made.json", 1)).startswith("done in")
    assert artifact.run(artifact.Step(str(quick), "other.json", 1)).startswith("failed: no other.json")
    assert artifact.run(replace(step, command=str(tmp_path / "absent.py"), minutes=1)).startswith(
        "failed with exit code 2"
    )


def test_the_list_is_printed_without_running_anything() -> None:
    command = [sys.executable, ROOT / "benchmarks/artifact.py", "--list"]
    said = run_to_end(command, check=True).stdout
    assert "| `python benchmarks/bench_lookup.py` | bench/lookup.json | not run |" in said
    assert "not made: takes hours" in said
    assert "is not in the list" not in said
