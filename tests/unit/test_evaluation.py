"""`colltune study evaluate`: known answers, time that runs out, the files it leaves."""

import csv
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from colltune.bench.replay import MeasuringCost, Pair, ReplaySource
from colltune.core.errors import InputError
from colltune.core.sample import Choice, Sample, Scenario, Status
from colltune.core.space import Point, Prediction
from colltune.measure.contract import Effort
from colltune.profile.application_profile import Calls, Communicator, Profile
from colltune.profile.profile_files import save_profile
from colltune.store.grid import Grid
from colltune_study.research.evaluation import Plan, evaluate, load, load_weights
from colltune_study.research.learners.scaling import Scaling
from colltune_study.research.metrics import Metrics
from colltune_study.research.results_t4 import write_t4
from colltune_study.research.simulate import Pace, Run, Step, simulate
from colltune_study.research.strategies import contestants
from colltune_study.research.tunings_summary import (
    Axis,
    at_place,
    at_stop,
    complete_seeds,
    curve,
    mean_over_tables,
    places_on,
    write_curves,
    write_stops,
)
from colltune_study.research.weights import CallCounts, weights_of
from commands import colltune

pytest.importorskip("pandas")

HEADER = "collective,algorithm,nodes,ppn,msg_bytes,time_us,is_default"
A, B = Choice("a"), Choice("b")
BELIEVER = "test_evaluation:Believer"  # the class below


def table(path: Path, scenarios: int = 60) -> Path:
    """``a`` is 1.5 times faster below 1 KiB, ``b`` twice from there on; the default is three times too slow."""
    rows = [HEADER]
    for number in range(scenarios):
        nodes, size = 2 << number % 4, 1 << number // 4
        fast = 2.0 + nodes + size / 1000.0
        times = {"a": fast, "b": 1.5 * fast} if size < 1024 else {"a": 2.0 * fast, "b": fast}
        rows += [f"bcast,{name},{nodes},1,{size},{time},False" for name, time in times.items()]
        rows.append(f"bcast,default,{nodes},1,{size},{3 * fast},True")
    path.write_text("\n".join(rows) + "\n")
    return path


class Believer:
    """Measures in order, all choices of a scenario; what it has not seen it takes to be won by ``a``."""

    def __init__(self, space, seed):
        self._space, self._seen, self._asked = space, {}, 0

    def ask(self, count):
        return [Point(s, self._space.choices(s)) for s in self._space.scenarios[self._asked :]][:count]

    def tell(self, samples: Sequence):
        self._asked += 1
        self._seen.update({(s.scenario, s.choice): s.time_s for s in samples})

    def should_stop(self):
        return "half of it" if self._asked * 2 >= len(self._space.scenarios) else None

    def model(self):
        return self

    def predict(self, pairs):
        times = [self._seen.get(pair, 1.0 if pair[1] == A else 2.0) for pair in pairs]
        return Prediction(np.log(times), np.zeros(len(times)))


@pytest.fixture
def grid(tmp_path: Path) -> Grid:
    [one] = load([table(tmp_path / "t.csv")])
    return one


def run_of(name: str, strategy: str, seed: int, *slowdowns: float, stop: int | None = None) -> Run:
    """A state after every equal part of the cost; half of the pairs cost everything."""
    parts = [(number + 1) / len(slowdowns) for number in range(len(slowdowns))]
    states = [Metrics(slowdown, 0.9, 0.1, 2.0, 0.05, 0.5, slowdown, slowdown) for slowdown in slowdowns]
    steps = tuple(Step(part, part / 2, state) for part, state in zip(parts, states, strict=True))
    return Run(name, strategy, seed, steps, None if stop is None else steps[stop], total_s=10.0)


