"""The figures of the judge of OSU's programs, and the bound of what they can be."""

import csv
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from colltune.core.choice import DEFAULT, Choice
from colltune.core.scenario import Scenario
from colltune.judge.verdict import compare_all

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RING = Choice("ring")


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def judge_osu() -> ModuleType:
    return load("judge_osu")


def test_what_is_slower_by_itself_and_beyond_the_interval_of_all(judge_osu: ModuleType, tmp_path: Path) -> None:
    steps = [1.0 + 0.01 * step for step in range(8)]
    sides = {
        (Scenario("bcast", 8, 1, 64), RING): ([2.0 * t for t in steps], steps),
        (Scenario("bcast", 8, 1, 128), DEFAULT): (steps, steps),
        (Scenario("alltoall", 8, 1, 64), RING): (steps, [1.5 * t for t in steps]),
    }
    found = compare_all(sides)
    figures = judge_osu.figures(found)
    assert figures["osu_points"] == 3
    assert figures["osu_geomean"] == pytest.approx((2.0 / 1.5) ** (1 / 3), abs=2e-3)
    assert figures["osu_geomean_ruled"] == pytest.approx((2.0 / 1.5) ** 0.5, abs=2e-3)
    assert figures["osu_geomean_bcast"] == pytest.approx(2.0**0.5, abs=2e-3)
    assert (figures["osu_slower"], figures["osu_faster"]) == (1, 1)
    assert (figures["osu_slower_alone"], figures["osu_faster_alone"]) == (1, 1)
    judge_osu.write(tmp_path / "osu.csv", found)
    with (tmp_path / "osu.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["choice"] for row in rows] == ["ring", "default", "ring"]
    assert float(rows[2]["high"]) < 1.0
