"""Figures of PML-MPI (Han, Xu, Shafi, Subramoni and Panda, 2024): choices predicted without measuring, beside defaults.

The clusters are those of benchmarks/data, and the model is ours: it is trained on the tables of one collective of all
other clusters, or on the smaller jobs of the same one. What is predicted is never in what was trained on.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from bench_predicted import DATA, MPI_ADVANCE, PICO, grids_of
from colltune.bench.replay import MeasuringCost
from colltune.core.errors import InputError
from colltune.core.sample import Scenario
from colltune.core.units import format_size
from colltune.store.grid import Grid
from colltune_study.recorded.dataset import load_grids
from colltune_study.research.figures import COLOURS, STYLES, new_panels, save
from colltune_study.research.labels import draw_importances, forest_importances
from colltune_study.training.learned_times import learn_times, times_of
from harness import part_of
from learned import TABLE
from papers.entrants import entrant
from papers.study import Made, Study

_SUITES = {name: suite for suite in (PICO, MPI_ADVANCE) for name in suite}
_US = 1e6


@dataclass(frozen=True)
class Predicted:
    """Times in seconds by scenario: ``chosen`` of the predicted choice, ``random`` the mean of all choices.

    ``default_s`` is NaN where the library's own was not recorded.
    """

    scenarios: Sequence[Scenario]
    chosen_s: np.ndarray
    default_s: np.ndarray
    fastest_s: np.ndarray
    random_s: np.ndarray

    def at_largest(self) -> Predicted:
        """The shape with the most ranks of those with the most sizes."""
        sizes: dict[tuple[int, int], int] = {}
        for one in self.scenarios:
            sizes[one.nodes, one.ppn] = sizes.get((one.nodes, one.ppn), 0) + 1
        best = max(sizes, key=lambda shape: (min(sizes[shape], 8), shape[0] * shape[1]))
        return self._part([row for row, one in enumerate(self.scenarios) if (one.nodes, one.ppn) == best])

    def with_default(self) -> Predicted:
        return self._part([int(row) for row in np.flatnonzero(np.isfinite(self.default_s))])

    def _part(self, rows: Sequence[int]) -> Predicted:
        times = (self.chosen_s, self.default_s, self.fastest_s, self.random_s)
        return Predicted([self.scenarios[row] for row in rows], *(some[list(rows)] for some in times))


def _predicted(name: str, *, larger: bool = False) -> Predicted:
    """The table ``name``, such as "pico_lumi/allgather", predicted from other clusters; with ``larger`` its jobs of the
    most nodes from its own smaller ones. Raises InputError where there is nothing to learn from.
    """
    cluster, collective = name.split("/")
    by_cluster = grids_of(_SUITES[cluster])[collective]
    grid = by_cluster[cluster]
    sources = [other for key, other in by_cluster.items() if key != cluster]
    if larger:
        most = max(one.nodes for one in grid.scenarios)
        sources = [part_of(grid, [row for row, one in enumerate(grid.scenarios) if one.nodes < most])]
        grid = part_of(grid, [row for row, one in enumerate(grid.scenarios) if one.nodes == most])
    return choose(grid, sources)


def choose(grid: Grid, sources: Sequence[Grid]) -> Predicted:
    """What a model of ``sources`` selects in ``grid``, among the choices that they have too."""
    shared = [choice for choice in grid.choices if any(choice in source.columns for source in sources)]
    if not shared:
        raise InputError(f"no other table has a choice of {grid.name}", "Give one of the same collective")
    times = grid.time_s[:, [grid.columns[choice] for choice in shared]]
    pairs = [(scenario, choice) for scenario in grid.scenarios for choice in shared]
    model = learn_times({str(number): times_of(one) for number, one in enumerate(sources)}, shared)
    if model is None:
        raise InputError(f"nothing is known of what the choices of {grid.name} send", "Give another table")
    said = model.predict(pairs).log_time.reshape(times.shape)
    said = np.where(np.isfinite(times) & np.isfinite(said), said, np.inf)
    rows = np.flatnonzero(np.isfinite(said).sum(axis=1) >= 2)
    chosen = times[rows, said[rows].argmin(axis=1)]
    scenarios = [grid.scenarios[row] for row in rows]
    known = grid.time_s[rows]
    return Predicted(scenarios, chosen, grid.default_s[rows], np.nanmin(known, axis=1), np.nanmean(known, axis=1))


# By figure: its title, what is beside the prediction, the tables, and what differs from the paper's.
_BESIDE: Mapping[str, tuple[str, str, Sequence[str], str]] = {
    "pml_8": (
        "PML-MPI 8: predicted and random choices",
        "random",
        ("pico_leonardo/allgather", "mpiadvance_dane/alltoall"),
        "The paper: Frontera, 16 nodes x 56, MVAPICH2. Random: the mean over all recorded choices.",
    ),
    "pml_9": (
        "PML-MPI 9: predicted choices and the default of MVAPICH2, on a cluster that was left out",
        "default",
        ("mpiadvance_dane/alltoall",),
        "The paper: Frontera, with allgather beside alltoall. Here: Dane, which has alltoall alone.",
    ),
    "pml_10": (
        "PML-MPI 10: predicted choices and the library's default, on other clusters that were left out",
        "default",
        ("pico_lumi/allgather", "mpiadvance_tuolumne/alltoall"),
        "The paper: MRI with MVAPICH2. Here: LUMI and Tuolumne, both with Cray MPICH.",
    ),
    "pml_11": (
        "PML-MPI 11: predicted choices and the default of Open MPI, on a cluster that was left out",
        "default",
        ("pico_leonardo/allgather", "pico_leonardo/allreduce"),
        "The paper: Frontera, allgather and alltoall. Here: Leonardo, allgather and allreduce.",
    ),
    "pml_12": (
        "PML-MPI 12: more nodes than were trained on",
        "default",
        ("mpiadvance_dane/alltoall", "mpiadvance_tuolumne/alltoall"),
        "The paper: 16 nodes of Frontera and 8 of MRI, from fewer ones. Here: 32 nodes of each from 2 to 16.",
    ),
}


def _beside(name: str, study: Study) -> Made:
    title, other, tables, differs = _BESIDE[name]
    figure, panels = new_panels(len(tables), width=4.6, height=3.2)
    rows = []
    for panel, table in zip(panels, tables, strict=True):
        found = _predicted(table, larger=name == "pml_12").with_default()
        _lines(panel, found.at_largest(), other, table)
        beside = getattr(found, f"{other}_s")
        gain, loss = beside / found.chosen_s, found.chosen_s / found.fastest_s
        counts = [str(len(gain)), f"{np.mean(gain < 1 / 1.03):.0%}"]
        means = [f"{np.exp(np.log(some).mean()):.3f}" for some in (gain, loss)]
        rows.append([table, *counts, means[0], f"{gain.min():.2f} to {gain.max():.2f}", means[1]])
    panels[0].legend(fontsize=8, frameon=False)
    figure.suptitle(title, fontsize=9)
    save(figure, study.out / f"{name}.png")
    columns = ["table", "calls", "slower by over 3%", f"faster than {other}", "from, to", "slower than the fastest"]
    caption = (
        f"{differs} Factors are geometric means over all calls whose default was recorded. Fastest: of the recorded"
        " choices, the default not among them. The picture has the most ranks of the shapes with most sizes."
    )
    return Made(name, title, caption, columns, rows, f"{name}.png")


def _lines(panel: Any, found: Predicted, other: str, table: str) -> None:
    order = np.argsort([one.size_bytes for one in found.scenarios])
    sizes = [found.scenarios[row].size_bytes for row in order]
    times = {other: getattr(found, f"{other}_s"), "predicted": found.chosen_s, "fastest": found.fastest_s}
    for number, (label, some) in enumerate(times.items()):
        panel.plot(
            sizes, some[order] * _US, color=COLOURS[number], linestyle=STYLES[number], marker="o", ms=3, label=label
        )
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_xlabel("message size in bytes", fontsize=8)
    panel.set_ylabel("time of a call in us", fontsize=8)
    panel.set_title(f"{table}, {found.scenarios[0].nodes} x {found.scenarios[0].ppn}", fontsize=9)
    panel.grid(alpha=0.25, linewidth=0.5)


pml_8, pml_9, pml_10, pml_11, pml_12 = (partial(_beside, name) for name in _BESIDE)


def pml_2(study: Study) -> Made:
    """The same choices on two clusters."""
    by_cluster = grids_of(MPI_ADVANCE)["alltoall"]
    grids = [by_cluster[name] for name in MPI_ADVANCE]
    best = [grid.choices[int(np.nanargmin(np.nanmean(np.log(grid.time_s), axis=0)))] for grid in grids]
    both = [choice for choice in grids[0].choices if choice in grids[1].columns]
    shown = list(dict.fromkeys([*(one for one in best if one in both), *both]))[:5]
    figure, panels = new_panels(2, width=4.6, height=3.2)
    rows: list[list[str]] = []
    for panel, grid in zip(panels, grids, strict=True):
        mine = sorted((one.size_bytes, row) for row, one in enumerate(grid.scenarios) if one.nodes == 2)
        for number, choice in enumerate(shown):
            times = [grid.time_s[row, grid.columns[choice]] * _US for _, row in mine]
            style = {"color": COLOURS[number], "linestyle": STYLES[number], "marker": "o", "ms": 3}
            panel.plot([size for size, _ in mine], times, label=str(choice), **style)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_title(f"{grid.name}, 2 x {grid.scenarios[0].ppn}", fontsize=9)
        panel.set_xlabel("message size in bytes", fontsize=8)
        panel.set_ylabel("time of a call in us", fontsize=8)
        for size, row in mine:
            fastest = grid.choices[int(np.nanargmin(grid.time_s[row]))]
            rows.append([grid.name, format_size(size), str(fastest), f"{grid.best_s[row] * _US:.4g}"])
    panels[0].legend(fontsize=6.5, frameon=False)
    figure.suptitle("PML-MPI 2: algorithms of one alltoall on two clusters, 2 nodes", fontsize=10)
    save(figure, study.out / "pml_2.png")
    caption = (
        "The paper: Frontera and MRI, 2 nodes x 16. Here: Dane and Tuolumne, 2 nodes with all their cores (112 and 64"
        " ranks each). The picture has five choices that both recorded, the table the fastest of all."
    )
    columns = ["table", "size", "fastest", "us"]
    return Made("pml_2", "PML-MPI 2: one alltoall on two clusters", caption, columns, rows, "pml_2.png")


def _importances(name: str, collective: str, study: Study) -> Made:
    """What decides in MVAPICH2's tables."""
    found, title = forest_importances(DATA, collective, 1000), f"PML-MPI {name[-1]}: what decides in {collective}"
    draw_importances(found, title, study.out / f"{name}.png")
    rows = [[column, *(f"{values[column]:.3f}" for values in found.values())] for column in found["gini"]]
    caption = (
        "A random forest of the algorithm that MVAPICH2's tables of 22 machines name. Gini: the share of the decrease"
        " in impurity, as in the paper, whose rows are measurements of 18 clusters. Permutation: the accuracy that is"
        " lost in rows that were held back when the column is shuffled."
    )
    return Made(name, title, caption, ["feature", *found], rows, f"{name}.png")


