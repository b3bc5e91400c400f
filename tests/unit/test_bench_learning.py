"""The benchmark of the learners runs, and takes what it can from an earlier run."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from colltune.core.errors import InputError
from colltune.evaluate.compare import read_steps, write_steps

pytest.importorskip("pandas")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def table(path: Path) -> Path:
    """``a`` is the faster below 1 KiB, ``b`` from there on."""
    rows = ["collective,algorithm,nodes,ppn,msg_bytes,time_us"]
    for nodes in (2, 4, 8, 16):
        for size in (1 << power for power in range(15)):
            slow = {"a": 1.0 if size < 1024 else 2.0, "b": 1.5 if size < 1024 else 1.0}
            rows += [f"bcast,{name},{nodes},1,{size},{(2 + nodes + size / 1000) * slow[name]}" for name in slow]
    path.write_text("\n".join(rows) + "\n")
    return path


def ran(script: str, *arguments: object) -> str:
    command = [sys.executable, str(BENCHMARKS / script), *map(str, arguments), "--jobs", "1"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def bench(*arguments: object) -> dict[str, float]:
    return json.loads(ran("bench_learning.py", *arguments, "--seeds", 2, "--minutes", 0))


def test_a_strategy_can_be_run_alone_and_compared_with_the_others_of_an_earlier_run(tmp_path: Path) -> None:
    data = table(tmp_path / "t.csv")
    bench(data, "--strategies", "random,fact", "--out", tmp_path / "theirs")
    both = bench(
        data, "--strategies", "ours", "--reuse", tmp_path / "theirs/learning_steps.csv", "--out", tmp_path / "b"
    )
    at_once = bench(data, "--strategies", "ours,random,fact", "--out", tmp_path / "at_once")
    assert both == at_once
    assert {"cost_ratio_random", "cost_ratio_fact", "stop_share", "tables", "seeds"} <= set(both)
    assert both["seeds"] == 2


def test_steps_are_read_as_they_were_written(tmp_path: Path) -> None:
    data = table(tmp_path / "t.csv")
    bench(data, "--strategies", "random", "--out", tmp_path)
    runs = read_steps(tmp_path / "learning_steps.csv")
    assert {(run.strategy, run.seed) for run in runs} == {("random", 0), ("random", 1)}
    write_steps(tmp_path / "again.csv", runs)
    first, again = (
        list(csv.DictReader((tmp_path / name).open(newline=""))) for name in ("learning_steps.csv", "again.csv")
    )
    seconds = [[float(row.pop("cost_s")) for row in rows] for rows in (first, again)]
    assert first == again
    assert seconds[0] == pytest.approx(seconds[1], rel=1e-4)
    with pytest.raises(InputError, match="no table of steps"):
        read_steps(data)


def test_equal_looks_are_compared_in_both_ways(tmp_path: Path) -> None:
    ran("equal_looks.py", table(tmp_path / "t.csv"), "--seeds", 1, "--out", tmp_path)
    found = json.loads((tmp_path / "learning_looks.json").read_text())
    with (tmp_path / "learning_looks_reach.csv").open(newline="") as file:
        reach = {row["strategy"]: float(row["cost"]) for row in csv.DictReader(file)}
    for other in ("acclaim", "fact", "random"):
        ratio = f"cost_ratio_{other}"
        assert found[ratio] == pytest.approx(reach["ours"] / reach[other], abs=1e-3)
        assert found[f"{ratio}_full_looks_for_both"] == pytest.approx(reach["ours, 20 each"] / reach[other], abs=1e-3)
        assert found[f"{ratio}_few_looks_for_both"] == pytest.approx(
            reach["ours"] / reach[f"{other}, 3 each"], abs=1e-3
        )


def test_settings_are_judged_on_tables_that_had_no_say(tmp_path: Path) -> None:
    tables = [table(tmp_path / name) for name in ("t.csv", "u.csv", "v.csv")]
    ran("learning_settings.py", *tables, "--seeds", 1, "--out", tmp_path)
    text = (tmp_path / "learning_settings.md").read_text()
    assert text.startswith("3 tables of 3 files, 1 seed")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("|")][2:]
    assert rows[0][1].strip() == "as it is"
    for column in (4, 5):
        assert sum(int(row[column]) for row in rows) == 3