def test_what_the_replay_says_is_what_can_be_worked_out(grid: Grid) -> None:
    grid = replace(grid, spread=np.ones((*grid.time_s.shape, 7)))  # no noise

    def cost_s(scenario: Scenario, choice: Choice) -> float:
        return MeasuringCost().of(grid.time(scenario, choice))

    run = simulate(grid, "believer", Believer, 0, pace=Pace(growth=0.0, dense=1000, kept=100.0))
    large = sum(s.size_bytes >= 1024 for s in grid.scenarios)
    first = run.steps[0]
    assert first.share == pytest.approx(1 / 60)
    assert first.cost == pytest.approx(sum(cost_s(grid.scenarios[0], c) for c in (A, B)) / run.total_s)
    assert first.metrics.slowdown == pytest.approx(1.0 + large / 60)
    assert first.metrics.mistakes == pytest.approx(large / 60)
    assert first.metrics.accuracy == pytest.approx(1 - large / 60)
    assert first.metrics.worst == pytest.approx(2.0)
    assert run.steps[-1].metrics.slowdown == 1.0
    assert run.steps[-1].metrics.r2 == pytest.approx(1.0, abs=0.01)  # repetitions scatter
    assert run.stop.share == pytest.approx(0.5)
    assert (run.at(0.0), run.at(run.stop.cost)) == (None, run.stop.metrics)
    assert run.total_s == pytest.approx(sum(cost_s(s, c) for s in grid.scenarios for c in (A, B)))
    marked = simulate(grid, "believer", Believer, 0, pace=Pace(marks=(0.05, 0.2)))
    assert [step.share for step in marked.steps] == pytest.approx([0.05, 0.2])


def test_what_the_table_says_of_the_cost_counts(tmp_path: Path) -> None:
    rows = (table(tmp_path / "t.csv")).read_text().splitlines()
    (tmp_path / "t.csv").write_text("\n".join([rows[0] + ",cost_s", *(f"{row},0.25" for row in rows[1:])]))
    [grid] = load([tmp_path / "t.csv"])
    run = simulate(grid, "believer", Believer, 0)
    assert run.total_s == pytest.approx(120 * 0.25)
    assert run.steps[0].cost == pytest.approx(2 / 120)


def test_curves_take_the_last_state_paid_for_on_either_axis() -> None:
    runs = [run_of("g", "s", seed, 2.0 + seed, 1.0) for seed in range(3)]
    by_time = curve(runs, "slowdown", Axis.TIME, np.array([0.1, 0.5, 0.9, 1.0]))
    np.testing.assert_array_equal(by_time.median, [np.nan, 3.0, 3.0, 1.0])
    np.testing.assert_array_equal(by_time.low, [np.nan, 2.0, 2.0, 1.0])
    np.testing.assert_array_equal(by_time.high, [np.nan, 4.0, 4.0, 1.0])
    by_pairs = curve(runs, "slowdown", Axis.PAIRS, np.array([0.1, 0.3, 1.0]))
    np.testing.assert_array_equal(by_pairs.median, [np.nan, 3.0, 1.0])
    assert by_time.seeds == 3
    assert places_on(Axis.TIME, runs)[0] == pytest.approx(0.5)
    # A state that some seeds have not reached is the median of the others.
    late = Run("g", "s", 1, run_of("g", "s", 1, 5.0, 1.0).steps[1:], None)
    found = curve([run_of("g", "s", 0, 2.0, 1.0), late], "slowdown", Axis.TIME, np.array([0.5, 1.0]))
    np.testing.assert_array_equal(found.median, [2.0, 1.0])


def test_means_are_over_tables_first_and_over_complete_seeds_only() -> None:
    runs = [run_of(grid, "s", seed, 1.0 + seed + 2 * (grid == "h")) for grid in "gh" for seed in range(3)]
    runs.append(run_of("g", "s", 3, 99.0))
    assert complete_seeds(runs) == [0, 1, 2]
    found = mean_over_tables(runs, "s", at_place(Axis.TIME, 1.0, "slowdown"))
    assert (found.median, found.low, found.high, found.seeds) == (3.0, 2.0, 4.0, 3)
    assert mean_over_tables(runs, "s", at_place(Axis.TIME, 0.1, "slowdown")) is None
    assert mean_over_tables(runs, "nobody", at_stop("cost")) is None


