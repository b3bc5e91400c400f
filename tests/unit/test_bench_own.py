"""The figures of `make bench-own` and `make bench-variance`, of launches with effects that are known."""

import argparse
import importlib.util
import json
import math
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from colltune.core.choice import DEFAULT, Choice
from colltune.core.sample import Environment, Sample, Status
from colltune.core.scenario import Scenario
from colltune.store.journal import Journal

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
HERE = Environment("mpich", "5.0.2", "0" * 64, "namespaces", 8, 2, "single")
RING, TREE = Choice("ring"), Choice("tree")
SIZES = (64, 128, 256)


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.chdir(tmp_path)
    for name in ("bench_own", "bench_variance", "judge_osu"):
        spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
    found: ModuleType = sys.modules["bench_own"]
    return found


def record(place: Path, launches: int, rounds: int, deviations: tuple[float, float, float, float]) -> None:
    """Of calls whose ring is 1.25 times as fast as the default, and whose tree is as fast."""
    together, by_choice, in_round, rest = deviations
    random = np.random.default_rng(1)
    gains = {DEFAULT: 0.0, RING: math.log(1.25), TREE: 0.0}
    place.mkdir(parents=True)
    for number in range(launches):
        with Journal.create(place / f"launch-{number + 1}.jsonl", HERE) as journal:
            for size in SIZES:
                of_launch = together * random.standard_normal()
                own = {one: by_choice * random.standard_normal() for one in gains}
                for _ in range(rounds):
                    of_round = in_round * random.standard_normal()
                    for choice, gain in gains.items():
                        log_s = math.log(1e-4) - gain + of_launch + own[choice] + of_round
                        time_s = math.exp(log_s + rest * random.standard_normal())
                        scenario = Scenario("bcast", 8, 2, size)
                        journal.append([Sample(scenario, choice, Status.OK, (time_s,), osu_mean_s=0.5 * time_s)])


def test_the_deviations_that_times_were_made_with_are_found(own: ModuleType) -> None:
    truth = (0.3, 0.1, 0.07, 0.05)
    record(own.KEPT / "8x2", 40, 8, truth)
    made = sys.modules["bench_variance"].of_shape("8x2")
    parts = [made[f"{part}_bcast_8x2"] for part in ("launch_together", "launch_own", "round_together", "round_own")]
    assert parts == pytest.approx(truth, rel=0.25)
    assert made["launches_8x2"] == 40
    assert made["believes_round_bcast_8x2"] > made["gets_launch_bcast_8x2"] >= made["gets_round_bcast_8x2"]
    assert made["best_bcast_8x2"] == pytest.approx(1.25, rel=0.06)


def test_a_call_without_a_rule_counts_as_one_and_the_best_is_judged_in_other_launches(own: ModuleType) -> None:
    record(own.KEPT / "8x2", 6, 2, (0.3, 0.0, 0.0, 0.0))
    for number, ruled in enumerate((1.2, 1.44, 1.3)):
        place = own.KEPT / f"8x2-5m-{number + 1}"
        place.mkdir()
        judged = {"osu_points": 4, "osu_ruled": 2, "osu_geomean_ruled": ruled, "osu_slower": number}
        (place / "osu.json").write_text(json.dumps(judged))
    made = own.figures(argparse.Namespace(plan=[own.Plan.parse("8x2:5m:3")]))
    assert made["geomean_5m_8x2"] == pytest.approx(math.sqrt(1.3), abs=1e-3)
    assert made["best_8x2"] == pytest.approx(1.25, abs=1e-3)
    assert made["captured_5m_8x2"] == pytest.approx(0.5 * math.log(1.3) / math.log(1.25), abs=1e-3)
    assert (made["slower"], made["decided_share"], made["tunings_5m_8x2"]) == (3, 0.5, 3)


def test_times_of_launches_that_were_kept_are_read_again_and_a_torn_line_is_not(own: ModuleType) -> None:
    judge, path = sys.modules["judge_osu"], own.KEPT.parent / "osu.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    judge.record(path, "0 tuned bcast 8 2", [1e-4, 2e-4])
    with path.open("a") as file:
        file.write('{"1 tuned bcast 8 2": [1e-4, ')
    assert judge.recorded(path) == {"0 tuned bcast 8 2": [1e-4, 2e-4]}
    assert judge.recorded(None) == {}
