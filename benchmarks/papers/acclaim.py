"""The figures of ACCLAiM (Wilkins, Guo, Thakur, Dinda and Hardavellas, 2025)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from colltune.bench.replay import MeasuringCost
from colltune.core.errors import InputError
from colltune.store.grid import Grid
from colltune_study.research.compare import by_strategy, estimate, reach_by_grid
from colltune_study.research.figures import AXIS_LABELS, COLOURS, STYLES, draw_curve, mark_good, new_panels, save
from colltune_study.research.learners.scaling import Scaling
from colltune_study.research.simulate import GOOD_ENOUGH, Run, simulate
from colltune_study.research.strategies import ACCLAIM_CODE
from colltune_study.research.tunings_summary import Axis, curve, places_on
from harness import part_of
from papers.entrants import OnPowersOfTwo, Watched, entrant
from papers.study import Made, Study, at_mark, names_of, over_seeds, text_of

_SPLIT_MARKS = (0.03, 0.05, 0.1, 0.2, 0.5)
# The paper's (figure 12), of which 1e-10 is the one that it goes on with.
_THRESHOLDS = (5e-9, 1e-9, 5e-10, 1e-10, 5e-11, 1e-11)
_TEST_SHARE = 0.2  # of the space, FACT's test set (section V.A)


def acclaim_4(study: Study) -> Made:
    """Average slowdown over the collection time, of FACT, of ACCLAiM's choice of points, and of ours."""
    grids = study.recorded()
    names = ("ours", "acclaim", "acclaim-code", "fact")
    runs = study.runs([entrant(name) for name in names], grids)
    reach = reach_by_grid(runs)
    groups = by_strategy(runs)
    figure, panels = new_panels(len(grids), columns=3)
    for panel, grid in zip(panels, grids, strict=True):
        places = places_on(Axis.TIME, [run for run in runs if run.grid == grid.name])
        for number, name in enumerate(names):
            draw_curve(panel, curve(groups[grid.name, name], "slowdown", Axis.TIME, places), number, name)
            if (at := reach[grid.name, name].median) < 1.0:
                panel.plot([at], [GOOD_ENOUGH], marker="v", ms=6, color=COLOURS[number])
        mark_good(panel, GOOD_ENOUGH)
        panel.set_xscale("log")
        panel.set_xlim(1e-4, 1.1)
        panel.set_title(grid.name, fontsize=9)
        panel.set_xlabel(AXIS_LABELS[Axis.TIME], fontsize=8)
        panel.set_ylabel("average slowdown", fontsize=8)
        panel.grid(alpha=0.25, linewidth=0.5)
    panels[0].legend(fontsize=8, frameon=False)
    figure.suptitle("ACCLAiM 4: collection time to a slowdown of 1.03 (marked)", fontsize=10)
    save(figure, study.out / "acclaim_4.png")
    rows = [[grid.name, *(text_of(reach[grid.name, name]) for name in names)] for grid in grids]
    caption = (
        "Share of the time of measuring every pair until the average slowdown stays at 1.03; 1 where it never does."
        f" Median of {study.seeds} seeds and its 95% interval (bootstrap). acclaim: as the paper says; acclaim-code: as"
        " the public program does. The paper: allgather with three algorithms, ACCLAiM in 1 / 2.3 of FACT's time."
    )
    return Made("acclaim_4", "ACCLAiM 4: collection time", caption, ["table", *names], rows, "acclaim_4.png")


def acclaim_6(study: Study) -> Made:
    """FACT, trained on sizes that are powers of two, on these and on the others."""
    fact = entrant("fact", "fact", Scaling.LOG_ALGORITHM)
    entrants = [OnPowersOfTwo(fact, "FACT, powers of two only", 0)]
    return _splits(study, "acclaim_6", "ACCLAiM 6: FACT trained on powers of two", entrants)


def acclaim_7(study: Study) -> Made:
    """ACCLAiM with other sizes mixed in, and ours, which treats all sizes alike."""
    own = entrant("acclaim", "acclaim", Scaling.LOG_ALGORITHM)
    entrants = [
        OnPowersOfTwo(own, "powers of two only", 0),
        OnPowersOfTwo(own, "80-20 (ACCLAiM)", 5),
        OnPowersOfTwo(own, "50-50", 2),
    ]
    return _splits(study, "acclaim_7", "ACCLAiM 7: sizes that are no powers of two mixed in", entrants)


