"""Whether a tuning beside other programs proves what is false, and whether a calm one still proves what is true.

    python benchmarks/bench_busy.py [--tunings 10] [--budget 60s] [--loads calm spin1 ...] [--collectives bcast ...]
                                    [--mpiexec PATH] [--place build/busy] [--until HOURS]
                                    [--stage tune|judge|loop|all]

On 2 ranks of this machine, `colltune tune` makes so many tunings of each collective up to 1 MiB beside each load:
nothing, 1, 2 and 4 spinning processes, and bursts of a compiler and a memory copier. Beside nothing it makes as many
more that do not look at what else runs (COLLTUNE_BUSY=accept), and of one collective more, of which more rules come.
Then every rule is judged on the calm machine: by `verify`, and by a plain loop of MPI calls
(benchmarks/native/plain_loop.c), whose launches with the files and without take turns.

A rule is false where either finds a call of it slower, by more than 3% and beyond a 99% interval; what the loop finds
slower it has to find again, by three times as many launches. ``false_rules``: their number. ``calm_kept``: the calls
that rules change in the calm tunings that look, over those in the tunings that do not.

At last benchmarks/against_loop.py compares `verify` with plain loops on both libraries (``verify_against_loop``).

Everything is kept in --place after each tuning and each judgement, so that the same command goes on where it was ended.
A judgement that the machine disturbed is made again, and so is a tuning beside nothing if something ran before or after
it. The machine must do nothing else; the benchmark ends only what it started.
A tuning takes up to its budget, the judgement of one with rules a minute or two, and the plain loops 40 minutes: the
whole is two to four hours. A slice: --tunings 1 --budget 40s.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from against_loop import plain_loop, seconds
from busy_loads import LOADS, beside
from colltune.bench.workbench import MachineOptions, Workbench, open_workbench
from colltune.core.disturbance import ACCEPT, VARIABLE
from colltune.core.interval import Interval, SpeedVerdict
from colltune.core.proven import Verdict
from colltune.core.sample import DEFAULT, Scenario
from colltune.judge.verdict import ratio_interval, verdict_of
from colltune.session.compare import verify
from colltune.store.tuning import Tuning, load_tuning
from harness import ROOT, known_figures, options_of, write_figures

BLIND = "calm-blind"  # a calm machine, and nobody looks
CALM_TOO = ("alltoall",)  # tuned beside nothing only
IDLE_SHARE, IDLE_S = 0.9, 0.5  # of the processors, and how long that is looked at
RANKS, LAUNCHES, SECONDS = 2, 8, 0.3
MOST_SCENARIOS = 6  # of one tuning that the plain loop judges
PATIENCE_S = 1800.0


@dataclass(frozen=True)
class Run:
    """One tuning: ``load`` beside it, BLIND without the detector."""

    load: str
    collective: str
    number: int

    @property
    def name(self) -> str:
        return f"{self.load}-{self.collective}-{self.number}"


def runs(arguments: argparse.Namespace) -> Iterator[Run]:
    """In rounds, so that whatever was made when it is ended is of all loads alike."""
    loads = [*arguments.loads, *([BLIND] if "calm" in arguments.loads else [])]
    for number in range(arguments.tunings):
        for load in loads:
            for collective in (*arguments.collectives, *(CALM_TOO if load in ("calm", BLIND) else ())):
                yield Run(load, collective, number)


def is_idle() -> bool:
    """Whether this machine does nothing, by all its processors together."""

    def read() -> list[int]:
        return [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]

    before = read()
    time.sleep(IDLE_S)
    passed = [now - then for now, then in zip(read(), before, strict=True)]
    return passed[3] + passed[4] >= IDLE_SHARE * sum(passed)


def environment_of(run: Run) -> dict[str, str]:
    found = {name: value for name, value in os.environ.items() if name != VARIABLE}
    return {**found, VARIABLE: ACCEPT} if run.load == BLIND else found


def make(run: Run, out: Path, budget: str, mpiexec: str | None) -> bool:
    """False where something else ran that should not."""
    alone = run.load in ("calm", BLIND)
    if alone and not is_idle():
        return False
    words = ["tune", run.collective, "--max-size", "1MiB", "--ppn", str(RANKS), "--seed", str(run.number + 1)]
    words += ["--budget", budget, "--out", str(out), *(["--mpiexec", mpiexec] if mpiexec else [])]
    with beside("calm" if run.load == BLIND else run.load), (out.parent / f"{run.name}.log").open("w") as log:
        time.sleep(1.0)
        command = [sys.executable, "-m", "colltune", *words]
        subprocess.run(
            command, env=environment_of(run), stdout=log, stderr=subprocess.STDOUT, check=True, timeout=PATIENCE_S
        )
    return not alone or is_idle()


def changed(tuning: Tuning) -> list[Scenario]:
    """The calls that its rules change."""
    kept = {one.scenario for one in tuning.summary.having(Verdict.KEPT)}
    return sorted(s for s in kept if tuning.rule_sets[s.collective].evaluate(s) != DEFAULT)


def judge(out: Path, bench: Workbench, loop: Path, mpiexec: str | None) -> dict[str, Any] | None:
    """What `verify` and the plain loop find slower on a calm machine; None where that was not calm."""
    tuning = load_tuning(out)
    mine = changed(tuning)
    if not mine:
        return {"slower_by_verify": [], "slower_by_loop": [], "loop": {}}
    found = verify(out, MachineOptions(mpiexec=mpiexec, ppn=RANKS), launches=LAUNCHES)
    if found.disturbance.is_busy:
        return None
    slower = [str(one.scenario) for one in found.slower if one.choice != DEFAULT]
    step = max(1, -(-len(mine) // MOST_SCENARIOS))
    looped = {str(s): twice_in_loop(tuning, out, s, bench, loop) for s in {*mine[::step], mine[-1]}}
    # By another program nobody sees what disturbed it: the machine is looked at before and after.
    return {
        "slower_by_verify": slower,
        "slower_by_loop": [name for name, speedup in looped.items() if _slower(speedup)],
        "loop": {name: [round(value, 4) for value in astuple(speedup)] for name, speedup in looped.items()},
    }


def _slower(speedup: Interval) -> bool:
    return verdict_of(speedup) is SpeedVerdict.SLOWER


def twice_in_loop(tuning: Tuning, out: Path, scenario: Scenario, bench: Workbench, loop: Path) -> Interval:
    """As ``in_loop``; what looks slower is looked at anew, by more launches: of hundreds of intervals some miss."""
    found = in_loop(tuning, out, scenario, bench, loop, LAUNCHES)
    return in_loop(tuning, out, scenario, bench, loop, 3 * LAUNCHES) if _slower(found) else found


def in_loop(tuning: Tuning, out: Path, scenario: Scenario, bench: Workbench, loop: Path, launches: int) -> Interval:
    """The ratio of default over tuned in the plain loop, and its interval, by launches of each in random turns."""
    draw = random.Random(str(scenario))
    times: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(launches):
        for tuned in draw.sample((True, False), 2):
            variables: Mapping[str, str] = tuning.variables_at(out) if tuned else {}
            times[tuned].append(seconds(bench, loop, scenario, variables, SECONDS)[0])
    return ratio_interval(times[False], times[True])


def figures(found: Mapping[str, Mapping[str, Any]]) -> dict[str, float | int]:
    """``found``: by the name of the run, how many calls its rules change and, once judged, what is slower."""
    by_load: dict[str, list[Mapping[str, Any]]] = {}
    for name, one in found.items():
        by_load.setdefault(name.rsplit("-", 2)[0], []).append(one)
    told: dict[str, float | int] = {}
    for load, mine in by_load.items():
        key = load.replace("-", "_")
        judged = [one["judged"] for one in mine if "judged" in one]
        told |= {
            f"tunings_{key}": len(mine),
            f"changed_{key}": sum(one["changed"] for one in mine),
            f"judged_{key}": len(judged),
            f"false_{key}": sum(_false(one) for one in judged),
        }
    told["false_rules"] = sum(int(told[f"false_{name.replace('-', '_')}"]) for name in by_load if name != BLIND)
    blind = told.get("changed_calm_blind", 0)
    if blind:
        told["calm_kept"] = round(told.get("changed_calm", 0) / blind, 3)
    return told


def _false(judged: Mapping[str, Any]) -> int:
    return len({*judged["slower_by_verify"], *judged["slower_by_loop"]})


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--tunings", type=int, default=10)
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--loads", nargs="+", choices=LOADS, default=list(LOADS))
    parser.add_argument("--collectives", nargs="+", default=["bcast", "allreduce"])
    parser.add_argument("--mpiexec")
    parser.add_argument("--place", type=Path, default=ROOT / "build" / "busy")
    parser.add_argument("--until", type=float, default=24.0, help="hours after which no further step is begun")
    parser.add_argument("--stage", choices=("tune", "judge", "loop", "all"), default="all")
    arguments = parser.parse_args()
    arguments.place.mkdir(parents=True, exist_ok=True)
    record, until_s = arguments.place / "found.json", time.monotonic() + 3600.0 * arguments.until
    found: dict[str, dict[str, Any]] = json.loads(record.read_text()) if record.exists() else {}

    def keep() -> None:
        new = record.with_suffix(".new")
        new.write_text(json.dumps(found, indent=1))
        new.replace(record)
        write_figures("busy", {**known_figures("busy"), **figures(found)}, is_shown=False)  # those of others stay

    bench = open_workbench(MachineOptions(mpiexec=arguments.mpiexec, ppn=RANKS), os.environ)
    loop = plain_loop(bench, arguments.place)
    for run in runs(arguments) if arguments.stage in ("tune", "all") else ():
        while run.name not in found and time.monotonic() < until_s:
            out = arguments.place / run.name
            if not make(run, out, arguments.budget, arguments.mpiexec):
                print(f"{run.name}: the machine is not calm; tuned again", file=sys.stderr, flush=True)
                time.sleep(2.0)
                continue
            tuning = load_tuning(out)
            text = tuning.summary.disturbed_text
            found[run.name] = {"changed": len(changed(tuning)), "said": text, "took_s": tuning.summary.total_s}
            print(run.name, found[run.name], file=sys.stderr, flush=True)
            keep()
    for name, one in found.items() if arguments.stage in ("judge", "all") else ():
        while "judged" not in one and time.monotonic() < until_s:
            judged = judge(arguments.place / name, bench, loop, arguments.mpiexec)
            if judged is None:
                print(f"{name}: the machine is not calm; judged again in a minute", file=sys.stderr, flush=True)
                time.sleep(60.0)
                continue
            one["judged"] = judged
            print(name, judged, file=sys.stderr, flush=True)
            keep()
    if arguments.stage in ("loop", "all"):
        left_h = max(until_s - time.monotonic(), 0.0) / 3600.0
        command = [sys.executable, str(ROOT / "benchmarks" / "against_loop.py")]
        subprocess.run([*command, "--place", str(arguments.place), "--until", str(left_h)], check=True)
    print(json.dumps(figures(found), indent=1))


if __name__ == "__main__":
    main()
