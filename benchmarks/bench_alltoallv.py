"""The tuned non-uniform all-to-all on simulated clusters of 1,024 to 4,096 ranks: bench/alltoallv.json.

Blocks of up to 1 KiB, drawn uniformly. On each of three networks a model is fitted to recorded times of other rank
counts (make_alltoallv_table.py), chooses for rank counts it has not seen, and its choices are compared with the
library's algorithm, with the best spread-out, and with the best of all settings. Of a figure of all networks the worst
network's is the one without a network's name. Points that the table lacks are simulated and added to it; two recorded
ones of each network are simulated again. `captured_shapes` is of alltoallv_parts.py: the whole command on the job and
its parts. `--figures` also draws docs/figures/alltoallv_*.png.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, median

import numpy as np

from alltoallv_parts import captured_shapes, explored_shapes
from alltoallv_simulators import NETWORKS, Pattern, Timing, compile_cluster, simulate_own
from colltune.alltoallv.lookup_table import LIBRARY, Setting, Shape
from colltune_study.research.alltoallv_models import CostModel, Query, importances, plain_features, reduced_errors
from colltune_study.research.time_models import COMPARED, unseen_error
from harness import ROOT, write_figures
from make_alltoallv_table import (
    HELD_OUT,
    HUGE,
    LARGEST,
    LARGEST_SIZES,
    SIZES,
    SMPI_TABLE,
    TABLES,
    TRAINING,
    append,
    exhaustive,
    held_out,
    load_table,
    trained_on,
)

Key = tuple[Shape, Setting, Pattern]
Times = dict[Key, Timing]
SEEDS = range(3)


def query(timing: Timing) -> Query:
    statistics = (timing.mean, timing.largest, timing.quartile_1, timing.quartile_3)
    features = (*statistics, timing.deviation, timing.skewness, float(timing.peers))
    return Query(timing.shape, timing.setting, timing.mean, features)


def times_s(timings: Sequence[Timing]) -> np.ndarray:
    return np.array([timing.time_s for timing in timings])


def main() -> None:
    parser = argparse.ArgumentParser(description="Figures of the tuned non-uniform all-to-all.")
    parser.add_argument("--figures", action="store_true", help="draw docs/figures/alltoallv_*.png too")
    tables = {network: known_on(network) for network in NETWORKS}
    figures = figures_of_all({network: evaluate(known, network) for network, known in tables.items()})
    known = tables[NETWORKS[0]]
    figures |= compare_models(list(known.values()))
    figures |= captured_shapes() | explored_shapes()
    figures |= compare_simulators(known)
    figures["repeated_deviation"] = max(repeated(known, network) for network, known in tables.items())
    write_figures("alltoallv", figures)
    if parser.parse_args().figures:
        draw(list(known.values()))


def draw(timings: Sequence[Timing]) -> None:
    """docs/figures/alltoallv_radix.png: ParAta's radix; alltoallv_batch.png: HieAta's nodes in flight."""
    shape = HELD_OUT[0]
    mine = [t for t in timings if t.shape == shape and t.pattern.distribution == "uniform"]
    parata = [t for t in mine if t.setting.algorithm == "parata" and t.setting.batch == 0]
    hieata = [t for t in mine if t.setting.algorithm == "hieata" and t.setting.radix == shape.ppn]
    _plot("radix", f"ParAta, {shape.ranks} ranks", parata, lambda one: one.setting.radix)
    title = f"HieAta (radix {shape.ppn}), {shape.nodes} nodes"
    _plot("batch", title, hieata, lambda one: one.setting.batch or one.shape.nodes - 1)


def _plot(axis: str, title: str, timings: Sequence[Timing], value: Callable[[Timing], int]) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4))
    for size in SIZES:
        found = sorted((value(t), t.time_s * 1e6) for t in timings if t.pattern.largest == size)
        axes.plot(*zip(*found, strict=True), marker="o", label=f"blocks up to {size} B")
    axes.set(xscale="log", yscale="log", xlabel=axis, ylabel="time in us", title=title)
    axes.set_xscale("log", base=2)
    axes.legend()
    figure.savefig(ROOT / "docs" / "figures" / f"alltoallv_{axis}.png", bbox_inches="tight")


def known_on(network: str) -> Times:
    return {(timing.shape, timing.setting, timing.pattern): timing for timing in load_table(TABLES[network])}


def figures_of_all(found: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Of each network by its name, and the worst of all networks without."""
    figures = {f"{network}_{name}": value for network, mine in found.items() for name, value in mine.items()}
    for name in next(iter(found.values())):
        worst = max if name.startswith("model_regret") else min
        figures[name] = worst(mine[name] for mine in found.values())
    return figures