def _splits(study: Study, name: str, title: str, entrants: Sequence[OnPowersOfTwo]) -> Made:
    grids = study.with_other_sizes()[:6]
    if not grids:
        raise InputError(
            "no table has sizes that are no powers of two", "Collect one: colltune study collect --between 1"
        )
    runs = study.runs(entrants, grids)
    figure, panels = new_panels(2, width=4.6, height=3.2)
    rows = []
    tests = (("p2_slowdown", "test set: powers of two"), ("nonp2_slowdown", "test set: other sizes"))
    for panel, (metric, label) in zip(panels, tests, strict=True):
        for number, one in enumerate(entrants):
            found = [over_seeds(runs, one.name, at_mark(mark, metric)) for mark in _SPLIT_MARKS]
            colour, style = COLOURS[number], STYLES[number]
            places = range(len(_SPLIT_MARKS))
            medians = [value.median for value in found]
            panel.plot(places, medians, color=colour, linestyle=style, marker="o", ms=3, label=one.name)
            panel.fill_between(places, [v.low for v in found], [v.high for v in found], color=colour, alpha=0.15)
            rows.append([label, one.name, *(text_of(value) for value in found)])
        panel.set_xticks(places, [f"{mark:.0%}" for mark in _SPLIT_MARKS])
        panel.set_xlabel("training set / all pairs", fontsize=8)
        panel.set_ylabel("average slowdown", fontsize=8)
        panel.set_title(label, fontsize=9)
        panel.axhline(GOOD_ENOUGH, color="grey", linestyle=":", linewidth=1)
        panel.grid(alpha=0.25, linewidth=0.5)
    top = max(panel.get_ylim()[1] for panel in panels)
    for panel in panels:
        panel.set_ylim(0.99, top)
    panels[0].legend(fontsize=8, frameon=False)
    figure.suptitle(title, fontsize=10)
    save(figure, study.out / f"{name}.png")
    caption = f"Mean over {names_of(grids)}; median of {study.seeds} seeds and its 95% interval (bootstrap)."
    columns = ["test set", "trained on", *(f"{mark:.0%}" for mark in _SPLIT_MARKS)]
    return Made(name, title, caption, columns, rows, f"{name}.png")


def acclaim_8(study: Study) -> Made:
    """What a test set would cost beside the training that it is to judge."""
    grids = study.recorded()
    runs = study.runs([entrant("ours"), entrant("acclaim"), entrant("fact")], grids)
    reach = reach_by_grid(runs)
    figure, [panel] = new_panels(1, width=7.0, height=3.6)
    rows = []
    for number, name in enumerate(("fact", "acclaim", "ours")):
        ratios = []
        for grid in grids:
            training, test = reach[grid.name, name].median, _test_cost(grid, study.seeds)
            ratios.append(test / training)
            rows.append([grid.name, name, f"{training:.4f}", f"{test:.4f}", f"{test / training:.1f}"])
        places = [place + 0.27 * (number - 1) for place in range(len(grids))]
        panel.bar(places, ratios, 0.25, color=COLOURS[number], label=name)
    panel.axhline(1.0, color="grey", linewidth=1)
    panel.set_yscale("log")
    panel.set_xticks(range(len(grids)), [grid.name.replace("/", "\n") for grid in grids], fontsize=7)
    panel.set_ylabel("test set / training, time")
    panel.set_title("ACCLAiM 8: a test set of 20% beside the training to a slowdown of 1.03", fontsize=10)
    panel.legend(fontsize=8, frameon=False)
    save(figure, study.out / "acclaim_8.png")
    caption = (
        "Training: median of the collection times to a slowdown of 1.03, 1 where that is not reached. Test: all choices"
        f" at 20% of the scenarios at random. Both over the time of measuring everything; {study.seeds} seeds."
    )
    columns = ["table", "method", "training", "test", "test / training"]
    return Made("acclaim_8", "ACCLAiM 8: training and test set", caption, columns, rows, "acclaim_8.png")


def _test_cost(grid: Grid, seeds: int) -> float:
    """The median share of the whole cost that a random fifth of the scenarios takes."""
    cost, found = MeasuringCost(), []
    for seed in range(seeds):
        count = max(1, round(_TEST_SHARE * len(grid.scenarios)))
        rows = np.random.default_rng(seed).choice(len(grid.scenarios), count, replace=False)
        found.append(cost.total(part_of(grid, [int(row) for row in rows])) / cost.total(grid))
    return estimate(found).median


