"""Judges a tuning by the OSU Micro-Benchmarks: default and tuned launches of their programs by turns.

    python benchmarks/judge_osu.py TUNED --osu DIR [--launches 14] [--node-counts 2 ...] [--sizes 64 ...] [--hostfile F]

Runs where the job would start (bench_own.py runs it on the first node of its cluster). Each launch of a program
covers one shape and all sizes; for each shape the two kinds follow each other in random order, so that both meet the
same state of the machine. OSU times each rank's own call, with a barrier after it, and prints the mean over ranks.
Writes a row for each point to --out after every launch, and at the end prints the figures as JSON: ``osu_geomean``
(default over tuned) with its 99% interval, ``osu_slower`` (points that are slower beyond an interval that holds for all
points at once), and ``osu_slower_alone`` (the same by each point's own 99% interval: 1 in 100 equal points by chance).
``osu_ruled``: points with a rule. With --record each launch's times are kept there, a line of JSON for each, and those
that are there are not measured again.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path

from colltune.bench.workbench import MachineOptions, Workbench, open_tuned_workbench
from colltune.core.interval import SpeedVerdict
from colltune.core.sample import DEFAULT, Choice, Scenario
from colltune.judge.verdict import Comparison, compare, compare_all, mean_speedup
from colltune.machine.benchmark_output import parse_output
from colltune.machine.process import run_launch
from colltune.store.tuning import load_deployable

SIZES = tuple(1 << exponent for exponent in range(6, 17))
TIMEOUT_S = 600.0


def medians(
    osu: Path, options: Sequence[str], bench: Workbench, variables: Mapping[str, str], series: Sequence[Scenario]
) -> list[float]:
    """Seconds of each call of ``series``, of which each is twice as large as the one before: one start measures all."""
    first, last = series[0], series[-1]
    program = next(path for path in sorted(osu.rglob(f"osu_{first.collective}")) if os.access(path, os.X_OK))
    words = [str(program), "-m", f"{first.size_bytes}:{last.size_bytes}", *options]
    start = bench.command(words, variables, nodes=first.nodes, ppn=first.ppn)
    run = run_launch(start.argv, {**bench.process_environment, **start.environment, **variables}, TIMEOUT_S)
    run.check_returncode()
    times_s = parse_output(run.stdout.encode(), program, (first.nodes, first.ppn)).times_s
    return [times_s[scenario, ""][0] for scenario in series]


def judge(arguments: argparse.Namespace) -> list[Comparison]:
    """All points by all launches, or by those that there were when ``--minutes`` were over."""
    tuning = load_deployable(arguments.tuned)
    bench = open_tuned_workbench(MachineOptions(host_file=arguments.hostfile), tuning.environment, os.environ)
    collectives = [name for name in tuning.rule_sets if not arguments.collectives or name in arguments.collectives]
    options = ["-i", str(arguments.iterations), "-x", str(max(arguments.iterations // 10, 5))]
    kinds = {"default": {}, "tuned": tuning.variables_at(arguments.tuned)}
    times: dict[str, defaultdict[Scenario, list[float]]] = {kind: defaultdict(list) for kind in kinds}
    order = random.Random(arguments.seed)
    shapes = [(nodes, tuning.environment.ppn) for nodes in arguments.node_counts]
    until_s = time.monotonic() + 60.0 * arguments.minutes
    known = recorded(arguments.record)

    def choice(scenario: Scenario) -> Choice:
        return tuning.rule_sets[scenario.collective].evaluate(scenario)

    found: list[Comparison] = []
    for launch in range(arguments.launches):
        began_s = time.monotonic()
        for name in collectives:
            for nodes, ppn in shapes:
                series = [Scenario(name, nodes, ppn, size) for size in arguments.sizes]
                for kind in order.sample(sorted(kinds), 2):
                    key = f"{launch} {kind} {name} {nodes} {ppn}"
                    if key not in known or len(known[key]) != len(series):
                        known[key] = medians(arguments.osu, options, bench, kinds[kind], series)
                        record(arguments.record, key, known[key])
                    for scenario, time_s in zip(series, known[key], strict=True):
                        times[kind][scenario].append(time_s)
        print(f"launch {launch + 1} of {arguments.launches}", file=sys.stderr, flush=True)
        both = {s: (times["default"][s], times["tuned"][s]) for s in sorted(times["default"])}
        found = compare_all({(s, choice(s)): sides for s, sides in both.items()})
        write(arguments.out, found)
        if time.monotonic() + (time.monotonic() - began_s) > until_s:
            break
    return found


def recorded(path: Path | None) -> dict[str, list[float]]:
    """Seconds by size, by launch, kind and shape; a line that was cut off is left out."""
    found: dict[str, list[float]] = {}
    for line in path.read_text().splitlines() if path is not None and path.exists() else ():
        with suppress(json.JSONDecodeError):
            found |= json.loads(line)
    return found


def record(path: Path | None, key: str, times_s: Sequence[float]) -> None:
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps({key: times_s}) + "\n")


def alone(one: Comparison) -> Comparison:
    """With the interval of this point by itself."""
    return compare(one.scenario, one.choice, one.a_launches_s, one.b_launches_s)


def figures(found: Sequence[Comparison]) -> dict[str, float | int]:
    launches = max((len(one.a_launches_s) for one in found), default=0)
    made: dict[str, float | int] = {"osu_points": len(found), "osu_launches": launches}
    made["osu_ruled"] = sum(one.choice != DEFAULT for one in found)
    groups = {"": found, "_ruled": [one for one in found if one.choice != DEFAULT]}
    groups |= {f"_{name}": [one for one in found if one.scenario.collective == name] for name in names_of(found)}
    for label, points in groups.items():
        mean = mean_speedup(points)
        if mean is not None:
            made |= {
                f"osu_geomean{label}": round(mean[0].estimate, 3),
                f"osu_low{label}": round(mean[0].low, 3),
                f"osu_high{label}": round(mean[0].high, 3),
            }
    made["osu_slower"] = sum(one.verdict is SpeedVerdict.SLOWER for one in found)
    made["osu_faster"] = sum(one.verdict is SpeedVerdict.FASTER for one in found)
    made["osu_slower_alone"] = sum(alone(one).verdict is SpeedVerdict.SLOWER for one in found)
    made["osu_faster_alone"] = sum(alone(one).verdict is SpeedVerdict.FASTER for one in found)
    return made


def names_of(found: Sequence[Comparison]) -> list[str]:
    return sorted({one.scenario.collective for one in found})


def write(path: Path, found: Sequence[Comparison]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ("collective", "nodes", "ppn", "size_bytes", "choice", "default_us", "tuned_us", "ratio", "low", "high")
        )
        for one in map(alone, found):
            s = one.scenario
            times = (f"{1e6 * one.a_s:.2f}", f"{1e6 * one.b_s:.2f}")
            ratios = (f"{value:.3f}" for value in astuple(one.speedup))
            writer.writerow((s.collective, s.nodes, s.ppn, s.size_bytes, one.choice, *times, *ratios))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tuned", type=Path)
    parser.add_argument("--osu", type=Path, required=True, help="directory of a build of the OSU Micro-Benchmarks")
    parser.add_argument("--launches", type=int, default=14)
    parser.add_argument("--node-counts", type=int, nargs="*", default=[2, 3, 4, 5, 6, 7, 8])
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--collectives", nargs="*", default=[])
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=120.0, help="begin no launch that would end after this time")
    parser.add_argument("--hostfile", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("bench/osu.csv"))
    parser.add_argument("--record", type=Path, help="of other sizes and launches a file of its own")
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    print(json.dumps(figures(judge(arguments))))


if __name__ == "__main__":
    main()
