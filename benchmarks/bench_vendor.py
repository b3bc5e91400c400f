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
tells the mean over repetitions of the slowest rank. The ceiling: in launches of its own, each number of I_MPI_ADJUST_X
that the catalogue knows, of each size another one from launch to launch; what is fastest in one half of all launches,
the default among it, is judged in the other half, and the other way round.

Writes bench/intel.json, each figure with the shape in its name, and those of the first shape without. ``geomean``,
``low``: default over ours and its lower 99% bound, of all points and by collective. ``slower``: points where ours is
surely slower. ``against_auto``, ``against_mpitune_fast``: theirs over ours; ``auto``, ``fast``: default over theirs.
``auto_changes``, ``fast_changes``: 0 where its table decides these calls as the library's own does.
``ceiling``, and ``captured`` of its logarithm. ``tuning_s``, ``auto_s``, ``fast_s``: what each took. ``launches``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median

from colltune.catalog import Catalogue, load
from colltune.core.errors import InputError
from colltune.core.interval import SpeedVerdict
from colltune.core.sample import DEFAULT, Scenario
from colltune.emit.intelmpi import Presets, collectives_in, read_table, steps_of
from colltune.emit.intelmpi import asked as asked_of
from colltune.judge.verdict import Comparison, compare_all, mean_speedup
from colltune.machine.benchmark_output import parse_output
from colltune.mpi.detect import find_mpi
from colltune.store.tuning import load_tuning
from on_cluster import ROOT, NamespaceCluster, namespace_cluster, require_namespaces

COLLECTIVES = ("allreduce", "alltoall", "allgather", "bcast")
SIZES = tuple(1 << exponent for exponent in range(3, 15))
EXPONENTS = ("-msglog", "3:14")
# As many repetitions of each size as are asked for, and no fewer where they take long.
AS_MANY = ("-iter_policy", "off", "-time", "1000")
KEPT = Path("bench/vendor").absolute()
TABLE, DUMP = "I_MPI_TUNING_BIN", "I_MPI_TUNING_BIN_DUMP"
CALIBRATION, SEARCHED = 40, 400  # iterations: of a first look at its cost, and those in which the autotuner ends
# A launch of the benchmark that takes longer hangs.
PATIENCE_S = 180.0
Times = Mapping[Scenario, float]


@dataclass
class Place:
    """Where the jobs of ``shape`` run. ``words`` name the nodes for mpiexec, ``where`` for colltune."""

    mpiexec: Path
    shape: str
    directory: Path
    environment: Mapping[str, str]
    cluster: NamespaceCluster | None = None
    words: Sequence[str] = ()
    where: Sequence[str] = ()
    record: dict[str, dict[str, object]] = field(default_factory=dict)

    @property
    def nodes_ppn(self) -> tuple[int, int]:
        nodes, ppn = map(int, self.shape.split("x"))
        return nodes, ppn

    def benchmark(self, iterations: int) -> list[str]:
        """The command of the judge."""
        nodes, ppn = self.nodes_ppn
        ranks = str(nodes * ppn)
        job = [str(self.mpiexec), *self.words, "-n", ranks, "-ppn", str(ppn)]
        judge = [str(self.mpiexec.with_name("IMB-MPI1")), "-npmin", ranks, "-sync", "on", "-iter", str(iterations)]
        return [*job, *judge, *AS_MANY, *EXPONENTS, *COLLECTIVES]

    def run(self, command: Sequence[str], patience_s: float, **variables: str) -> str:
        """What ``command`` prints. Raises subprocess.SubprocessError where it fails or does not end."""
        inside = self.cluster.inside(*command) if self.cluster is not None else list(command)
        with subprocess.Popen(
            inside, env={**self.environment, **variables}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, cwd=self.directory,
        ) as process:  # fmt: skip
            try:
                printed, _ = process.communicate(timeout=patience_s)
            except BaseException:
                process.terminate()
                raise
        if process.returncode != 0:
            print(printed[-2000:], file=sys.stderr)
            raise subprocess.CalledProcessError(process.returncode, command[:4], printed)
        return printed

    def launched(self, key: str, iterations: int, **variables: str) -> Times:
        """Seconds of each call in the launch ``key``, which is made unless it is known; none where it failed."""
        if key not in self.record:
            began_s = time.monotonic()
            try:
                printed = self.run(self.benchmark(iterations), PATIENCE_S, **variables)
                found = parse_output(printed.encode(), Path("IMB-MPI1"), self.nodes_ppn).times_s
                times = {f"{s.collective} {s.size_bytes}": values[0] for (s, _), values in found.items()}
            except (subprocess.SubprocessError, InputError) as error:
                print(f"{key}: {error}", file=sys.stderr)
                times = {}
            self.keep(key, {"times_s": times, "took_s": time.monotonic() - began_s})
            print(f"{self.shape} {key}: {self.record[key]['took_s']:.1f} s", flush=True)
        nodes, ppn = self.nodes_ppn
        times_s = self.record[key]["times_s"]
        assert isinstance(times_s, dict)
        called = (name.split() for name in times_s)
        every = {Scenario(name, nodes, ppn, int(size)): times_s[f"{name} {size}"] for name, size in called}
        return {scenario: time_s for scenario, time_s in every.items() if scenario.size_bytes in SIZES}

    def keep(self, key: str, value: dict[str, object]) -> None:
        self.record[key] = value
        with (self.directory / "launches.jsonl").open("a") as file:
            file.write(json.dumps({key: value}) + "\n")

    def timed(self, key: str, made: Path) -> float | None:
        """Seconds that the tuning ``key`` took, where it was made already."""
        return self.record[key]["took_s"] if key in self.record and made.exists() else None  # type: ignore[return-value]


