"""Makes again what docs/results.md says, as far as two cores can in an hour, and says what was left out and why.

    python benchmarks/artifact.py [--only STEP ...] [--list]

Runs the steps below one after another, each in a time of its own: 58 minutes together at most. A step that is not done
by then is ended, with all that it started, and counts as cut off. Sizes are smaller than those behind the tables (fewer
seeds, regions, entries), so figures scatter more; the machine must do nothing else. Writes bench/artifact.md, a row for
each row of docs/results.md with what it was made by, and bench/artifact.json, the outcome of each step. Each step
leaves its figures in the file that the table names. A step with "root" makes network namespaces (iproute2, gcc).
``--list`` prints the table and runs nothing. Exit code 0: all that ran ended well.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "results.md"
MOST_MINUTES = 60.0


@dataclass(frozen=True)
class Step:
    """``command``: words after ``python``, or of ``colltune``. ``writes``: relative to the repository."""

    command: str
    writes: str
    minutes: float

    @property
    def words(self) -> list[str]:
        first, *rest = self.command.split()
        return [sys.executable, "-m", "colltune", *rest] if first == "colltune" else [sys.executable, first, *rest]


STEPS = {
    "tune": Step(
        "colltune tune bcast allreduce alltoall allgather reduce reduce_scatter --max-size 1MiB --budget 2m"
        " --out bench/artifact-tuned",
        "bench/artifact-tuned/tuning.json",
        3,
    ),
    "backends": Step("benchmarks/bench_backends.py 90", "bench/backends.json", 6),
    "alltoallv": Step("benchmarks/bench_alltoallv.py", "bench/alltoallv.json", 4),
    "delivery": Step(
        "benchmarks/bench_delivery.py --tables pico_lumi pico_leonardo simulated_fattree --seeds 1",
        "bench/delivery.json",
        7,
    ),
    "budget": Step("benchmarks/bench_budget.py --part tables --budget 30s", "bench/budget.json", 3),
    "scale": Step("benchmarks/bench_scale.py", "bench/scale.json", 2),
    "learning": Step("benchmarks/bench_learning.py --seeds 1 --minutes 6", "bench/learning.json", 7),
    "site": Step(
        "benchmarks/bench_site.py --tables pico_lumi --noise 0.05 --seeds 1", "bench/site.json", 4
    ),
    "site-store": Step("benchmarks/bench_site_store.py --entries 1000", "bench/site_store.json", 2),
    "lookup": Step("benchmarks/bench_lookup.py", "bench/lookup.json", 2),
    "native": Step("benchmarks/bench_native.py", "bench/native.json", 2),
    "gate": Step("benchmarks/bench_gate.py --regions 240", "bench/gate.json", 2),
    "predicted": Step("benchmarks/bench_predicted.py --parts hardware,time", "bench/predicted.json", 5),
}  # fmt: skip

_HOURS = "takes hours, or many launches on namespaces; the page has the command"
_OSU = "asks for a build of the OSU Micro-Benchmarks, and for hours: make bench-own"
_SIMULATED = "asks for SimGrid, and for ten minutes: its command is there"
# By the first cell of each row of docs/results.md: the step that makes it, or why none does.
ROWS = {
    "2 cores, MPICH, 6 collectives, ten tunings": "tune",
    "8 x 1 namespaces, MPICH, 4 collectives, 5 min": _OSU,
    "the same tuning by OSU's programs": _OSU,
    "8 x 2 namespaces, MPICH, 4 collectives, 5 min": _OSU,
    "8 x 2 namespaces, MPICH, the whole job to 32 KiB, three tunings of 5 min by OSU's programs": _OSU,
    "8 x 1 namespaces, the same, six tunings": _OSU,
    "8 x 2 namespaces, the same, one tuning of 20 min, which ended after 12.7": _OSU,
    "4 ranks on 2 cores, Open MPI 5.0.11, 8 collectives": "backends",
    "4 x 2 namespaces, MPICH, ibcast and iallreduce": _HOURS,
    "4 x 2 namespaces, Open MPI, the same": _HOURS,
    "4 x 2 namespaces, MPICH, gather and scatter by gatherv and scatterv, 150 s": _HOURS,
    "4 x 2 namespaces, Open MPI, allgatherv, 150 s; by file nothing, since it cannot tell sizes apart": _HOURS,
    "2 ranks on 2 cores, Open MPI, allgatherv": "two minutes: its command is there",
    "Do profiles of a program on 2 and 4 ranks say what it calls on 8?": "is a test; the page has the command",
    "4 x 4 namespaces, MPI_Alltoallv": _HOURS,
    "8 x 2 namespaces, MPI_Alltoallv": _HOURS,
    "simulated, 1,024 to 4,096 ranks, MPI_Alltoallv": "alltoallv",
    "fat tree, simulated: 7 collectives": "delivery",
    "dragonfly 64 x 16, simulated: 7 collectives": "left out for time: --tables simulated_dragonfly_64x16",
    "slower than the default by more than 3%, worst run": "delivery",
    "the slowest scenario of all runs": "delivery",
    "LUMI: 2 collectives": "delivery",
    "Leonardo: 3 collectives": "delivery",
    "MareNostrum 5: reduce_scatter": "left out for time: bench_delivery.py --tables pico_marenostrum5",
    "Dane: alltoall": "left out for time: bench_delivery.py --tables mpiadvance_dane",
    "Tuolumne: alltoall": "left out for time: bench_delivery.py --tables mpiadvance_tuolumne",
    "median (aim: 0.7, 0.65, 0.9, 0.85)": "is over all five clusters, of which two are made",
    "FFT, 4 x 2 namespaces": _HOURS,
    "FFT with blocks of 1 KiB, 8 x 1 namespaces": _HOURS,
    "FFT with blocks of 1 KiB, 4 x 2 namespaces, ten runs of 30 s by `run --auto` and nothing else": (
        "takes eleven minutes: its command is there"
    ),
    "the same, every link slowed from 1 Gbit/s to 50 Mbit/s, where its rule is bad: three runs of each in turn": (
        "takes a quarter of an hour: its command is there"
    ),
    (
        "five programs under MPICH 5.0.2, 4 x 2 and 8 x 1 namespaces: FFTW's test, MP-sort, Dedalus, mpi4py-fft, "
        "hypre's test driver"
    ): "asks for programs that are built from their sources, and for an hour",
    (
        "8 x 2 namespaces, MPICH, 4 collectives to 32 KiB, three jobs of 5 min with a store: OSU's programs after the "
        "first and the third, 8 and 5 nodes, 2 launches"
    ): _HOURS,
    "8 x 1 namespaces, the same, 4 launches": _HOURS,
    "measurements in 30 s on 8 x 2, one choice a request; of the time outside the first rank's calls": _HOURS,
    "path finding, 4 x 2 namespaces": _HOURS,
    (
        "core numbers of a random graph of 8,192 vertices and an R-MAT graph of 4,096 (`examples/k_core.c`), 4 x 2 "
        "namespaces, MPI_Alltoallv by a table that was tuned and proven there in 150 s"
    ): _HOURS,
    (
        "core numbers of an R-MAT graph of 131,072 vertices (`examples/k_core.c`), **simulated** fat tree of 64 x 16, "
        "MPI_Alltoallv by a table that was tuned and proven there"
    ): "takes minutes: its command is there",
    "solver, 4 x 2 namespaces": _HOURS,
    "sample sort, 4 x 2 namespaces": _HOURS,
    "18 programs, 4 x 2 namespaces, tuned by their profiles in 150 s or less, ten whole runs of each way": _HOURS,
    "ten programs of Debian, 4 x 2 namespaces and 2 ranks on 2 cores, Open MPI 4.1.4": "asks for Debian's packages",
    "**simulated**, 64 and 512 nodes: skeleton of Quantum ESPRESSO from its profiles of 2, 4 and 8 ranks": _SIMULATED,
    "**simulated**, 64 and 512 nodes: skeleton of Elk": _SIMULATED,
    "tune 2 collectives to 1 MiB with proof": "as the next row, with fewer collectives",
    "tune 6 collectives to 1 MiB with proof": "tune",
    "tune 4 collectives on 8 x 1 or 8 x 2": _OSU,
    (
        "`tune alltoallv` on two simulated jobs of 64 ranks: settings measured, and lost against the fastest, beside a "
        "sweep over every radix and batch"
    ): "takes a minute: its command is there",
    "wall time over the budget, worst": "budget",
    "the same for 7 collectives on 1,024 nodes, measuring alone": "scale",
    "choosing for all of MPICH's broadcasts in a job of 2,048 x 12; of 512 x 64: `distill/decide.py` alone, processor"
    " time": "scale",
    "measurements until the choices are good, over those of ACCLAiM, FACT, random sampling": "learning",
    "later jobs of a site: time of the last ten of 20 jobs over the first": "site",
    "looks of later jobs that call an unchanged machine changed; an algorithm 1.3 times as slow that is found in"
    " three jobs": "site",
    "all that `tune` reads from a store of 10,000 entries; the first reading of all of it; `site status`": "site-store",
    "a call with a file of 8, 32, 256 sizes": "lookup",
    "a call with the live selector; with the experiment of `run --measure`; while `colltune profile` records": "native",
    "what an error handler of the program's own adds to a call with the live selector": "native",
    "a call at which no part of colltune looks, under `run --alltoallv`": "native",
    "all of `.ci/run` from a fresh clone, `make demo` and `make test` first without an MPI; units; slice of MPI": (
        "is half an hour: .ci/run"
    ),
    "the slice of MPI beside two busy loops on both cores, again and again: runs that failed": _HOURS,
    "Of regions that gain nothing, how many does the proof keep?": "gate",
    "Of regions that gain exactly the limit of 3%?": "gate",
    "How many regions that are 1.25 (1.10) times as fast are kept?": "gate",
    "Does `verify --quick` call a good rule lost?": "is a test on a loaded machine; the page has the command",
    "Does it find a rule at half the default's speed?": "is a test on a loaded machine; the page has the command",
    "Are results right under the files?": "14,304 cases take hours: colltune verify --results",
    "Are results of our MPI_Alltoallv right?": "is a slow test; the page has the command",
    "Do readers survive damaged files?": "takes two hours; the page has the command",
    "Beside 1, 2 and 4 spinning processes, and bursts of a compiler and a copier, is anything false proven?": _HOURS,
    "Does `verify` agree with a plain loop that knows nothing of colltune?": _HOURS,
    "Does `compare` find an allreduce that waits for half of its time more, and claim nothing of an equal setting?": (
        "is 40 comparisons of two builds: make bench-compare"
    ),
    "Does `guidelines` find a collective that takes 1.15 times its cheapest mock-up, and claim nothing where no "
    "guideline is violated?": "is 40 runs: make bench-guidelines",
    "Which guidelines do MPICH 5.0.2 and Open MPI 5.0.11 violate on 2 ranks?": "half a minute: its command is there",
    "Can a cluster be predicted that nobody measured?": "predicted",
}


def rows_of(page: str) -> Iterator[str]:
    """The first cell of each row of each table of a page in Markdown, in order."""
    head = True
    for line in page.splitlines():
        if not line.startswith("|"):
            head = True
        elif head:
            head = False
        elif set(line) - set("|-: "):
            yield line.strip("| ").split(" | ", 1)[0].strip()


def table(outcomes: Mapping[str, str]) -> str:
    """Markdown: a row for each row of docs/results.md."""
    lines = ["| row of docs/results.md | command | result | outcome |", "|---|---|---|---|"]
    for name in rows_of(PAGE.read_text(encoding="utf-8")):
        made = ROWS.get(name, "is not in the list of benchmarks/artifact.py")
        if made in STEPS:
            step = STEPS[made]
            command = step.command if step.command.startswith("colltune") else f"python {step.command}"
            lines.append(f"| {name} | `{command}` | {step.writes} | {outcomes.get(made, 'not run')} |")
        else:
            lines.append(f"| {name} | | | not made: {made} |")
    return "\n".join(lines) + "\n"


def run(step: Step) -> str:
    """Runs ``step`` in a session of its own, so that all that it started ends with it; the outcome, for the table."""
    began_s = time.monotonic()
    around = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(step.words, cwd=ROOT, env=around, stdout=sys.stderr, start_new_session=True) as process:
        try:
            code = process.wait(timeout=60.0 * step.minutes)
        except subprocess.TimeoutExpired:
            end(process)
            return f"cut off after {step.minutes:g} minutes"
        except KeyboardInterrupt:
            end(process)
            raise
    took = f"{time.monotonic() - began_s:.0f} s"
    if code:
        return f"failed with exit code {code} after {took}"
    return f"done in {took}" if (ROOT / step.writes).exists() else f"failed: no {step.writes} after {took}"


def end(process: subprocess.Popen[bytes]) -> None:
    """Asks the step's session to end, so that launchers end their ranks; kills what is left after 10 s."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(timeout=10.0)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def main(only: Sequence[str]) -> int:
    outcomes: dict[str, str] = {}
    (ROOT / "bench").mkdir(exist_ok=True)
    for name in only:
        print(f"artifact: {name}, {STEPS[name].minutes:g} minutes at most", file=sys.stderr, flush=True)
        outcomes[name] = run(STEPS[name])
        (ROOT / "bench" / "artifact.json").write_text(json.dumps(outcomes, indent=2) + "\n")
        (ROOT / "bench" / "artifact.md").write_text(table(outcomes), encoding="utf-8")
    print(table(outcomes))
    return int(any(text.startswith("failed") for text in outcomes.values()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=STEPS, default=list(STEPS), metavar="STEP", help=", ".join(STEPS))
    parser.add_argument("--list", action="store_true", help="print the table, run nothing")
    options = parser.parse_args()
    if options.list:
        print(table({}))
        sys.exit(0)
    sys.exit(main(options.only))
