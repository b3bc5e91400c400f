"""The benchmark of the learners runs, and takes what it can from an earlier run."""

import csv
import json
import subprocess
from pathlib import Path

import pytest
from test_evaluation import table

from bench_learning import read_steps
from colltune.core.errors import InputError
from colltune_study.research.compare import write_steps
from commands import script

pytest.importorskip("pandas")

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "bench_learning.py"


def ran(*arguments: object) -> subprocess.CompletedProcess[str]:
    ended = script(SCRIPT, *arguments, "--minutes", "0", "--jobs", "1")
    assert ended.returncode == 0, ended.stderr
    return ended


def bench(*arguments: object) -> dict[str, float]:
    return json.loads(ran(*arguments, "--seeds", "2").stdout)


@pytest.mark.slow
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


@pytest.mark.slow
def test_ours_is_compared_at_equal_repetitions_too_and_with_random_sampling_on_log_times(tmp_path: Path) -> None:
    strategies = "ours,random,random-log,ours@20,random@3"
    ran(table(tmp_path / "t.csv"), "--seeds", 1, "--strategies", strategies, "--out", tmp_path)
    found = json.loads((tmp_path / "learning.json").read_text())
    with (tmp_path / "learning_reach.csv").open(newline="") as file:
        reach = {row["strategy"]: float(row["cost"]) for row in csv.DictReader(file)}
    for figure, ours, other in (
        ("cost_ratio_random", "ours", "random"),
        ("cost_ratio_random_log", "ours", "random-log"),
        ("cost_ratio_random_equal", "ours@20", "random"),
        ("cost_ratio_random_log_equal", "ours@20", "random-log"),
        ("cost_ratio_random_equal_few", "ours", "random@3"),
    ):
        assert found[figure] == pytest.approx(reach[ours] / reach[other], abs=1e-3), figure
        if figure.endswith("_equal"):  # of one table
            assert found[f"{figure}_low"] == found[figure] == found[f"{figure}_high"]


@pytest.mark.slow
def test_a_table_of_many_choices_is_judged_with_the_others(tmp_path: Path) -> None:
    tables = table(tmp_path / "t.csv"), table(tmp_path / "many.csv")
    with tables[1].open("a") as file:
        file.writelines(f"bcast,c{n},2,1,{size},9.0,False\n" for n in range(61) for size in (1, 2, 4))
    done = ran(*tables, "--seeds", 1, "--strategies", "random", "--out", tmp_path)
    assert json.loads(done.stdout) == {"tables": 2, "seeds": 1}
    with (tmp_path / "learning_reach.csv").open(newline="") as file:
        assert "many/bcast" in {row["grid"] for row in csv.DictReader(file)}