def acclaim_9(study: Study) -> Made:
    """Cumulative variance beside slowdown: whether the one tells when the other is good."""
    grids = [grid for grid in study.recorded() if grid.collective in ("allgather", "allreduce")][:2] or study.recorded(
        2
    )
    figure, panels = new_panels(len(grids), width=5.0, height=3.2)
    rows = []
    for panel, grid in zip(panels, grids, strict=True):
        run, variances = watch(grid, 0)
        times = [step.cost for step in run.steps]
        slowdowns = [step.metrics.slowdown for step in run.steps]
        panel.plot(times, variances, color=COLOURS[0], label="cumulative variance")
        panel.set_ylabel("cumulative jackknife variance", color=COLOURS[0], fontsize=8)
        other = panel.twinx()
        other.plot(times, slowdowns, color=COLOURS[1], linestyle="--", label="average slowdown")
        other.set_ylabel("average slowdown", color=COLOURS[1], fontsize=8)
        other.set_ylim(0.98, min(3.0, max(slowdowns) * 1.05))
        if run.stop is not None:
            panel.axvline(run.stop.cost, color="grey", linestyle=":", linewidth=1)
        panel.set_xscale("log")
        panel.set_xlabel(AXIS_LABELS[Axis.TIME], fontsize=8)
        panel.set_title(grid.name, fontsize=9)
        for seed in range(study.seeds):
            rows.append([grid.name, str(seed), *_agreement(*watch(grid, seed))])
    figure.suptitle("ACCLAiM 9: cumulative variance and slowdown, seed 0 (dotted: where its rule stops)", fontsize=10)
    save(figure, study.out / "acclaim_9.png")
    caption = (
        "Rank correlation of variance and average slowdown over the states of a tuning as ACCLAiM's program does it,"
        " and the slowdown where its variance stops it."
    )
    columns = ["table", "seed", "rank correlation", "stops at", "slowdown there"]
    return Made("acclaim_9", "ACCLAiM 9: variance and slowdown", caption, columns, rows, "acclaim_9.png")


def watch(grid: Grid, seed: int) -> tuple[Run, list[float]]:
    """A tuning as ACCLAiM's program does it, and the cumulative variance at each of its states."""
    one = entrant(ACCLAIM_CODE)
    assert one.settings is not None, "a published method has settings"
    watched = Watched(one, one.settings.trees)
    run = simulate(grid, one.name, watched, seed, pace=one.pace)
    return run, watched.variances


def _agreement(run: Run, variances: Sequence[float]) -> list[str]:
    slowdowns = [step.metrics.slowdown for step in run.steps]
    ranks = [np.argsort(np.argsort(values)).astype(float) for values in (variances, slowdowns)]
    correlation = float(np.corrcoef(ranks[0], ranks[1])[0, 1]) if len(slowdowns) > 2 else float("nan")
    stop = run.stop or run.steps[-1]
    return [f"{correlation:.2f}", f"{stop.cost:.3f}", f"{stop.metrics.slowdown:.3f}"]


def acclaim_12(study: Study) -> Made:
    """What a stricter stop costs ACCLAiM, and how much better its selection is then."""
    grids = [grid for grid in study.recorded() if grid.collective == "allreduce"]
    if not grids:
        raise InputError("no table has an allreduce", "Give one")
    own = entrant(ACCLAIM_CODE)
    assert own.settings is not None, "a published method has settings"
    rows = []
    figure, panels = new_panels(2, width=4.6, height=3.2)
    for number, grid in enumerate(grids):
        found = []
        for threshold in _THRESHOLDS:
            settings = replace(own.settings, threshold=threshold)
            one = replace(own, name=f"{own.name}, {threshold:g}", settings=settings)
            stops = [run.stop or run.steps[-1] for run in study.runs([one], [grid])]
            found.append((estimate([stop.cost for stop in stops]), estimate([stop.metrics.slowdown for stop in stops])))
            rows.append([grid.name, f"{threshold:g}", *map(text_of, found[-1])])
        for panel, values in zip(panels, zip(*found, strict=True), strict=True):
            colour, style = COLOURS[number], STYLES[number]
            medians = [value.median for value in values]
            panel.plot(_THRESHOLDS, medians, color=colour, linestyle=style, marker="o", ms=3, label=grid.name)
            low, high = [value.low for value in values], [value.high for value in values]
            panel.fill_between(_THRESHOLDS, low, high, color=colour, alpha=0.15, linewidth=0)
    for panel, label in zip(panels, (AXIS_LABELS[Axis.TIME], "average slowdown where it stops"), strict=True):
        panel.set_xscale("log")
        panel.invert_xaxis()
        panel.set_xlabel("threshold of the change of the variance", fontsize=8)
        panel.set_ylabel(label, fontsize=8)
        panel.grid(alpha=0.25, linewidth=0.5)
    panels[1].legend(fontsize=8, frameon=False)
    figure.suptitle("ACCLAiM 12: the convergence threshold, allreduce", fontsize=10)
    save(figure, study.out / "acclaim_12.png")
    caption = (
        f"Where ACCLAiM's program stops by its variance, by the threshold; medians of {study.seeds} seeds. The paper:"
        " on Aurora, speed-ups over MPICH's default by size, and 1e-10 chosen. Here: the slowdown against the fastest."
    )
    columns = ["table", "threshold", "collection time", "slowdown there"]
    return Made("acclaim_12", "ACCLAiM 12: convergence threshold", caption, columns, rows, "acclaim_12.png")