def test_the_stop_is_the_strategys_own_or_else_the_end(tmp_path: Path) -> None:
    runs = [run_of("g", "s", 0, 3.0, 2.0, 1.0, 1.0, stop=1), run_of("g", "t", 0, 3.0, 1.5)]
    assert [at_stop("slowdown")(run) for run in runs] == [2.0, 1.5]
    assert [at_stop("cost")(run) for run in runs] == [0.5, 1.0]
    write_stops(tmp_path / "stops.csv", runs)
    write_curves(tmp_path / "curves.csv", runs, ["slowdown"])
    rows = list(csv.DictReader((tmp_path / "stops.csv").open()))
    assert [(row["strategy"], row["stopped"], row["slowdown"]) for row in rows] == [("s", "1", "2"), ("t", "0", "1.5")]
    curves = list(csv.DictReader((tmp_path / "curves.csv").open()))
    last = [row for row in curves if row["strategy"] == "s" and row["axis"] == "time"][-1]
    assert (last["place"], last["seconds"], last["median"]) == ("1", "10", "1")


THREE = (Scenario("bcast", 2, 4, 8), Scenario("bcast", 2, 4, 64), Scenario("bcast", 16, 4, 8))
OF_THREE = Grid("g", "bcast", THREE, (A, B), np.ones((3, 2)), np.full(3, np.nan))


def test_a_profile_weights_the_recorded_scenario_nearest_to_each_call(tmp_path: Path) -> None:
    path = tmp_path / "app.json"
    calls = [("MPI_Bcast", 2, 4, 9, 5), ("bcast", 4, 2, 100, 3), ("bcast", 32, 4, 64, 2), ("reduce", 2, 4, 8, 7)]
    rows = [{"collective": c, "nodes": n, "ppn": p, "msg_bytes": b, "calls": k} for c, n, p, b, k in calls]
    path.write_text(json.dumps({"calls": rows}))
    np.testing.assert_array_equal(weights_of(load_weights(path), OF_THREE), [5.0, 3.0, 2.0])
    assert weights_of(CallCounts(((Scenario("reduce", 2, 4, 8), 1.0),)), OF_THREE).sum() == 0.0
    for text in ("[]", '{"calls": [{}]}', '{"calls": []}', "{", '{"calls": [{"collective": "bcast", "nodes": 0}]}'):
        path.write_text(text)
        with pytest.raises(InputError, match="profile"):
            load_weights(path)


def test_what_colltune_profile_wrote_weights_too(tmp_path: Path) -> None:
    where = Communicator(8, 2, 4)
    calls = [
        Calls(where, "bcast", form, "", 8 * count, 0, 1.0, size, size, size)
        for form, count, size in (("blocking", 30, 8), ("blocking", 10, 100), ("nonblocking", 99, 8))
    ]
    profile = Profile(tuple(calls), ((where, 1.0),), 8, 2, 10.0, 8)
    save_profile(tmp_path / "app.json", profile)
    np.testing.assert_allclose(weights_of(load_weights(tmp_path / "app.json"), OF_THREE), [3.0, 1.0, 0.0])
    save_profile(tmp_path / "none.json", Profile(tuple(calls[2:]), ((where, 1.0),), 8, 2, 10.0, 8))
    with pytest.raises(InputError, match="no call that can be tuned"):
        load_weights(tmp_path / "none.json")


def test_clusters_and_files_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    rows = table(tmp_path / "t.csv").read_text().splitlines()
    both = [f"{row},{cluster}" for cluster in ("x", "y") for row in rows[1:]]
    (tmp_path / "t.csv").write_text("\n".join([rows[0] + ",cluster", *both]))
    assert [grid.name for grid in load([tmp_path / "t.csv"])] == ["t/x/bcast", "t/y/bcast"]
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        table(tmp_path / folder / "t.csv")
    paths = [tmp_path / "one" / "t.csv", tmp_path / "two" / "t.csv", tmp_path / "two" / "t.csv"]
    assert [grid.name for grid in load(paths)] == ["one/t/bcast", "two/t/bcast"]
    with pytest.raises(InputError, match="none of reduce"):
        load(paths, ["reduce"])
    with pytest.raises(InputError, match="there is no collective 'sing'"):
        load(paths, ["sing"])