def evaluate(known: Times, network: str) -> dict[str, float]:
    """How fast the settings are that the model chooses for rank counts it was not fitted to."""
    seen = [t for t in known.values() if t.shape in trained_on(network) and t.pattern.distribution == "uniform"]
    model = CostModel().fit([query(t) for t in seen], times_s(seen))
    baselines = [setting for setting in exhaustive(HELD_OUT[0]) if setting.algorithm in ("library", "linear")]
    points = [(shape, Pattern("uniform", size)) for shape in held_out(network) for size in sorted(SIZES)]
    points += [(shape, Pattern("uniform", size)) for shape in (LARGEST, HUGE) for size in LARGEST_SIZES]
    beside = {(shape, setting) for shape, _ in points for setting in baselines if shape != HUGE or setting == LIBRARY}
    complete(known, network, [(*one, pattern) for shape, pattern in points for one in beside if one[0] == shape])
    chosen = {(shape, pattern): choice(model, known, shape, pattern) for shape, pattern in points}
    complete(known, network, [(shape, setting, pattern) for (shape, pattern), setting in chosen.items()])
    over_library, over_linear, regrets = [], [], []
    for (shape, pattern), setting in chosen.items():
        here = {other: t.time_s for (where, other, what), t in known.items() if (where, what) == (shape, pattern)}
        linear = min((time_s for other, time_s in here.items() if other.algorithm == "linear"), default=math.nan)
        over_library.append(here[LIBRARY] / here[setting])
        if not math.isnan(linear):
            over_linear.append(linear / here[setting])
        best = min(here, key=lambda other: here[other])
        whole = all(other in here for other in exhaustive(shape))
        if whole:
            regrets.append(here[setting] / here[best])
        note = "" if whole else f", only {len(here)} settings known"
        print(f"{network} {shape} {pattern.largest} B: {setting} {here[setting] * 1e6:.1f} us")
        print(f"    best {best} {here[best] * 1e6:.1f}{note}")
        print(f"    library {here[LIBRARY] * 1e6:.1f}, linear {linear * 1e6:.1f}")
    return {
        "speedup_median": round(median(over_library), 3),
        "speedup_max": round(max(over_library), 3),
        "speedup_min": round(min(over_library), 3),
        "over_best_linear_median": round(median(over_linear), 3),
        "model_regret": round(geometric_mean(regrets) - 1.0, 4),
        "model_regret_worst": round(max(regrets) - 1.0, 4),
        "exhaustive_points": float(len(regrets)),
    }


def choice(model: CostModel, known: Times, shape: Shape, pattern: Pattern) -> Setting:
    """By the average block alone, which is what all ranks agree on in a call."""
    return model.choose(shape, exhaustive(shape), known[shape, LIBRARY, pattern].mean)


def complete(known: Times, network: str, points: Iterable[Key]) -> None:
    """Simulates what is not known, and keeps it."""
    missing = [point for point in dict.fromkeys(points) if point not in known]
    if not missing:
        return
    with tempfile.TemporaryDirectory() as name:
        program = compile_cluster(Path(name))
        for shape in dict.fromkeys(shape for shape, _, _ in missing):
            asked = [(setting, pattern) for where, setting, pattern in missing if where == shape]
            for timing in simulate_own(program, shape, asked, network=network):
                known[timing.shape, timing.setting, timing.pattern] = timing
                append(TABLES[network], timing)


def compare_models(timings: Sequence[Timing]) -> dict[str, float]:
    """Test errors of the models, means over SEEDS; and which statistic of block sizes it takes."""
    uniform = [t for t in timings if t.pattern.distribution == "uniform"]
    features, measured = plain_features([query(t) for t in uniform]), times_s(uniform)
    figures = {
        f"error_{name}": float(np.mean([unseen_error(name, features, measured, seed) for seed in SEEDS]))
        for name in COMPARED
    }
    mixed = [t for t in timings if t.shape == TRAINING[0]]
    queries, measured = [query(t) for t in mixed], times_s(mixed)
    figures |= {f"matters_{name}": value for name, value in importances(queries, measured, 0).items()}
    return _rounded(
        figures | {f"error_of_{name}": value for name, value in reduced_errors(queries, measured, 0).items()}
    )


def repeated(known: Times, network: str) -> float:
    """How far times that are simulated now are from recorded ones."""
    again = [(TRAINING[0], setting, Pattern("uniform", 128)) for setting in (LIBRARY, Setting("hieata", 16, 0))]
    with tempfile.TemporaryDirectory() as name:
        asked = [(setting, pattern) for _, setting, pattern in again]
        fresh = simulate_own(compile_cluster(Path(name)), TRAINING[0], asked, network=network)
        return round(max(abs(t.time_s / known[key].time_s - 1.0) for key, t in zip(again, fresh, strict=True)), 4)


def compare_simulators(known: Times) -> dict[str, float]:
    """How far our times of the fat tree are from SimGrid's where both are known."""
    recorded = load_table(SMPI_TABLE) if SMPI_TABLE.exists() else []
    theirs = [t for t in recorded if (t.shape, t.setting, t.pattern) in known]
    off = [known[t.shape, t.setting, t.pattern].time_s / t.time_s for t in theirs]
    if not off:
        return {}
    return _rounded(
        {
            "smpi_points": float(len(off)),
            "smpi_ratio_median": median(off),
            "smpi_ratio_least": min(off),
            "smpi_ratio_most": max(off),
        }
    )


def _rounded(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in figures.items()}


if __name__ == "__main__":
    main()