@contextmanager
def place_of(shape: str, mpiexec: Path) -> Iterator[Place]:
    """Raises InputError where there is no such MPI."""
    root, nodes = mpiexec.resolve().parents[1], int(shape.partition("x")[0])
    kept = KEPT / shape
    kept.mkdir(parents=True, exist_ok=True)
    record: dict[str, dict[str, object]] = {}
    path = kept / "launches.jsonl"
    for line in path.read_text().splitlines() if path.exists() else ():
        with suppress(json.JSONDecodeError):  # one that was cut off
            record |= json.loads(line)
    library = ":".join(filter(None, (str(root / "lib"), os.environ.get("LD_LIBRARY_PATH", ""))))
    theirs = {"I_MPI_ROOT": str(root), "LD_LIBRARY_PATH": library, "FI_PROVIDER_PATH": str(root / "lib")}
    own = {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "PATH": f"{mpiexec.parent}:{os.environ['PATH']}"}
    environment = {**os.environ, **theirs, **own}
    if nodes == 1:
        environment |= {"I_MPI_FABRICS": "shm", "I_MPI_THREAD_YIELD": "2", "I_MPI_WAIT_MODE": "0"}
        environment |= {"I_MPI_SPIN_COUNT": "1", "I_MPI_PAUSE_COUNT": "0"}
        yield Place(mpiexec, shape, kept, environment, None, (), ("--ppn", shape.partition("x")[2]), record)
        return
    require_namespaces()
    with tempfile.TemporaryDirectory() as name, namespace_cluster(Path(name) / "cluster", nodes) as cluster:
        hosts = str(cluster.host_file(int(shape.partition("x")[2])))
        there = {**environment, **cluster.environment}
        yield Place(mpiexec, shape, kept, there, cluster, ("-f", hosts), ("--hostfile", hosts), record)


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


def is_changed(place: Place, catalogue: Catalogue, table: str) -> bool:
    """Whether the library decides these calls otherwise with ``table`` than by itself, for ranks of this shape."""
    own, named = place.directory / "own.dat", place.directory / "named.dat"
    variables, bounds = asked_of(catalogue)
    for path, more in ((own, {}), (named, variables)):
        if not path.exists():
            place.run(place.benchmark(1), PATIENCE_S, **{DUMP: str(path), **more})
    numbers = Presets.of(own.read_bytes(), named.read_bytes(), bounds).numbers
    nodes, ppn = place.nodes_ppn
    before, after = (collectives_in(read_table(path.read_bytes())) for path in (own, Path(table)))
    both = ([steps_of(some[numbers[name]]).at(ppn).at(nodes * ppn) for some in (before, after)] for name in COLLECTIVES)
    return any(one != other for one, other in both)