def test_strategies_are_found_by_name_once_each_and_with_the_scaling_asked_for() -> None:
    found = contestants(["fact", "ours", "fact"], Scaling.NORMALISED)
    assert [contestant.name for contestant in found] == ["fact", "ours"]
    assert found[0].settings.scaling is Scaling.NORMALISED
    assert found[1].settings is None
    for name, words in (
        ("oracle", "there is no strategy"),
        ("no_such:x", "cannot load"),
        ("os:sep", "cannot be called"),
        ("acclaim@none", "'none' is no number of repetitions"),
        ("ours@21", "Give 1 to 20"),
    ):
        with pytest.raises(InputError, match=words):
            contestants([name])


@pytest.mark.parametrize(("name", "repetitions"), [("ours@20", 20), ("ours@5", 5), ("random@3", 3), ("acclaim@3", 3)])
def test_a_strategy_takes_the_repetitions_that_its_name_says(name: str, repetitions: int, grid: Grid) -> None:
    [contestant] = contestants([name])
    assert contestant.name == name
    learner = contestant(grid.space, 0)
    source, looks = ReplaySource([grid], grid.environment, 0), Counter[Pair]()
    for _ in range(12):
        [point] = learner.ask(1)
        [(_, samples)] = source.measure([point], Effort())
        looks.update((sample.scenario, sample.choice) for sample in samples)
        assert {len(sample.times_s) for sample in samples} == {repetitions}
        learner.tell(samples)
    assert set(looks.values()) == {1}
    assert learner.should_stop() is None
    assert learner.model() is not None


def test_random_sampling_on_log_times_asks_for_the_same_points_and_learns_their_logarithm(grid: Grid) -> None:
    plain, log = (made(grid.space, 3) for made in contestants(["random", "random-log"]))
    source = ReplaySource([grid], grid.environment, 3)
    pairs: list[Pair] = []
    for _ in range(5):
        [point] = plain.ask(1)
        assert log.ask(1) == [point]
        [(_, samples)] = source.measure([point], Effort())
        pairs += [(sample.scenario, sample.choice) for sample in samples]
        plain.tell(samples)
        log.tell(samples)
    times_s, logarithms = (learner.observed()[1] for learner in (plain, log))
    assert logarithms == pytest.approx(np.log(times_s))
    assert log.model().predict(pairs).log_time == pytest.approx(plain.model().predict(pairs).log_time, abs=0.3)


@pytest.mark.parametrize("name", ["ours", "acclaim", "fact", "random", "random-log", "ours@20", "acclaim-code"])
def test_every_strategy_learns_a_small_table(name: str, grid: Grid) -> None:
    [contestant] = contestants([name])
    if contestant.settings is not None:
        contestant = replace(contestant, settings=replace(contestant.settings, trees=10))
    run = simulate(grid, name, contestant, 0, pace=Pace(marks=(0.5, 1.0)))
    assert run.steps[-1].metrics.slowdown < 1.02


@pytest.mark.slow
def test_processes_and_one_process_give_the_same_runs(grid: Grid) -> None:
    kept: list[int] = []
    plan = Plan(contestants(["random"]), seeds=2)
    alone = evaluate([grid], plan, keep=lambda runs: kept.append(len(runs)))
    assert kept == [1, 2, 2]
    together = evaluate([grid], replace(plan, jobs=2))
    # By their text: a figure that is not defined is equal to nothing.
    assert sorted(map(repr, together.runs)) == sorted(map(repr, alone.runs))
    assert not alone.cut


