"""Intel MPI tuned by colltune, beside its default and its own two tuners, judged by its own benchmark IMB-MPI1.

    python benchmarks/bench_vendor.py [--mpiexec F] [--shape 4x2] [--tuning-s 360] [--rounds 10] [--minutes 28]

Needs Intel MPI (pip install impi-rt, and impi-devel with --no-deps, of one version; .venv-intelmpi unless --mpiexec is
given), root, iproute2 and gcc. Nodes are network namespaces with links of 1 Gbit/s; a shape of one node needs none of
them. It may be stopped and goes on: the tunings and each launch of the benchmark are kept in bench/vendor/SHAPE.

Allreduce, alltoall, allgather and bcast, 8 B to 16 KiB. What stands beside one another, each for its own time:

- ours: `colltune profile` of the benchmark and `colltune tune --profile`, within --tuning-s;
- auto: I_MPI_TUNING_MODE=auto:cluster in the benchmark, with as many iterations as fit into the time that ours took;
- fast: mpitune_fast for this shape and these collectives, with as many iterations of these sizes as auto has; ended
  after twice that time, in which case it has no figures.

A round has one launch of each in random order, and the benchmark synchronises the ranks before each call (-sync on) and
tells the mean over repetitions of the slowest rank. The ceiling: in launches of its own, under a table in which each
size has one of the choices that the catalogue knows or the default, another one from launch to launch; what is fastest
in one half of all launches is judged in the other, and the other way round, without what each launch moves together.

Writes bench/intel.json, each figure with the shape in its name, and those of the first shape without. ``geomean``,
``low``: default over ours and its lower 99% bound, of all points and by collective. ``slower``: points where ours is
surely slower. ``against_auto``, ``against_mpitune_fast``: theirs over ours; ``auto``, ``fast``: default over theirs.
``auto_changes``, ``fast_changes``: 0 where its table decides these calls as the library's own does.
``ceiling``, by collective too, and ``captured`` of its logarithm. ``tuning_s``, ``auto_s``, ``fast_s``: what each took.
``launches``.
"""

from __future__ import annotations

import argparse
import math
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import permutations
from pathlib import Path
from statistics import fmean, median

import numpy as np

from colltune.catalog import Catalogue, load
from colltune.core.decision_table import DecisionTable
from colltune.core.interval import SpeedVerdict
from colltune.core.rules import Steps
from colltune.core.sample import DEFAULT, Choice, Scenario, SizeBasis
from colltune.emit.intelmpi import IntelMpiEmitter, Presets, collectives_in, read_table, steps_of
from colltune.emit.intelmpi import asked as asked_of
from colltune.judge.verdict import Comparison, compare_all, mean_speedup
from colltune.mpi.detect import find_mpi
from colltune.store.tuning import load_tuning
from harness import options_of, write_figures
from on_cluster import ROOT
from vendor_place import AS_MANY, COLLECTIVES, EXPONENTS, PATIENCE_S, SIZES, Place, place_of

TABLE, DUMP = "I_MPI_TUNING_BIN", "I_MPI_TUNING_BIN_DUMP"
CALIBRATION, SEARCHED = 40, 400  # iterations: of a first look at its cost, and those in which the autotuner ends
# Launches of each choice for the ceiling, half of them to choose by: one of each chooses luck.
TURNS = 4
Point = tuple[Scenario, Choice]


def tune_ours(place: Place, tuning_s: float) -> tuple[Mapping[str, str], float]:
    """The variables of our tuning, and what it took with the profile before it."""
    tuned, profile = place.directory / "tuned", place.directory / "profile.json"
    if (took_s := place.timed("ours", tuned / "tuning.json")) is None:
        shutil.rmtree(tuned, ignore_errors=True)
        profile.unlink(missing_ok=True)
        began_s = time.monotonic()
        program = [sys.executable, "-m", "colltune"]
        which = ["--mpiexec", str(place.mpiexec)]
        place.run([*program, "profile", *which, "--out", str(profile), "--", *place.benchmark(20)], PATIENCE_S)
        budget = ["--budget", f"{max(tuning_s - (time.monotonic() - began_s), 60.0):.0f}s", "--runtime", "1000h"]
        words = [*COLLECTIVES, *which, *place.where, "--profile", str(profile), *budget, "--out", str(tuned)]
        print(place.run([*program, "tune", *words], 4 * tuning_s + PATIENCE_S), flush=True)
        took_s = time.monotonic() - began_s
        place.keep("ours", {"took_s": took_s})
    return load_tuning(tuned).variables_at(tuned), took_s


