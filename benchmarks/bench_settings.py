"""Do settings beside the algorithm gain beyond every algorithm? MPICH on network namespaces (1 Gbit/s, real TCP).

Every legal choice of each scenario is measured once; the fastest four and the default go on, with every setting that
can be written before a call (throttle of the scattered all-to-all, chunks of the tree allreduce and of the pipelined
broadcast). Then fresh launches, in random order inside a round: one as it is, one for each setting of the whole process
in the catalogue. Of each round the best choice is named by the other rounds, so that picking the best of many is no
gain by itself. ``gain``: the time of the best algorithm, with all its settings as the library has them, over that with
the setting, the median over rounds, and its bounds with 95% confidence each; before them that of the library's own
decision over the best algorithm.

    python benchmarks/bench_settings.py --nodes 8 --ppn 1 --minutes 9
    python benchmarks/bench_settings.py --collectives bcast --sizes 131072 1048576 --settings

Writes bench/settings.json and prints a table, with the time of each choice as it is. Needs root, iproute2 and gcc.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "mpi"))

from namespaces import namespace_cluster, why_not  # noqa: E402

from colltune.bench.workbench import MachineOptions, Workbench, open_workbench  # noqa: E402
from colltune.core.choice import DEFAULT, Choice  # noqa: E402
from colltune.core.proven import lower_bound, upper_bound  # noqa: E402
from colltune.core.sample import Status  # noqa: E402
from colltune.core.scenario import Scenario  # noqa: E402
from colltune.core.space import Point  # noqa: E402
from colltune.measure.contract import Effort  # noqa: E402
from process_settings import process_settings  # noqa: E402

SETTINGS = {one.name: dict(one.variables) for one in process_settings("mpich")}
AS_IT_IS = "as it is"
ALGORITHM, BESIDE = "the best algorithm", "beside a call"
# With more ranks than cores one launch under these lasts minutes.
SLEEPING = ("heavy yield", "progress throttle after 64 polls")
COLLECTIVES = ("allreduce", "alltoall", "bcast")
SIZES = (1 << 10, 1 << 14, 1 << 17)
# Of an algorithm by its own nature: other values than the default are a setting beside it, though each is a candidate.
CHUNK = "chunk_size"
EFFORT = Effort(relative_width=0.1, box_s=0.02, fewest=5, most=40)
BEST, CONFIDENCE = 4, 0.95

Cell = tuple[str, Scenario, int]  # setting, scenario, round


def is_setting(bench: Workbench, scenario: Scenario, choice: Choice) -> bool:
    if choice == DEFAULT:
        return False
    algorithm = bench.catalogue.algorithm(scenario.collective, choice)
    chosen = dict(choice.parameters)
    chunked = any(one.name == CHUNK and chosen.get(CHUNK, one.default) != one.default for one in algorithm.parameters)
    return chunked or any(one.name in chosen for one in algorithm.settings)


def measure(bench: Workbench, points: Sequence[Point], seed: int, variables: Mapping[str, str]) -> dict[Scenario, dict]:
    """The time of each choice in a fresh launch; what did not run is left out."""
    source = bench.launch(seed, variables)
    try:
        found: dict[Scenario, dict] = {}
        for point, samples in source.measure(points, EFFORT):
            times = {sample.choice: sample.time_s for sample in samples if sample.status is Status.OK}
            found.setdefault(point.scenario, {}).update(times)
        return found
    finally:
        source.close()


def best_by_others(rounds: Mapping[int, Mapping[Choice, float]], own: int, allowed: Sequence[Choice]) -> Choice | None:
    """The fastest of ``allowed`` by all rounds but ``own``."""
    others = [times for number, times in rounds.items() if number != own]
    if not others:
        return None
    known = [choice for choice in allowed if all(choice in times for times in others) and choice in rounds[own]]
    return min(known, key=lambda choice: median(times[choice] for times in others), default=None)


def gains(
    base: Mapping[int, Mapping[Choice, float]],
    other: Mapping[int, Mapping[Choice, float]],
    algorithms: Sequence[Choice],
    candidates: Sequence[Choice],
) -> list[float]:
    """Best algorithm over best candidate, for each round that both have."""
    found = []
    for number in sorted(base.keys() & other.keys()):
        plain = best_by_others(base, number, algorithms)
        set_ = best_by_others(other, number, candidates)
        if plain is not None and set_ is not None:
            found.append(base[number][plain] / other[number][set_])
    return found


def inside(options: argparse.Namespace) -> None:
    bench = open_workbench(
        MachineOptions(host_file=Path(options.hosts), nodes=options.nodes, ppn=options.ppn), os.environ
    )
    end_s = time.monotonic() + 60 * options.minutes
    scenarios = [
        Scenario(name, options.nodes, options.ppn, size) for name in options.collectives for size in options.sizes
    ]
    legal = {one: bench.catalogue.legal(one, beside=True) for one in scenarios}
    plain = {one: [c for c in legal[one] if not is_setting(bench, one, c)] for one in scenarios}
    screened = measure(bench, [Point(one, tuple(plain[one])) for one in scenarios], 0, {})
    print(f"{sum(map(len, plain.values()))} choices screened, {end_s - time.monotonic():.0f} s left", flush=True)
    points, algorithms, beside = [], {}, {}
    for one in scenarios:
        times = screened.get(one, {})
        first = sorted(times, key=times.__getitem__)[:BEST]
        algorithms[one] = list(dict.fromkeys([DEFAULT, *first]))
        beside[one] = [c for c in legal[one] if is_setting(bench, one, c)]
        points.append(Point(one, tuple(algorithms[one] + beside[one])))
    order, taken = random.Random(1), {}
    results: dict[str, dict[Scenario, dict[int, dict[Choice, float]]]] = {}
    launch = 0
    longest_s = 0.0
    for number in range(1000):
        names = [AS_IT_IS, *options.settings]
        order.shuffle(names)
        began_s = time.monotonic()
        if began_s + longest_s > end_s:
            break
        for name in names:
            launch += 1
            launched_s = time.monotonic()
            for scenario, times in measure(bench, points, launch, SETTINGS.get(name, {})).items():
                results.setdefault(name, {}).setdefault(scenario, {})[number] = times
            print(f"  {name}: {time.monotonic() - launched_s:.0f} s", flush=True)
        longest_s = max(longest_s, time.monotonic() - began_s)
        taken[number] = time.monotonic() - began_s
        print(f"round {number}: {taken[number]:.0f} s", flush=True)
    rows = []
    for one in scenarios:
        base = results[AS_IT_IS].get(one, {})
        for name in (ALGORITHM, BESIDE, *options.settings):
            if name == ALGORITHM:
                found = gains(base, base, [DEFAULT], algorithms[one])
            elif name == BESIDE:
                found = gains(base, base, algorithms[one], beside[one])
            else:
                found = gains(base, results[name].get(one, {}), algorithms[one], algorithms[one])
            if found:
                bounds = lower_bound(found, CONFIDENCE), upper_bound(found, CONFIDENCE)
                rows.append([name, one.collective, one.size_bytes, median(found), *bounds, len(found)])
    figures: dict[str, float] = {"rounds": len(taken)}
    for name, collective, size, gain, low, high, many in rows:
        print(f"{name:38} {collective:10} {size:8} {gain:6.3f} ({low:.3f} to {high:.3f}) {many}")
        figures |= {f"{name} {collective} {size} {part}": value for part, value in (("gain", gain), ("low", low))}
    for one in scenarios:
        rounds = results[AS_IT_IS].get(one, {})
        for choice in (*algorithms[one], *beside[one]):
            if rounds and all(choice in times for times in rounds.values()):
                time_us = 1e6 * median(times[choice] for times in rounds.values())
                print(f"  {one.collective:10} {one.size_bytes:8} {choice!s:50} {time_us:10.1f} us")
    target = ROOT / "bench" / "settings.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(figures, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--ppn", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--collectives", nargs="*", default=COLLECTIVES)
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES, help="bytes")
    parser.add_argument("--settings", nargs="*", help="of the whole process, by their names; all that can be compared")
    parser.add_argument("--hosts", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.settings is None:
        enough = (os.cpu_count() or 1) >= options.nodes * options.ppn
        options.settings = [name for name in SETTINGS if enough or name not in SLEEPING]
    if options.hosts:
        inside(options)
        return
    if (reason := why_not()) is not None:
        sys.exit(f"no cluster of namespaces here: {reason}")
    with tempfile.TemporaryDirectory() as place, namespace_cluster(Path(place) / "cluster", options.nodes) as cluster:
        environment = {**os.environ, **cluster.environment, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
        arguments = ["--nodes", str(options.nodes), "--ppn", str(options.ppn), "--minutes", str(options.minutes)]
        arguments += ["--collectives", *options.collectives, "--settings", *options.settings]
        arguments += ["--sizes", *map(str, options.sizes)]
        command = [sys.executable, "-u", __file__, *arguments, "--hosts", str(cluster.host_file(options.ppn))]
        sys.exit(subprocess.run(cluster.inside(*command), env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
