"""The figures of FACT (Wilkins, Guo, Thakur, Hardavellas, Dinda and Si, ExaMPI 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from colltune.store.grid import Grid
from colltune_study.recorded.dataset import load_grids
from colltune_study.research.figures import COLOURS, STYLES, new_panels, save
from colltune_study.research.learners.scaling import Scaling
from colltune_study.research.simulate import GOOD_ENOUGH, Run
from colltune_study.research.strategies import Contestant
from learned import TABLE
from papers.entrants import AT_MARKS, entrant
from papers.study import MARKS, Made, Study, at_mark, names_of, over_seeds, text_of

_METRICS = {
    "slowdown": "average slowdown",
    "mistakes": "mistakes of over 10%",
    "accuracy": "classification accuracy",
    "r2": "R2 of log times",
}
_MISTAKES = 0.05
PLAIN = "random points, plain times"
LOG = "random points, log algorithm-scaled"
FACT = "FACT: active learning, log algorithm-scaled"


def _random(scaling: Scaling, name: str) -> Contestant:
    return entrant("random", name, scaling, AT_MARKS)


def _fact() -> Contestant:
    return entrant("fact", FACT, Scaling.LOG_ALGORITHM, AT_MARKS)


def fact_3(study: Study) -> Made:
    """The state of the art before FACT, with less and less to train on."""
    return _metrics(study, "fact_3", "FACT 3: random training sets, plain times", [_random(Scaling.NONE, PLAIN)])


def fact_4(study: Study) -> Made:
    """Average slowdown with each output scaling."""
    names = {scaling: f"random, {scaling}" for scaling in Scaling}
    entrants = [_random(scaling, PLAIN if scaling is Scaling.NONE else name) for scaling, name in names.items()]
    entrants = [LOG_ENTRANT if one.name == names[Scaling.LOG_ALGORITHM] else one for one in entrants]
    grids = study.recorded()
    runs = study.runs(entrants, grids)
    figure, [panel] = new_panels(1, width=6.0, height=3.6)
    rows = []
    for number, (one, scaling) in enumerate(zip(entrants, Scaling, strict=True)):
        _line(panel, runs, one.name, "slowdown", number, str(scaling))
        rows.append([str(scaling), *_cells(runs, one.name, "slowdown")])
    panel.axhline(GOOD_ENOUGH, color="grey", linestyle=":", linewidth=1)
    panel.set_title("FACT 4: output scalings, random training sets", fontsize=10)
    panel.set_ylabel("average slowdown")
    panel.legend(fontsize=8, frameon=False, title="scaling")
    save(figure, study.out / "fact_4.png")
    return Made(
        "fact_4",
        "FACT 4: output scalings",
        _caption(study, names_of(grids)) + " Features are logarithms throughout: a forest does not see the difference.",
        ["scaling", *_headers()],
        rows,
        "fact_4.png",
    )


def fact_5(study: Study) -> Made:
    """What the log algorithm scaling brings in every metric."""
    entrants = [_random(Scaling.NONE, PLAIN), LOG_ENTRANT]
    return _metrics(study, "fact_5", "FACT 5: plain times and log algorithm scaling", entrants)


def fact_7(study: Study) -> Made:
    """FACT beside the state of the art before it."""
    return _metrics(
        study, "fact_7", "FACT 7: active learning beside random points", [_random(Scaling.NONE, PLAIN), _fact()]
    )


def fact_8(study: Study) -> Made:
    """What training sets of equal size cost, and which of them are good enough."""
    return _collection(study, "fact_8", "FACT 8: collection time", study.recorded())


def fact_9(study: Study) -> Made:
    """The same of a broadcast on many nodes."""
    grids = [grid for grid in load_grids([TABLE]) if grid.collective == "bcast"]
    title = "FACT 9: bcast, 1,024 nodes"
    made = _collection(study, "fact_9", title, grids)
    differs = "The paper: 512 nodes of Theta. Here: a simulated dragonfly of 2 to 1,024 nodes, one rank each."
    return replace(made, caption=f"{made.caption} {differs}")


def _collection(study: Study, name: str, title: str, grids: Sequence[Grid]) -> Made:
    entrants = [_random(Scaling.NONE, PLAIN), _fact()]
    runs = study.runs(entrants, grids)
    figure, [panel] = new_panels(1, width=6.4, height=3.6)
    rows = []
    for number, one in enumerate(entrants):
        costs = [over_seeds(runs, one.name, at_mark(mark, "cost")) for mark in MARKS]
        good = [_converged(runs, one.name, mark) for mark in MARKS]
        places = [place + 0.4 * number - 0.2 for place in range(len(MARKS))]
        heights = [cost.median for cost in costs]
        errors = [[c.median - c.low for c in costs], [c.high - c.median for c in costs]]
        panel.bar(places, heights, 0.38, color=COLOURS[number], label=one.name, yerr=errors, capsize=2)
        for place, cost, enough in zip(places, costs, good, strict=True):
            panel.text(place, cost.high * 1.15, "ok" if enough else "x", ha="center", fontsize=8)
        marks = zip(costs, good, strict=True)
        rows.append([one.name, *(f"{text_of(cost)}{' ok' if enough else ''}" for cost, enough in marks)])
    panel.set_yscale("log")
    panel.set_ylim(top=5.0)
    panel.set_xticks(range(len(MARKS)), [f"{mark:.0%}" for mark in MARKS])
    panel.set_xlabel("training set / all pairs")
    panel.set_ylabel("collection time / all of it")
    panel.set_title(f"{title} (ok: slowdown <= 1.03 and mistakes <= 5%)", fontsize=10)
    panel.legend(fontsize=8, frameon=False, loc="upper right")
    save(figure, study.out / f"{name}.png")
    caption = _caption(study, names_of(grids)) + " ok: the means of slowdown and mistakes are at most 1.03 and 5%."
    return Made(name, title, caption, ["method", *_headers()], rows, f"{name}.png")


def _converged(runs: Sequence[Run], name: str, mark: float) -> bool:
    slowdown = over_seeds(runs, name, at_mark(mark, "slowdown")).median
    return slowdown <= GOOD_ENOUGH and over_seeds(runs, name, at_mark(mark, "mistakes")).median <= _MISTAKES


def _metrics(study: Study, name: str, title: str, entrants: Sequence[Contestant]) -> Made:
    """Four metrics over the size of the training set, a panel each."""
    grids = study.recorded()
    runs = study.runs(entrants, grids)
    figure, panels = new_panels(len(_METRICS), width=3.1, height=2.7)
    rows = []
    for panel, (metric, label) in zip(panels, _METRICS.items(), strict=True):
        for number, one in enumerate(entrants):
            _line(panel, runs, one.name, metric, number, one.name)
            rows.append([label, one.name, *_cells(runs, one.name, metric)])
        panel.set_title(label, fontsize=9)
        if metric == "slowdown":
            panel.axhline(GOOD_ENOUGH, color="grey", linestyle=":", linewidth=1)
    if len(entrants) > 1:
        panels[0].legend(fontsize=6.5, frameon=False)
    figure.suptitle(title, fontsize=10)
    save(figure, study.out / f"{name}.png")
    columns = ["metric", "method", *_headers()]
    return Made(name, title, _caption(study, names_of(grids)), columns, rows, f"{name}.png")


def _line(panel: Any, runs: Sequence[Run], name: str, metric: str, number: int, label: str) -> None:
    """One metric over the marks, which shrink to the right as in the paper."""
    found = [over_seeds(runs, name, at_mark(mark, metric)) for mark in MARKS]
    places = range(len(MARKS))
    colour, style = COLOURS[number % len(COLOURS)], STYLES[number % len(STYLES)]
    panel.plot(places, [value.median for value in found], color=colour, linestyle=style, marker="o", ms=3, label=label)
    panel.fill_between(places, [v.low for v in found], [v.high for v in found], color=colour, alpha=0.15, linewidth=0)
    panel.set_xticks(places, [f"{mark:.0%}" for mark in MARKS], fontsize=8)
    panel.set_xlabel("training set / all pairs", fontsize=8)
    panel.grid(alpha=0.25, linewidth=0.5)


def _cells(runs: Sequence[Run], name: str, metric: str) -> list[str]:
    return [text_of(over_seeds(runs, name, at_mark(mark, metric))) for mark in MARKS]


def _headers() -> list[str]:
    return [f"{mark:.0%}" for mark in MARKS]


def _caption(study: Study, names: str) -> str:
    return (
        f"Mean over {names}; median of {study.seeds} seeds and its 95% interval (bootstrap). A training set holds at"
        " least the share of the pairs that is given; all pairs are the test set."
    )


LOG_ENTRANT = _random(Scaling.LOG_ALGORITHM, LOG)