def tune_auto(place: Place, target_s: float) -> tuple[Mapping[str, str], float]:
    """What the library's autotuner chooses within the benchmark in about ``target_s``."""
    table = place.directory / "auto.dat"
    if (took_s := place.timed("auto", table)) is None:
        began_s = time.monotonic()
        mode = {"I_MPI_TUNING_MODE": "auto:cluster", DUMP: str(table)}
        place.run(place.benchmark(CALIBRATION), PATIENCE_S, **mode)
        calibrated_s = time.monotonic() - began_s
        # A launch without an iteration takes little beside one with them, so the estimate is on the safe side.
        iterations = max(int(CALIBRATION * (target_s - calibrated_s) / calibrated_s), CALIBRATION)
        mode["I_MPI_TUNING_AUTO_ITER_NUM"] = str(max(iterations // SEARCHED, 1))
        place.run(place.benchmark(iterations), 3 * target_s + PATIENCE_S, **mode)
        took_s = time.monotonic() - began_s
        place.keep("auto", {"took_s": took_s, "iterations": iterations})
        print(f"{place.shape} auto: {iterations} iterations, {took_s:.0f} s", flush=True)
    return {TABLE: str(table)}, took_s


def tune_fast(place: Place, target_s: float) -> tuple[Mapping[str, str] | None, float]:
    """What mpitune_fast chooses; no variables where it does not end in twice ``target_s``, or writes no table."""
    table, made = place.directory / "fast.dat", place.directory / "fast"
    if (took_s := place.timed("fast", made)) is None:
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir()
        nodes, ppn = place.nodes_ppn
        (made / "hosts").write_text("\n".join(place.cluster.hosts if place.cluster else ["localhost"]) + "\n")
        # By itself it measures to 4 MiB with thousands of repetitions each, for hours here: what it starts is the
        # benchmark that is first on PATH, so this gives that the same sizes and time as the others have.
        bounded, iterations = made / "bin" / "IMB-MPI1", place.record["auto"]["iterations"]
        bounded.parent.mkdir()
        fixed = ["-imb_barrier", "1", "-npmin", str(nodes * ppn), "-iter", str(iterations), *AS_MANY, *EXPONENTS]
        bounded.write_text(f'#!/bin/sh\nexec {place.mpiexec.with_name("IMB-MPI1")} "$1" {" ".join(fixed)}\n')
        bounded.chmod(0o755)
        first = {"PATH": f"{bounded.parent}:{place.environment['PATH']}"}
        words = ["-f", str(made / "hosts"), "-n", str(nodes), "-ppn", str(ppn), "-c", ",".join(COLLECTIVES)]
        began_s = time.monotonic()
        with suppress(subprocess.SubprocessError):
            place.run([str(place.mpiexec.with_name("mpitune_fast")), *words, "-d", str(made)], 2 * target_s, **first)
        took_s = time.monotonic() - began_s
        written = sorted(made.rglob("*merged*.dat"), key=lambda path: path.stat().st_mtime)
        if written:
            shutil.copy(written[-1], table)
        place.keep("fast", {"took_s": took_s})
        print(f"{place.shape} mpitune_fast: {len(written)} tables, {took_s:.0f} s", flush=True)
    return ({TABLE: str(table)} if table.exists() else None), took_s


def presets_of(place: Place, catalogue: Catalogue) -> Presets:
    """What the library decides by itself, and what its presets stand for, as it says in two launches."""
    own, named = place.directory / "own.dat", place.directory / "named.dat"
    variables, bounds = asked_of(catalogue)
    for path, more in ((own, {}), (named, variables)):
        if not path.exists():
            place.run(place.benchmark(1), PATIENCE_S, **{DUMP: str(path), **more})
    return Presets.of(own.read_bytes(), named.read_bytes(), bounds)


def is_changed(place: Place, presets: Presets, table: str) -> bool:
    """Whether the library decides these calls otherwise with ``table`` than by itself, for ranks of this shape."""
    nodes, ppn = place.nodes_ppn
    before, after = collectives_in(presets.tree), collectives_in(read_table(Path(table).read_bytes()))
    both = (
        (steps_of(some[presets.numbers[name]]).at(ppn).at(nodes * ppn) for some in (before, after))
        for name in COLLECTIVES
    )
    return any(own != other for own, other in both)


def squared(
    place: Place, catalogue: Catalogue, emitter: IntelMpiEmitter, turn: int, launch: int
) -> tuple[dict[str, str], dict[tuple[str, int], Choice]]:
    """A table by which each size of each collective has one of its choices, the default among them.

    Another one from launch to launch, and others beside one another from turn to turn, so that what a launch moves
    together can be told from the choices. (By I_MPI_ADJUST_X no size can be left to the library.)
    """
    rules, chosen = [], {}
    for name in COLLECTIVES:
        choices = [one for one in catalogue.choices(name) if one == DEFAULT or emitter.has(name, one)]
        for number, size in enumerate(SIZES):
            chosen[name, size] = choices[(launch + (1 + turn) * number) % len(choices)]
        steps = [(SIZES[0] - 1, DEFAULT), *((size, chosen[name, size]) for size in SIZES), (None, DEFAULT)]
        shapes = {place.nodes_ppn: Steps.of(steps)}
        rules.append(DecisionTable.of_shapes(name, SizeBasis.MESSAGE, shapes).rule_set())
    table = place.directory / "choices.dat"
    [data] = emitter.emit(rules).values()
    table.write_bytes(data)
    return {TABLE: str(table)}, chosen


def without_launches(launches: Sequence[Mapping[Point, float]]) -> dict[Point, float]:
    """The logarithm of each point's time without what each launch moves together, by least squares."""
    points = {point: column for column, point in enumerate(sorted({point for times in launches for point in times}))}
    rows = [(points[point], len(points) + number, math.log(time_s))
            for number, times in enumerate(launches) for point, time_s in times.items()]  # fmt: skip
    design = np.zeros((len(rows), len(points) + len(launches)))
    for row, (point, launch, _) in enumerate(rows):
        design[row, [point, launch]] = 1.0
    solved = np.linalg.lstsq(design, np.array([log_time for *_, log_time in rows]), rcond=None)[0]
    return {point: float(solved[column]) for point, column in points.items()}


def ceiling(place: Place, catalogue: Catalogue, presets: Presets, iterations: int, until_s: float) -> dict[str, float]:
    """The mean logarithm of default over the fastest choice, "" over all; nothing where two turns had no time."""
    emitter = IntelMpiEmitter(catalogue, presets)
    columns = max(len(catalogue.choices(name)) for name in COLLECTIVES)
    halves: list[list[dict[Point, float]]] = [[], []]
    for turn in range(TURNS):
        made = []
        for launch in range(columns):
            key = f"choices {turn} {launch}"
            if key not in place.record and time.monotonic() > until_s:
                break
            variables, chosen = squared(place, catalogue, emitter, turn, launch)
            times = place.launched(key, iterations, **variables)
            made.append({(s, chosen[s.collective, s.size_bytes]): time_s for s, time_s in times.items()})
        if len(made) == columns:
            halves[turn % 2] += made
    if not all(halves):
        return {}
    gains: dict[str, list[float]] = {"": []}
    for chosen_by, paid in permutations([without_launches(half) for half in halves]):
        for scenario in {scenario for scenario, choice in paid if choice == DEFAULT}:
            both = [point for point in chosen_by if point[0] == scenario and point in paid]
            best = min(both, key=chosen_by.__getitem__, default=(scenario, DEFAULT))
            for name in ("", scenario.collective):
                gains.setdefault(name, []).append(paid[scenario, DEFAULT] - paid[best])
    return {name: fmean(some) for name, some in gains.items()}


def judged(
    place: Place, kinds: Mapping[str, Mapping[str, str]], rounds: int, iterations: int, until_s: float
) -> dict[str, dict[Scenario, list[float]]]:
    """Seconds by kind and call, one for each round in which all kinds ran."""
    found: dict[str, dict[Scenario, list[float]]] = {kind: {} for kind in kinds}
    order = random.Random(1)
    for number in range(rounds):
        turns = order.sample(sorted(kinds), len(kinds))
        if f"{number} {turns[-1]}" not in place.record and time.monotonic() > until_s:
            break
        launches = {kind: place.launched(f"{number} {kind}", iterations, **kinds[kind]) for kind in turns}
        common = set.intersection(*(set(times) for times in launches.values()))
        for kind, times in launches.items():
            for scenario in common:
                found[kind].setdefault(scenario, []).append(times[scenario])
    return found


def bounds(label: str, points: Sequence[Comparison]) -> dict[str, float]:
    if (mean := mean_speedup(points)) is None:
        return {}
    ends = {"": mean[0].estimate, "_low": mean[0].low, "_high": mean[0].high}
    return {f"{label}{end}": round(value, 3) for end, value in ends.items()}


def figures_of(place: Place, times: Mapping[str, Mapping[Scenario, list[float]]]) -> dict[str, float]:
    """The figures of one shape."""
    made: dict[str, float] = {}

    def compared(first: str, second: str) -> list[Comparison]:
        sides = {(s, DEFAULT): (times[first][s], times[second][s]) for s in sorted(times[first])}
        return compare_all(sides, paired=True)

    def slower(points: Sequence[Comparison]) -> int:
        return sum(one.verdict is SpeedVerdict.SLOWER for one in points)

    ours = compared("default", "ours")
    for name in ("", *COLLECTIVES):
        some = [one for one in ours if name in ("", one.scenario.collective)]
        label = f"_{name}" if name else ""
        named = bounds("", some)
        if named:
            made |= {f"geomean{label}": named[""], f"low{label}": named["_low"], f"high{label}": named["_high"]}
    made |= {"slower": slower(ours), "points": len(ours)}
    for kind, theirs in (("auto", "auto"), ("fast", "mpitune_fast")):
        if kind not in times:
            made |= bounds(f"against_{theirs}", ours)
        else:
            by_default = compared("default", kind)
            made |= bounds(f"against_{theirs}", compared(kind, "ours")) | bounds(kind, by_default)
            made[f"{kind}_slower"] = slower(by_default)
            for name in COLLECTIVES:
                made |= bounds(f"{kind}_{name}", [one for one in by_default if one.scenario.collective == name])
    return {f"{key}_{place.shape}": value for key, value in made.items()}


def measured(place: Place, asked: argparse.Namespace, until_s: float) -> dict[str, float]:
    mpi = find_mpi(str(place.mpiexec), place.environment)
    catalogue = load("intelmpi", mpi.version)
    kinds: dict[str, Mapping[str, str]] = {"default": {}}
    kinds["ours"], ours_s = tune_ours(place, asked.tuning_s)
    theirs: dict[str, Mapping[str, str] | None] = {}
    theirs["auto"], auto_s = tune_auto(place, ours_s)
    theirs["fast"], fast_s = tune_fast(place, ours_s)
    # A table that is the library's own decides as it does by default.
    presets = presets_of(place, catalogue)
    changed = {kind: to for kind, to in theirs.items() if to is not None and is_changed(place, presets, to[TABLE])}
    kinds |= changed
    # What is left: most of it is for the comparison, which is to hold for every point.
    left_s = until_s - time.monotonic()
    times = judged(place, kinds, asked.rounds, asked.iterations, time.monotonic() + 0.6 * left_s)
    best = ceiling(place, catalogue, presets, asked.iterations, until_s)
    shape = place.shape
    made = figures_of(place, times) if median(map(len, times["ours"].values() or [[]])) > 1 else {}
    made |= {f"{kind}_changes_{shape}": int(kind in changed) for kind in theirs}
    made |= {f"tuning_s_{shape}": round(ours_s), f"auto_s_{shape}": round(auto_s), f"fast_s_{shape}": round(fast_s)}
    made[f"launches_{shape}"] = len(place.record)
    for name, gain in best.items():
        label = f"_{name}" if name else ""
        made[f"ceiling{label}_{shape}"] = round(math.exp(gain), 3)
    if best.get("", 0.0) > 0.0 and f"geomean_{shape}" in made:
        made[f"captured_{shape}"] = round(math.log(made[f"geomean_{shape}"]) / best[""], 3)
    return made


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--mpiexec", type=Path, default=ROOT / ".venv-intelmpi" / "bin" / "mpiexec")
    parser.add_argument("--shape", nargs="*", default=["4x2"], help="nodes x ranks per node, such as 4x2 8x1 1x2")
    parser.add_argument("--tuning-s", type=float, default=360.0)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=28.0, help="of each shape; begin no launch after this time")
    asked = parser.parse_args()
    made: dict[str, float] = {}
    for shape in asked.shape:
        with place_of(shape, asked.mpiexec.absolute()) as place:
            found = measured(place, asked, time.monotonic() + 60.0 * asked.minutes)
        made |= found | ({key.removesuffix(f"_{shape}"): value for key, value in found.items()} if not made else {})
        write_figures("intel", made, is_shown=shape == asked.shape[-1])


if __name__ == "__main__":
    main()