pml_5, pml_6 = partial(_importances, "pml_5", "allgather"), partial(_importances, "pml_6", "alltoall")


def pml_7(study: Study) -> Made:
    """Core hours over the nodes, of measuring everything, of two ways to learn, and of a prediction; figure 1 too."""
    [grid] = [one for one in load_grids([TABLE]) if one.collective == "allgather"]
    names = ("everything", "acclaim-code", "ours", "predicted")
    nodes = [count for count in sorted({one.nodes for one in grid.scenarios}) if count >= 16]
    hours: dict[str, list[float]] = {name: [] for name in names}
    for count in nodes:
        part = part_of(grid, [row for row, one in enumerate(grid.scenarios) if one.nodes <= count])
        whole = MeasuringCost().total(part) * count / 3600.0
        hours["everything"].append(whole)
        for name in ("acclaim-code", "ours"):
            runs = study.runs([entrant(name)], [replace(part, name=f"{grid.name} to {count} nodes")])
            hours[name].append(whole * float(np.median([run.stop.cost if run.stop else 1.0 for run in runs])))
        began_s = time.process_time()
        smaller = part_of(part, [row for row, one in enumerate(part.scenarios) if one.nodes <= 8])
        choose(part, [smaller])
        hours["predicted"].append((time.process_time() - began_s) / 3600.0)
    figure, [panel] = new_panels(1, width=6.0, height=3.6)
    for number, name in enumerate(names):
        panel.plot(nodes, hours[name], color=COLOURS[number], linestyle=STYLES[number], marker="o", ms=3, label=name)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_xlabel("nodes, one rank each")
    panel.set_ylabel("core hours")
    panel.legend(fontsize=8, frameon=False)
    panel.set_title("PML-MPI 1 and 7: core hours until there is a selection", fontsize=10)
    save(figure, study.out / "pml_7.png")
    caption = (
        f"{grid.name}, all shapes up to so many nodes; the job keeps its nodes and measures one point after another."
        f" acclaim-code and ours: until they stop by themselves, medians of {study.seeds} seeds; of ACCLAiM's program"
        " that says nothing of the selection (ACCLAiM 9). predicted: the processor time of one core that drew this, for"
        " a model of up to 8 nodes and its answers. The paper: Frontera with 56 ranks per node, so no number here is in"
        " its units, and ACCLAiM's cost as that paper has it."
    )
    rows = [[str(count), *(f"{hours[name][place]:.3g}" for name in names)] for place, count in enumerate(nodes)]
    return Made("pml_7", "PML-MPI 1 and 7: core hours", caption, ["nodes", *names], rows, "pml_7.png")
