"""The picture of the gain on the front page of the documentation: default and tuned, as recorded on two clusters.

    python benchmarks/gain_picture.py [--out docs/figures/gain.png] [--seed 0] [--budget 300]

Tunes the recorded tables of LUMI and Leonardo as a whole, with the proof (colltune_study.research.delivery). Draws for
each collective the recorded times on its largest job. Needs no MPI.
"""

from __future__ import annotations

import math
import tempfile
from collections import defaultdict
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator

from colltune.bench.recorded_cluster import RecordedBench
from colltune.bench.replay import TimeDrift
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Scenario
from colltune.core.units import format_size
from colltune.session.recorded_campaign import DRIFT_SD, LAUNCH_S, LAUNCH_SD
from colltune.store.grid import Grid
from colltune_study.recorded.dataset import load_grids
from colltune_study.research.delivery import by_cluster, deliver_into
from harness import ROOT, options_of

CLUSTERS = {"LUMI": "pico_lumi.csv.gz", "Leonardo": "pico_leonardo.csv.gz"}


def largest_job(grid: Grid) -> list[Scenario]:
    """The scenarios of the shape with the most ranks of which most sizes are recorded, by size."""
    by_shape: defaultdict[tuple[int, int, int], list[Scenario]] = defaultdict(list)
    for row, scenario in enumerate(grid.scenarios):
        if math.isfinite(grid.default_s[row]):
            by_shape[scenario.nodes * scenario.ppn, scenario.nodes, scenario.ppn].append(scenario)
    most = max(len(scenarios) for scenarios in by_shape.values())
    largest = max(shape for shape, scenarios in by_shape.items() if len(scenarios) >= most / 2)
    return sorted(by_shape[largest], key=lambda scenario: scenario.size_bytes)


def tuned_time_s(grid: Grid, rules: RuleSet | None, scenario: Scenario) -> float:
    """The recorded time of what the library runs at ``scenario`` with the tuning, in seconds."""
    choice = rules.evaluate(scenario) if rules is not None else DEFAULT
    if choice == DEFAULT or choice not in grid.space.choices(scenario):
        return float(grid.default_s[grid.scenarios.index(scenario)])
    return grid.time(scenario, choice)


def draw(axes: Axes, cluster: str, grid: Grid, rules: RuleSet | None) -> None:
    job = largest_job(grid)
    sizes = [scenario.size_bytes for scenario in job]
    default_us = [float(grid.default_s[grid.scenarios.index(scenario)]) * 1e6 for scenario in job]
    tuned_us = [tuned_time_s(grid, rules, scenario) * 1e6 for scenario in job]
    axes.fill_between(sizes, tuned_us, default_us, color="#2a78d6", alpha=0.15, linewidth=0)
    axes.plot(
        sizes, default_us, color="#666666", linestyle="--", marker="o", markersize=3, label="the library's default"
    )
    axes.plot(sizes, tuned_us, color="#2a78d6", marker="o", markersize=3, label="tuned by colltune")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(LogLocator(base=2, numticks=5))
    axes.set_yscale("log")
    axes.set_title(f"{cluster}: {grid.collective}, {job[0].nodes} x {job[0].ppn}", fontsize=10, loc="left")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_size(round(value))))
    axes.tick_params(labelsize=8)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "figures" / "gain.png")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=300.0)
    asked = parser.parse_args()
    panels: list[tuple[str, Grid, RuleSet | None]] = []
    told: list[str] = []
    for cluster, name in CLUSTERS.items():
        (grids,) = by_cluster(load_grids([ROOT / "benchmarks" / "data" / name])).values()
        bench = RecordedBench(grids, LAUNCH_S, LAUNCH_SD, TimeDrift(DRIFT_SD, asked.seed), machine=cluster)
        with tempfile.TemporaryDirectory() as place:
            delivered, result = deliver_into(Path(place), bench, asked.budget, asked.seed)
        told.append(
            f"{cluster}: {delivered.captured:.0%} of what the fastest\nchoices gain over all shapes and sizes;\n"
            f"slower than the default by 3%: {delivered.harmed:.1%}\n"
        )
        print(told[-1])
        panels += [(cluster, grid, result.tuning.rule_sets.get(grid.collective)) for grid in grids]
    figure, cells = plt.subplots(2, 3, figsize=(9.6, 5.2), layout="constrained")
    every = list(cells.flat)
    for axes, panel in zip(every, panels, strict=False):
        draw(axes, *panel)
    for axes in every[len(panels) :]:
        axes.axis("off")
    handles, labels = every[0].get_legend_handles_labels()
    every[-1].legend(handles, labels, loc="upper left", frameon=False, fontsize=9)
    every[-1].text(0.03, 0.62, "\n".join(told), transform=every[-1].transAxes, fontsize=9, verticalalignment="top")
    figure.supylabel("time of a call, us", fontsize=9)
    figure.supxlabel("message size", fontsize=9)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(asked.out, dpi=110, metadata={"Software": ""})
    print(f"wrote {asked.out}")


if __name__ == "__main__":
    main()
