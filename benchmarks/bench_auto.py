"""What `colltune run --auto` gains of what `tune --profile` gains, and what trying costs, in programs of examples/.

    python benchmarks/bench_auto.py [--only fft_transpose,sample_sort,path_finding] [--where 4x2,1x2] [--runs 10]
        [--run-s 60] [--rounds 5] [--budget 2m] [--mpi mpich] [--slow 20mbit]

On network namespaces (4x2; needs root and iproute2) or with 2 ranks on this machine (1x2), nothing else running. Each
program runs so often by `run --auto`, with a directory that does not exist before. Then it is tuned by its profile
(`tune --profile`), and runs in turns, in random order: by default, under that tuning, and by `run --auto` once more.
The programs time their loops themselves, and check their results. In short runs (``--run-s 1.5 --runs 100``) what is
tried is what all of them together have earned: an algorithm of a kind of calls takes 5,000 to 40,000 calls in all runs
(docs/design/switchback.md). ``--slow``: at the end every link of the cluster gets
this rate, as one that turned bad, and the program runs in turns again, three of each: its rules may be bad by then.

Writes bench/auto.json, for each program and over all: ``auto_captured``, what the last runs save over what the tuning
saves, by the means of the turns (null where the tuning saves nothing); ``auto_lost``, the share of the time of the
first runs that went to trying and agreeing, as the runs themselves count it; ``calls`` that these made in kinds
that were tried, and ``pairs`` of blocks there; and the line that each run ended with.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean

from applications import ROOT, Application, layout
from colltune.prove.in_run.in_application import cost_s
from colltune.store.applications import application_runs
from colltune.store.tuning import load_tuning

TARGET = Path("bench") / "auto.json"
# Arguments before the number of steps, and what the programs print: seconds of one step.
PROGRAMS: dict[str, tuple[list[str], str]] = {
    "solver": (["1000"], r"step_s (\S+)"),
    "fft_transpose": (["64"], r"step_s (\S+)"),
    "sample_sort": (["2000", "uniform"], r"step_s (\S+)"),
    "path_finding": (["random", "200"], r"total_s (\S+)"),
}


@dataclass
class Found:
    """Seconds of a run's loop. ``lines``: what the runs said."""

    program: str
    where: str
    auto_s: list[float] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    lost: float = 0.0
    calls: int = 0
    pairs: int = 0
    default_s: list[float] = field(default_factory=list)
    tuned_s: list[float] = field(default_factory=list)
    later_s: list[float] = field(default_factory=list)
    auto_captured: float | None = None
    tuning: str = ""
    slowed: list[dict[str, float]] = field(default_factory=list)

    def judge(self) -> None:
        base_s = fmean(self.default_s)
        if self.tuned_s and base_s > fmean(self.tuned_s):
            self.auto_captured = (base_s - fmean(self.later_s)) / (base_s - fmean(self.tuned_s))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="fft_transpose,sample_sort,path_finding")
    parser.add_argument("--where", default="4x2")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--run-s", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", default="2m")
    parser.add_argument("--mpi", default="mpich", choices=["mpich", "openmpi"])
    parser.add_argument("--slow", default="")
    options = parser.parse_args()
    TARGET.parent.mkdir(exist_ok=True)
    found: list[Found] = []
    for where in options.where.split(","):
        with tempfile.TemporaryDirectory() as name, programs(Path(name), where, options.mpi) as there:
            for program in (one for one in options.only.split(",") if one in there):
                found.append(tried(there[program], program, options))
                write(found)
    write(found)


@contextmanager
def programs(place: Path, where: str, mpi: str) -> Iterator[dict[str, Application]]:
    """The programs of examples/, compiled, where they run."""
    tools, made = ROOT / (".venv" if mpi == "mpich" else ".venv-openmpi") / "bin", dict[str, Application]()
    with layout(place, where, mpi, str(tools / "mpiexec")) as there:
        for name, (arguments, time) in PROGRAMS.items():
            source, target = str(ROOT / "examples" / f"{name}.c"), str(place / name)
            subprocess.run([str(tools / "mpicc"), "-O2", source, "-lm", "-o", target], check=True)
            job = [*there.job, target, *arguments]
            made[name] = Application(name, where, job, time, place, there.tune, there.cluster, there.variables)
        yield made


def steps_for(one: Application, run_s: float) -> int:
    """So many that the loop takes ``run_s``: by a run of 20 steps, and then by one of a second."""
    steps = 20
    for aim_s in (1.0, run_s):
        step_s = loop_s(one, one.run([*one.job, str(steps)]))
        steps = max(round(aim_s / max(step_s, 1e-7)), 20)
    return steps