def test_time_that_runs_out_leaves_what_is_done_and_what_is_known_is_not_simulated_again(grid: Grid) -> None:
    with pytest.raises(InputError, match="more --minutes"):
        evaluate([grid], Plan(contestants([BELIEVER]), limit_s=0.0))

    def interrupt(done: int, total: int, run: Run) -> None:
        if done == 2:
            raise KeyboardInterrupt

    cut = evaluate([grid], Plan(contestants([BELIEVER]), seeds=5), interrupt)
    assert (cut.cut, len(cut.runs)) == (True, 2)
    done = {("t/bcast", BELIEVER, seed) for seed in (0, 2)}
    assert [run.seed for run in evaluate([grid], Plan(contestants([BELIEVER]), seeds=4, done=done)).runs] == [1, 3]
    assert not evaluate([grid], Plan(contestants([BELIEVER]), seeds=1, done=done)).runs


def test_what_the_first_seed_measured_is_left_in_the_common_format(grid: Grid, tmp_path: Path) -> None:
    """Its required fields and enumerations, T4 1.1.0; times add up to what the run was charged."""
    runs = evaluate([grid], Plan(contestants([BELIEVER]), seeds=2)).runs
    write_t4(tmp_path / "t4", runs)
    ((path, run),) = zip((tmp_path / "t4").iterdir(), [run for run in runs if run.seed == 0], strict=True)
    assert path.name == "test_evaluation-Believer-t-bcast-0.json"
    written = json.loads(path.read_text())
    assert written["schema_version"] == "1.1.0"
    assert (written["metadata"]["autotuner"], written["metadata"]["timeunit"]) == (BELIEVER, "seconds")
    results = written["results"]
    assert len(results) == len(run.told) > 10
    for one in results:
        assert {"configuration", "times", "invalidity", "correctness"} <= one.keys()
        assert (one["invalidity"], one["correctness"]) == ("correct", 1)
        assert one["configuration"].keys() == {"collective", "nodes", "ppn", "size_bytes", "choice"}
        assert {"name": "time", "value": median(one["times"]["runtimes"]), "unit": "seconds"} in one["measurements"]
    charged_s = sum(sum(one["times"]["runtimes"]) + one["times"]["framework"] for one in results)
    assert charged_s == pytest.approx(run.steps[-1].cost * run.total_s)


@pytest.mark.parametrize(
    ("status", "said"), [(Status.HUNG, "timeout"), (Status.WRONG, "correctness"), (Status.CRASHED, "runtime")]
)
def test_what_gave_no_time_is_invalid_in_the_common_format(tmp_path: Path, status: Status, said: str) -> None:
    failed = Sample(Scenario("bcast", 2, 1, 8), A, status, cost_s=0.5)
    write_t4(tmp_path / "t4", [Run("g", "own:Strategy", 0, (), None, told=(failed,)), Run("g", "random", 1, (), None)])
    (path,) = (tmp_path / "t4").iterdir()
    (one,) = json.loads(path.read_text())["results"]
    assert (one["invalidity"], one["correctness"], one["measurements"]) == (said, 0, [])
    assert one["times"] == {"runtimes": [], "framework": 0.5}


def test_the_command_leaves_tables_and_plots(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    data, out = table(tmp_path / "t.csv", 52), tmp_path / "out"
    who = f"random,{BELIEVER}"
    options = ["--strategies", who, "--seeds", "2", "--jobs", "1", "--at", "25%", "--minutes", "60"]
    done = colltune("study", "evaluate", str(data), *options, "--out", str(out), code=0)
    for words in ("t/bcast", "25% of the collection time", "25% of the training set", "its own stop"):
        assert words in done.stdout
    steps = list(csv.DictReader((out / "steps.csv").open()))
    assert {(row["strategy"], row["seed"]) for row in steps} == {(s, k) for s in who.split(",") for k in "01"}
    reach = list(csv.DictReader((out / "reach.csv").open()))
    assert {(row["grid"], row["strategy"], row["seeds"]) for row in reach} == {
        ("t/bcast", s, "2") for s in who.split(",")
    }
    assert {"stops.csv", "curves.csv"} <= {path.name for path in out.iterdir()}
    assert {path.name.split("-")[0] for path in (out / "t4").iterdir()} == {"random", "test_evaluation"}
    assert len(list(out.glob("*.png"))) == 12
    assert (out / "slowdown_by_time.png").read_bytes().startswith(b"\x89PNG")
