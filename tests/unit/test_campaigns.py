"""`colltune study evaluate --campaign`: what whole campaigns deliver, on a small table with a known best."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from colltune.core.errors import InputError
from colltune.session.recorded_campaign import Delivery
from colltune_study.research.campaign_figures import by_table, campaigns_table, draw_campaigns, write_campaigns
from colltune_study.research.evaluation import load
from colltune_study.research.whole_campaigns import CampaignPlan, run_campaigns
from commands import colltune

pytest.importorskip("pandas")

HEADER = "collective,algorithm,nodes,ppn,msg_bytes,time_us,is_default"


def table(path: Path, gain: float = 2.0, default: bool = True) -> Path:
    """``fast`` beats the default by ``gain`` up to 1 KiB, and is as much slower above; ``slow`` loses everywhere."""
    rows = [HEADER]
    for nodes in (2, 4, 6, 8):
        for size in (1 << power for power in range(0, 21, 2)):
            time_us = 10.0 + nodes + size / 1000.0
            small = size <= 1024
            times = {"fast": time_us / gain if small else time_us * gain, "slow": 3.0 * time_us, "same": time_us}
            rows += [f"bcast,{name},{nodes},1,{size},{value},False" for name, value in times.items()]
            if default:
                rows.append(f"bcast,default,{nodes},1,{size},{time_us},True")
    path.write_text("\n".join(rows) + "\n")
    return path


def delivery(name: str, seed: int, budget_s: float, captured: float) -> Delivery:
    return Delivery(name, seed, budget_s, captured, 0.01 * seed, 1.0 + seed / 10.0, budget_s, 1.0, 0.1, 3, 2)


def test_a_campaign_captures_the_headroom_without_harm_and_pays_for_its_launches(tmp_path: Path) -> None:
    grids = load([table(tmp_path / "t.csv")])
    (cheap,) = run_campaigns(grids, CampaignPlan((120.0,), seeds=1, launch_s=2.0)).delivered
    (dear,) = run_campaigns(grids, CampaignPlan((600.0,), seeds=1, launch_s=60.0)).delivered
    for one in (cheap, dear):
        assert one.captured > 0.8
        assert one.worst <= 1.10
        assert one.overrun <= 1.10
    # One launch to measure, and at least three to prove.
    assert cheap.total_s > 4 * 2.0
    assert dear.total_s > 4 * 60.0


def test_where_nothing_is_to_gain_nothing_is_proven(tmp_path: Path) -> None:
    (one,) = run_campaigns(load([table(tmp_path / "t.csv", gain=1.0)]), CampaignPlan((60.0,), seeds=1)).delivered
    assert one.kept == 0
    assert one.harmed == 0.0
    assert one.captured == 1.0


@pytest.mark.slow
def test_the_result_does_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    grids = load([table(tmp_path / "t.csv"), table(tmp_path / "u.csv", gain=1.3)])
    plan = CampaignPlan((30.0,), seeds=1)
    one, two = (run_campaigns(grids, replace(plan, jobs=jobs)).delivered for jobs in (1, 2))

    def facts(runs: tuple[Delivery, ...]) -> list[Delivery]:
        return sorted((replace(run, thinking_s=0.0) for run in runs), key=lambda run: run.table)

    assert facts(one) == facts(two)


def test_tables_without_the_default_are_left_out_with_the_reason(tmp_path: Path) -> None:
    bare = table(tmp_path / "bare.csv", default=False)
    with pytest.raises(InputError, match="default was not recorded in bare"):
        run_campaigns(load([bare]), CampaignPlan((30.0,), seeds=1))
    both = run_campaigns(load([bare, table(tmp_path / "t.csv")]), CampaignPlan((30.0,), seeds=1))
    assert list(both.refused) == ["bare"]
    assert {one.table for one in both.delivered} == {"t"}


def test_no_campaign_begins_after_the_end_of_the_time(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not one campaign ended"):
        run_campaigns(load([table(tmp_path / "t.csv")]), CampaignPlan((30.0,), seeds=1, limit_s=0.0))


def test_the_table_shows_medians_of_captured_headroom_and_the_worst_of_harm(tmp_path: Path) -> None:
    runs = [delivery("a", seed, 60.0, captured) for seed, captured in enumerate((0.2, 0.4, 0.6))]
    runs += [delivery("b", 0, 60.0, 0.8)]
    assert [len(own) for own in by_table(runs).values()] == [3, 1]
    lines = campaigns_table(runs).lines(120)
    (of_a,) = (line for line in lines if line.startswith("a "))
    assert "0.40" in of_a
    assert "2.00%" in of_a
    assert "1.20x" in of_a
    (median,) = (line for line in lines if line.startswith("median of 2 clusters"))
    assert "0.60" in median
    write_campaigns(tmp_path / "c.csv", runs)
    with (tmp_path / "c.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["captured"]) for row in rows] == [0.2, 0.4, 0.6, 0.8]
    assert float(rows[0]["overrun"]) == 1.0
    pytest.importorskip("matplotlib")
    draw_campaigns(tmp_path / "c.svg", runs)
    drawn = (tmp_path / "c.svg").read_text()
    draw_campaigns(tmp_path / "c.svg", runs)
    assert drawn == (tmp_path / "c.svg").read_text()


def test_the_command_prints_one_table_and_leaves_rows_and_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    data, out = table(tmp_path / "t.csv"), tmp_path / "out"
    command = ["study", "evaluate", str(data), "--campaign", "--out", str(out)]
    options = ["--seeds", "1", "--budgets", "20s,60s", "--launch", "1s", "--jobs", "1"]
    done = colltune(*command, *options)
    assert done.returncode == 0, done.stderr
    assert "1 table of 1 cluster, 1 seed each, budgets 20s, 60s" in done.stdout
    assert "2 of 2 campaigns" in done.stdout
    assert (out / "campaigns.png").stat().st_size > 0
    with (out / "campaigns.csv").open(newline="") as file:
        assert [row["budget_s"] for row in csv.DictReader(file)] == ["20", "60"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--campaign", "--good", "1.1"], "--good has no effect with --campaign"),
        (["--budgets", "1m"], "--budgets has no effect without --campaign"),
        (["--campaign", "--budgets", "soon"], "cannot read the duration 'soon'"),
    ],
)
def test_options_without_effect_are_refused(tmp_path: Path, options: list[str], message: str) -> None:
    command = ["study", "evaluate", str(table(tmp_path / "t.csv")), *options]
    done = colltune(*command, "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2
