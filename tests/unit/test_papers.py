"""The papers' figures and the picture on the front page: what they are made of."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, SizeBasis, Status
from colltune.core.space import Point
from colltune.schedule.contract import Placement, Task
from colltune.store.grid import Grid
from colltune_study.recorded.dataset import load_grids
from colltune_study.research.metrics import Metrics
from colltune_study.research.simulate import Pace, Run, Step, simulate
from colltune_study.research.strategies import Contestant
from gain_picture import CLUSTERS, largest_job, tuned_time_s
from packing import Run as Placed
from packing import Timeline
from papers import acclaim, fact, hyperparameters, pml_mpi
from papers.__main__ import FIGURES, NOT_MADE, chosen, draw, main, name_of, page
from papers.acclaim import watch
from papers.entrants import OnPowersOfTwo, entrant
from papers.fact import fact_7, fact_8
from papers.parallel import acclaim_11, at_once
from papers.study import Made, Study, at_mark, is_power_of_two, over_seeds

pytest.importorskip("matplotlib")

CHOICES = (Choice("a"), Choice("b"), Choice("c"))


def grid(name: str = "t/bcast", collective: str = "bcast", other_sizes: bool = True, most_nodes: int = 16) -> Grid:
    """``a`` for small messages, ``b`` for large ones, ``c`` wherever the size is no power of two."""
    sizes = [size for power in range(12) for size in ((1 << power), 3 << power) if other_sizes or is_power_of_two(size)]
    scenarios = tuple(
        Scenario(collective, nodes, 2, size) for nodes in (2, 4, 8, 16) if nodes <= most_nodes for size in sorted(sizes)
    )
    rows = []
    for scenario in scenarios:
        size, fast = scenario.size_bytes, 5e-6 * np.log2(scenario.nodes) + scenario.size_bytes * 1e-9
        best = 2 if not is_power_of_two(size) else int(size >= 128)
        rows.append([fast * (1.0 if number == best else 1.5 + 0.5 * number) for number in range(3)])
    return Grid(name, collective, scenarios, CHOICES, np.array(rows), np.full(len(rows), np.nan))


def quick(kind: str, trees: int = 10) -> Contestant:
    """With forests of few trees."""
    found = entrant(kind)
    assert found.settings is not None
    return replace(found, settings=replace(found.settings, trees=trees))


def state(share: float, slowdown: float) -> Step:
    return Step(share / 2, share, Metrics(slowdown, 0.5, 0.1, 2.0, 0.1, 0.5, slowdown, slowdown))


def test_a_mark_is_the_first_state_with_at_least_that_share() -> None:
    run = Run("g", "s", 0, (state(0.06, 1.5), state(0.11, 1.3), state(0.5, 1.1)), None)
    assert [at_mark(mark, "slowdown")(run) for mark in (0.05, 0.1, 0.11, 0.5, 0.9)] == [1.5, 1.3, 1.3, 1.1, 1.1]
    assert at_mark(0.1, "cost")(run) == pytest.approx(0.055)
    other = Run("h", "s", 0, (state(0.1, 1.1),), None)
    assert over_seeds([run, other], "s", at_mark(0.1, "slowdown")).median == pytest.approx(1.2)


def test_learning_from_powers_of_two_asks_for_nothing_else() -> None:
    table = grid()
    strategy = OnPowersOfTwo(quick("fact"), "fact", 0)(table.space, 0)
    sizes = [scenario.size_bytes for scenario in asked(table, strategy)]
    assert len(sizes) == 4 * 12
    assert all(is_power_of_two(size) for size in sizes)


@pytest.mark.parametrize(("every", "share"), [(5, 0.2), (2, 0.5)])
def test_every_so_many_points_move_to_a_size_near_by(every: int, share: float) -> None:
    table = grid()
    strategy = OnPowersOfTwo(quick("acclaim"), "mixed", every)(table.space, 0)
    scenarios = asked(table, strategy, 20)
    moved = [scenario for scenario in scenarios if not is_power_of_two(scenario.size_bytes)]
    assert len(moved) == pytest.approx(share * 20)
    assert len(set(scenarios)) == len(scenarios), "nothing is asked for twice"


def asked(table: Grid, strategy, most: int = 10**6) -> list[Scenario]:
    scenarios: list[Scenario] = []
    while len(scenarios) < most and (points := strategy.ask(1)):
        scenarios.append(points[0].scenario)
        strategy.tell(samples(table, [points[0].scenario], points[0].choices))
    return scenarios


def samples(table: Grid, scenarios: Iterable[Scenario], choices: Iterable[Choice] = CHOICES) -> list[Sample]:
    return [Sample(s, c, Status.OK, (table.time(s, c),)) for s in scenarios for c in choices]


def test_what_mixing_in_is_for_shows_on_a_table_where_other_sizes_differ() -> None:
    table = grid()
    own = quick("acclaim", 40)
    plain, mixed = (
        simulate(table, "s", OnPowersOfTwo(own, "s", every), 0, pace=Pace(marks=(0.4,))).steps[-1].metrics
        for every in (0, 2)
    )
    assert plain.nonp2_slowdown > 1.5
    assert mixed.nonp2_slowdown < plain.nonp2_slowdown - 0.3


def test_the_variance_is_watched_in_each_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acclaim, "entrant", quick)
    run, variances = watch(grid(), 0)
    assert len(variances) == len(run.steps)
    assert min(variances) >= 0.0


def test_how_many_run_at_once_is_counted_in_the_middle_of_each() -> None:
    task = Task(Point(Scenario("bcast", 2, 1, 8), CHOICES), 1.0)
    runs = [(0.0, 4.0), (0.0, 1.0), (1.0, 2.0), (4.0, 5.0)]
    timeline = Timeline(tuple(Placed(Placement(task, (0, 1)), start, end) for start, end in runs))
    # In the middles, 2.0, 0.5, 1.5 and 4.5: one, two, two and one.
    assert at_once(timeline) == pytest.approx(1.5)


@pytest.mark.parametrize("aim", hyperparameters.Aim)
def test_hyperparameters_are_judged_by_all_data_or_by_what_was_held_out_of_the_collected(
    aim: hyperparameters.Aim, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna")
    monkeypatch.setattr(hyperparameters, "_TRIALS", 2)
    table = grid(most_nodes=8)
    trials = hyperparameters.tune(table, samples(table, table.scenarios[::3]), 0, aim)
    assert len(trials) == 2
    assert trials[0].settings.shape.max_depth == 0
    assert all(trial.aim >= 1.0 and trial.true >= 1.0 for trial in trials)
    assert all(trial.aim == trial.true for trial in trials) == (aim is hyperparameters.Aim.TABLE)
    assert hyperparameters.tune(table, samples(table, table.scenarios), 0, aim)[0].true < trials[0].true


def test_figures_leave_pictures_and_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fact, "MARKS", (0.5, 0.1))
    monkeypatch.setattr(fact, "AT_MARKS", Pace(marks=(0.1, 0.5)))
    small = grid(other_sizes=False, most_nodes=8)
    made, left_out = draw(Study([small, grid("u/allgather", "allgather")], tmp_path, seeds=1), [fact_8, acclaim_11])
    assert [one.name for one in made] == ["fact_8", "acclaim_11"]
    assert not left_out
    for one in made:
        assert (tmp_path / one.picture).read_bytes().startswith(b"\x89PNG")
        assert all(len(row) == len(one.columns) for row in one.rows)
    speed_ups = {(row[0], row[1]): float(row[2].split()[0]) for row in made[-1].rows}
    assert speed_ups["ours", "1 group"] == pytest.approx(1.0)
    assert speed_ups["ours", "16 groups"] > speed_ups["ours", "2 groups"] > 1.0


def test_what_cannot_be_drawn_is_said_with_the_reason(tmp_path: Path) -> None:
    [acclaim_6] = chosen("acclaim_6")
    made, left_out = draw(Study([grid(other_sizes=False)], tmp_path, seeds=1), [acclaim_6])
    assert not made
    assert left_out == [("acclaim_6", "no table has sizes that are no powers of two")]
    assert "Not drawn: acclaim_6 (no table" in page([Made("x", "X", "How.", ["a"], [["1"]])], left_out, "make figures")
    made, left_out = draw(Study([grid()], tmp_path, seeds=1, deadline_s=0.0), [fact_7])
    assert (len(made), len(left_out)) == (0, 1)  # its time is over
    with pytest.raises(InputError, match="there is no figure 'fact_6'"):
        chosen("fact_6")


def test_a_table_that_is_not_there_ends_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "no.csv"), "--out", str(tmp_path / "out")]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def scaled(table: Grid, name: str, factor: float) -> Grid:
    """The same machine with slower or faster links."""
    return replace(table, name=name, time_s=table.time_s * factor)


def test_what_is_predicted_was_learnt_elsewhere_and_is_compared_with_the_default() -> None:
    rule = grid(other_sizes=False)
    known = replace(rule, choices=(Choice("binomial"), Choice("ring"), Choice("linear")))
    here = replace(known, default_s=known.time_s[:, 2])
    found = pml_mpi.choose(here, [scaled(known, "other/bcast", 3.0)])
    assert found.scenarios == list(here.scenarios)
    np.testing.assert_allclose(found.default_s, here.time_s[:, 2])
    np.testing.assert_allclose(found.fastest_s, here.best_s)
    slowdown = found.chosen_s / found.fastest_s
    assert slowdown.mean() < 1.1 < (found.random_s / found.fastest_s).mean()
    strangers = replace(known, choices=(Choice("x"), Choice("y"), Choice("z")))
    with pytest.raises(InputError, match="no other table has a choice"):
        pml_mpi.choose(here, [strangers])


def test_the_picture_has_the_most_ranks_of_the_shapes_with_most_sizes() -> None:
    calls = [Scenario("bcast", nodes, 2, size) for nodes, sizes in ((4, 5), (8, 5), (16, 2)) for size in range(sizes)]
    times = np.arange(1.0, len(calls) + 1)
    missing = np.where(times == 1.0, np.nan, times)
    found = pml_mpi.Predicted(calls, times, missing, times, times)
    assert {one.nodes for one in found.at_largest().scenarios} == {8}
    assert len(found.with_default().scenarios) == len(calls) - 1


def test_every_figure_has_a_name_of_its_own() -> None:
    names = [name_of(figure) for figure in FIGURES]
    assert len(set(names)) == len(names)
    assert chosen("pml_9")[0] is FIGURES[names.index("pml_9")]
    text = (Path(__file__).parents[2] / "docs" / "figures" / "README.md").read_text(encoding="utf-8")
    tables_alone = {"tianhe_2", "slides_52", "slides_68"}
    assert {name for name in names if f"({name}.png)" not in text} == tables_alone
    assert text.count("\n## ") == len(names)
    for name, why in NOT_MADE.items():
        assert f"Not drawn: {name} ({why})." in text


DATA = Path(__file__).parents[2] / "benchmarks" / "data"


@pytest.mark.parametrize("name", CLUSTERS.values())
def test_the_largest_job_of_each_collective_has_a_curve_of_recorded_defaults(name: str) -> None:
    for grid in load_grids([DATA / name]):
        job = largest_job(grid)
        assert len({(scenario.nodes, scenario.ppn) for scenario in job}) == 1
        assert len(job) >= 3
        nothing = RuleSet(grid.collective, SizeBasis.MESSAGE, (Rule(None, None, None, DEFAULT),))
        for scenario in job:
            default_s = float(grid.default_s[grid.scenarios.index(scenario)])
            assert default_s > 0.0
            assert tuned_time_s(grid, nothing, scenario) == tuned_time_s(grid, None, scenario) == default_s