def numbers_of(catalogue: Catalogue, name: str) -> list[int]:
    return [one.number for one in catalogue.collective(name).algorithms if one.candidate and one.number is not None]


def squared(catalogue: Catalogue, launch: int) -> tuple[dict[str, str], dict[tuple[str, int], int]]:
    """Variables under which each size of each collective has one of its numbers, another one from launch to launch."""
    variables, chosen = {}, {}
    for name in COLLECTIVES:
        numbers = numbers_of(catalogue, name)
        for place, size in enumerate(SIZES):
            chosen[name, size] = numbers[(launch + place) % len(numbers)]
        ranges = [f"{chosen[name, size]}:{size // 2 + 1}-{size}" for size in SIZES]
        variables[f"{catalogue.prefix}{name.upper()}"] = ";".join(ranges)
    return variables, chosen


def ceiling(place: Place, catalogue: Catalogue, iterations: int, until_s: float) -> float | None:
    """The mean logarithm of default over the fastest choice; None where there were not two launches of each."""
    columns = max(len(numbers_of(catalogue, name)) for name in COLLECTIVES)
    found: list[dict[tuple[Scenario, int], list[float]]] = [{} for _ in range(2)]
    for turn in range(2):
        for launch in range(columns):
            key = f"choices {turn} {launch}"
            if key not in place.record and time.monotonic() > until_s:
                return None
            variables, chosen = squared(catalogue, launch)
            for scenario, time_s in place.launched(key, iterations, **variables).items():
                at = scenario, chosen[scenario.collective, scenario.size_bytes]
                found[turn].setdefault(at, []).append(time_s)
            usual = place.launched(f"usual {turn} {launch}", iterations) if launch % 4 == 0 else {}
            for scenario, time_s in usual.items():
                found[turn].setdefault((scenario, 0), []).append(time_s)
    logs = [{at: fmean(map(math.log, times)) for at, times in half.items()} for half in found]
    gains = []
    for chosen_by, paid in (logs, logs[::-1]):
        for scenario in sorted({scenario for scenario, number in paid if number == 0}):
            both = [number for (one, number) in chosen_by if one == scenario and (one, number) in paid]
            best = min(both, key=lambda number, s=scenario: chosen_by[s, number], default=0)  # type: ignore[misc]
            gains.append(paid[scenario, 0] - paid[scenario, best])
    return fmean(gains) if gains else None


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
    changed = {kind: to for kind, to in theirs.items() if to is not None and is_changed(place, catalogue, to[TABLE])}
    kinds |= changed
    # What is left: most of it is for the comparison, which is to hold for every point.
    left_s = until_s - time.monotonic()
    times = judged(place, kinds, asked.rounds, asked.iterations, time.monotonic() + 0.6 * left_s)
    # Most choices take ten times as long as the default here.
    best = ceiling(place, catalogue, max(asked.iterations // 5, 10), until_s)
    shape = place.shape
    made = figures_of(place, times) if median(map(len, times["ours"].values() or [[]])) > 1 else {}
    made |= {f"{kind}_changes_{shape}": int(kind in changed) for kind in theirs}
    made |= {f"tuning_s_{shape}": round(ours_s), f"auto_s_{shape}": round(auto_s), f"fast_s_{shape}": round(fast_s)}
    made[f"launches_{shape}"] = len(place.record)
    if best is not None:
        made[f"ceiling_{shape}"] = round(math.exp(best), 3)
        if best > 0.0 and f"geomean_{shape}" in made:
            made[f"captured_{shape}"] = round(math.log(made[f"geomean_{shape}"]) / best, 3)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
        target = KEPT.with_name("intel.json")
        target.write_text(json.dumps(made, indent=2) + "\n")
    print(json.dumps(made, indent=2), flush=True)


if __name__ == "__main__":
    main()