def loop_s(one: Application, done: tuple[float, str]) -> float:
    """Seconds of a step, as the program printed them."""
    assert one.time is not None
    match = re.search(one.time, done[1])
    assert match is not None, done[1]
    return float(match.group(1))


def tuning_of(one: Application, budget: str) -> tuple[Path | None, str]:
    """A directory with rules for what the program calls, and what they are worth; None where nothing looks faster."""
    profile = one.directory / f"{one.name}.json"
    one.colltune("profile", "--out", str(profile), "--mpiexec", one.tune[1], "--", *one.job)
    for status, gate in (("proven", []), ("not proven", ["--gate", "off"])):
        out = one.directory / f"{one.name}-{len(gate)}"
        words = ["--profile", str(profile), "--runtime", "100h", "--budget", budget, "--out", str(out), *gate]
        try:
            one.colltune("tune", *words, *one.tune)
        except RuntimeError as error:
            print(error, file=sys.stderr)
            continue
        live = load_tuning(out).live or {}
        if any(rules.departs for rules in live.values()):
            return out, f"{', '.join(sorted(live))}: {status}"
    return None, "none: nothing looks faster"


def tried(one: Application, program: str, options: argparse.Namespace) -> Found:
    steps = steps_for(one, options.run_s)
    # Once more: the first steps of a program are the slowest.
    steps = round(options.run_s / loop_s(one, one.run([*one.job, str(steps)])))
    one.job = [*one.job, str(steps)]
    memory, found = one.directory / f"auto-{program}", Found(program, one.where)
    shutil.rmtree(memory, ignore_errors=True)
    for _ in range(options.runs):
        found.auto_s.append(steps * by_auto(one, memory, found.lines))
    found.lost, found.calls, found.pairs = lost(memory)
    tuned, found.tuning = tuning_of(one, options.budget)
    order = random.Random(1)
    ways: dict[str, Callable[[], float]] = {
        "default": lambda: steps * loop_s(one, one.run(one.job)),
        "auto": lambda: steps * by_auto(one, memory, found.lines),
    }
    if tuned is not None:
        ways["tuned"] = lambda: steps * loop_s(one, one.colltune("run", "--via", "live", str(tuned), "--", *one.job))
    kept = {"default": found.default_s, "auto": found.later_s, "tuned": found.tuned_s}
    for _ in range(options.rounds):
        for way in order.sample(list(ways), len(ways)):
            kept[way].append(ways[way]())
    found.judge()
    if options.slow and one.cluster is not None:
        one.cluster.set_rate(options.slow)
        found.slowed = [{way: run() for way, run in ways.items()} for _ in range(3)]
    return found


def by_auto(one: Application, memory: Path, lines: list[str]) -> float:
    """Seconds of a step; the line that the run ended with goes to ``lines``."""
    said = Path(f"{memory}.log")
    words = ["bash", "-c", 'log=$1; shift; exec "$@" 2> "$log"', "auto", str(said), sys.executable, "-m", "colltune"]
    done = one.run([*words, "run", "--auto", str(memory), "--", *one.job])
    lines += [line for line in said.read_text().splitlines() if line.startswith("colltune:")]
    print("\n".join(lines[-1:]), file=sys.stderr, flush=True)
    return loop_s(one, done)


def lost(memory: Path) -> tuple[float, int, int]:
    """Of the time of all runs, what trying cost; the calls of the kinds that were tried; and the pairs of blocks."""
    runs = application_runs(memory)
    jobs = [(run, job) for run in runs for job in run.jobs]
    tried = [(job, cell) for run, job in jobs for cell in job.cells if run.record.is_candidate(cell)]
    whole_s = sum(cost_s([cell]) * cell.ranks / job.ranks for job, cell in tried)
    calls = sum(cell.tuned_calls + cell.default_calls for _, cell in tried)
    return whole_s / max(sum(job.elapsed_s for _, job in jobs), 1e-9), calls, sum(len(cell.pairs) for _, cell in tried)


def write(found: list[Found]) -> None:
    if not found:
        return
    known = [one.auto_captured for one in found if one.auto_captured is not None]
    shared = {
        "auto_captured": round(fmean(known), 3) if known else None,
        "auto_lost": round(max(one.lost for one in found), 5),
        "programs": len(found),
    }
    TARGET.write_text(json.dumps({**shared, "each": [asdict(one) for one in found]}, indent=1) + "\n")
    print(json.dumps(shared))
    for one in found:
        means = [f"{fmean(some):.3g} s" if some else "-" for some in (one.default_s, one.tuned_s, one.later_s)]
        print(f"{one.program} {one.where}: default {means[0]}, tuned {means[1]}, auto {means[2]}; {one.lost:.3%} lost")


if __name__ == "__main__":
    main()
