"""The comparison of strategies as tables for a terminal."""

from collections.abc import Sequence

from colltune.core.text_table import TextTable
from colltune.core.units import format_count, format_duration
from colltune_study.research.compare import Estimate, reach_by_grid
from colltune_study.research.simulate import Run
from colltune_study.research.tunings_summary import METRICS, Axis, at_place, at_stop, mean_over_tables

_AXES = {Axis.TIME: "collection time", Axis.PAIRS: "training set"}


def reach_table(runs: Sequence[Run], strategies: Sequence[str], good: float) -> TextTable:
    """Per table and strategy, what it costs until the average slowdown stays good enough."""
    reach = reach_by_grid(runs, good)
    table = TextTable(
        ("table", "all of it>", *(f"{name}>" for name in strategies)),
        f"Collection time until the average slowdown stays at {good:g}, in % of measuring every pair",
    )
    total_s = {run.grid: run.total_s for run in runs}
    for grid in dict.fromkeys(run.grid for run in runs):
        cells = [_share(reach.get((grid, name))) for name in strategies]
        table.add_row(grid, format_duration(total_s[grid]), *cells)
    return table


def means_table(
    runs: Sequence[Run], strategies: Sequence[str], places: Sequence[float], significant: float
) -> TextTable:
    """Means over the tables at some places of both axes, and at each strategy's own stop."""
    tables = len({run.grid for run in runs})
    measures = [{"r2": "R2", "mistakes": f"mistakes > {significant:.0%}"}.get(metric, metric) for metric in METRICS]
    table = TextTable(
        ("after", "strategy", *(f"{measure}>" for measure in measures)),
        f"Mean over {format_count(tables, 'table')}, median of the seeds",
    )
    for axis in Axis:
        for place in places:
            for name in strategies:
                found = [mean_over_tables(runs, name, at_place(axis, place, metric)) for metric in METRICS]
                where = f"{place:.3g}".rstrip("0") if place < 0.01 else f"{place:.0%}"
                label = f"{where} of the {_AXES[axis]}" if name == strategies[0] else ""
                table.add_row(label, name, *_cells(found))
        table.add_section()
    for name in strategies:
        found = [mean_over_tables(runs, name, at_stop(metric)) for metric in METRICS]
        cost = mean_over_tables(runs, name, at_stop("cost"))
        spent = f" ({cost.median:.0%} of time)" if cost else ""
        table.add_row("its own stop" if name == strategies[0] else "", f"{name}{spent}", *_cells(found))
    return table


def _cells(found: Sequence[Estimate | None]) -> list[str]:
    """Only the slowdown with its interval: all others have theirs in the files."""
    cells = []
    for metric, value in zip(METRICS, found, strict=True):
        if value is None:
            cells.append("-")
        elif metric == "slowdown":
            cells.append(f"{value.median:.3f} [{value.low:.3f}, {value.high:.3f}]")
        elif metric in ("mistakes", "accuracy", "regret"):
            cells.append(f"{value.median:.1%}")
        else:
            cells.append(f"{value.median:.2f}")
    return cells


def _share(value: Estimate | None) -> str:
    if value is None:
        return "-"
    if value.median >= 1.0:
        return "all"
    return f"{100 * value.median:.1f} [{100 * value.low:.1f}, {100 * value.high:.1f}]"
