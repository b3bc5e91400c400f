"""What `run --measure` says a tuning saves, against what whole runs in turn show: examples/, HPCC and LAMMPS.

    python benchmarks/bench_application_gain.py [--rounds 9] [--run-s 20] [--budget 2m] [--only solver,fft_transpose]
        [--where cluster,node,debian] [--mpi mpich]

Each program is profiled and tuned by its profile, on a cluster of namespaces (4 nodes x 2 ranks; needs root and
iproute2) and on this node (2 ranks); HPCC and LAMMPS with Debian's Open MPI on this node (debian). Where no rule is
proven, it is tuned once more without the proof, so that there is something to measure; the table says so.
Then a round has three runs in random order: by default, with the rules (`run --via live`), and with `run
--measure=50%`. Their loops are timed by the programs themselves; of HPCC, which does not say it, the time is the whole
command's.

- Whole runs: the mean over the rounds of (default - tuned), and its 95% interval by Student's t.
- Measured: what all calls of the rules together would save if all ran tuned, since half of them run by default there;
  the median over the rounds, and how many of their 95% intervals overlap that of the whole runs.

Writes bench/application_gain.json after each program and prints the table.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from scipy.stats import t as student

from applications import Application, debian
from colltune.store.earlier import GAIN, HISTORY
from colltune.store.tuning import load_tuning
from on_cluster import namespace_cluster, why_not

ROOT = Path(__file__).resolve().parents[1]

NODES, PPN, SHARE = 4, 2, 50
# Arguments before and behind the number of steps, and what the programs print: seconds of one step.
PROGRAMS: dict[str, tuple[list[str], str]] = {
    "solver": (["1000"], r"step_s (\S+)"),
    "fft_transpose": (["64"], r"step_s (\S+)"),
    "sample_sort": (["2000", "uniform"], r"step_s (\S+)"),
    "path_finding": (["random", "200"], r"total_s (\S+)"),
}
# Of Debian, whose Open MPI they are built with.
PACKAGED = ("hpcc", "lammps")
TIMED = r"took (\S+) s"
Ends = tuple[float, float | None, float | None]


@dataclass(frozen=True)
class Found:
    """Seconds of a run's loop. ``whole_s``: saved by whole runs, with bounds; ``measured_s``: by each measured run."""

    program: str
    where: str
    mpi: str
    rules: str
    default_s: list[float]
    tuned_s: list[float]
    whole_s: Ends
    measured_s: list[Ends]

    @property
    def agreeing(self) -> int:
        """The measured runs whose interval overlaps that of the whole runs."""
        _, low, high = self.whole_s
        return sum(
            (upper is None or low is None or low <= upper) and (lower is None or high is None or lower <= high)
            for _, lower, upper in self.measured_s
        )

    def row(self) -> str:
        base_s = fmean(self.default_s)
        cells = [self.program, self.where, self.rules, f"{base_s:.3g} s"]
        cells += [share(self.whole_s, base_s) if self.tuned_s else "nothing to compare"]
        if self.measured_s:
            middle = median(one for one, _, _ in self.measured_s)
            cells += [f"{middle / base_s:+.1%}", f"{self.agreeing} of {len(self.measured_s)}"]
        else:
            cells += ["too few calls" if self.tuned_s else "-", "-"]
        return "| " + " | ".join(cells) + " |"


HEAD = [
    "| program | where | rules | loop by default | saved, whole runs in turn | saved, by `run --measure`"
    " | intervals that overlap |",
    "|---|---|---|---|---|---|---|",
]


def share(ends: Ends, of_s: float) -> str:
    estimate, low, high = (None if one is None else one / of_s for one in ends)
    text = f"{estimate:+.1%}"
    return text if low is None or high is None else f"{text} ({low:+.1%} to {high:+.1%})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--run-s", type=float, default=20.0)
    parser.add_argument("--budget", default="2m")
    parser.add_argument("--only", default=",".join([*PROGRAMS, *PACKAGED]))
    parser.add_argument("--where", default="cluster,node,debian")
    parser.add_argument("--mpi", default="mpich", choices=["mpich", "openmpi"])
    options = parser.parse_args()
    target = Path("bench/application_gain.json")
    target.parent.mkdir(exist_ok=True)
    found: list[Found] = []
    for where in options.where.split(","):
        with tempfile.TemporaryDirectory() as name, programs(Path(name), where, options.mpi) as there:
            for program, one in there.items():
                if program not in options.only.split(","):
                    continue
                found.append(judged(one, program, options))
                print(found[-1].row(), flush=True)
                target.write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")
    print("\n".join([*HEAD, *(one.row() for one in found)]))


@contextmanager
def programs(place: Path, where: str, mpi: str) -> Iterator[dict[str, Application]]:
    """The programs of examples/, compiled, on the cluster or on this node; nothing where there can be no cluster."""
    if where == "debian":
        found = {name: one for name in PACKAGED for one in debian(place, [name])}
        yield {
            name: replace(one, job=timed(one.job), time=TIMED) if one.time is None else one
            for name, one in found.items()
        }
        return
    reason = why_not() if where == "cluster" else None
    if reason is not None:
        print(f"no cluster of namespaces here: {reason}", file=sys.stderr)
        yield {}
        return
    if where == "cluster":
        with namespace_cluster(place / "cluster", NODES) as cluster:
            hosts = cluster.host_file(PPN)
            if mpi == "openmpi":
                slots = place / "slots"
                slots.write_text("".join(f"{host} slots={PPN}\n" for host in cluster.hosts))
                words = ["--hostfile", str(slots), "--bind-to", "none", "--map-by", f"ppr:{PPN}:node"]
            else:
                words = ["-f", str(hosts)]
            yield compiled(place, mpi, f"{NODES} x {PPN}", words, ["--hostfile", str(hosts)], cluster)
    else:
        words = ["--bind-to", "none"] if mpi == "openmpi" else []
        yield compiled(place, mpi, f"1 x {PPN}", words, ["--ppn", str(PPN)], None)


def compiled(
    place: Path, mpi: str, where: str, words: list[str], tune: list[str], cluster: Any
) -> dict[str, Application]:
    tools = ROOT / (".venv" if mpi == "mpich" else ".venv-openmpi") / "bin"
    mpiexec, environment = str(tools / "mpiexec"), dict(cluster.environment) if cluster is not None else {}
    ranks = str(NODES * PPN if cluster is not None else PPN)
    found = {}
    for name, (arguments, time) in PROGRAMS.items():
        target = place / name
        source = str(ROOT / "examples" / f"{name}.c")
        subprocess.run([str(tools / "mpicc"), "-O2", source, "-lm", "-o", str(target)], check=True)
        job = [mpiexec, *words, "-n", ranks, str(target), *arguments]
        found[name] = Application(name, where, job, time, place, ["--mpiexec", mpiexec, *tune], cluster, environment)
    return found


def timed(job: list[str]) -> list[str]:
    """``job`` such that its own time is printed, without that of what starts it."""
    script = 'began=$(date +%s.%N); "$@" || exit $?; echo "took $(echo "$(date +%s.%N) - $began" | bc) s"'
    return ["bash", "-c", script, "timed", *job]


def judged(one: Application, program: str, options: argparse.Namespace) -> Found:
    steps = 1
    if program in PROGRAMS:
        steps = steps_for(one, options.run_s)
        one.job = [*one.job, str(steps)]
    tuned, rules = tuning_of(one, options.budget)
    default_s, tuned_s, measured = list[float](), list[float](), list[Ends]()
    order = random.Random(1)
    for number in range(options.rounds):
        ways = ["default", "tuned", "measured"] if tuned is not None else ["default"]
        for way in order.sample(ways, len(ways)):
            if way == "default":
                default_s.append(steps * loop_s(one, one.run(one.job)))
            elif way == "tuned":
                tuned_s.append(steps * loop_s(one, one.colltune("run", "--via", "live", str(tuned), "--", *one.job)))
            else:
                assert tuned is not None
                one.colltune("run", f"--measure={SHARE}%", str(tuned), "--", *one.job)
                measured += saved_by_all(tuned)
        print(f"{program} {one.where}: round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    whole = interval([a - b for a, b in zip(default_s, tuned_s, strict=True)]) if tuned_s else (0.0, None, None)
    mpi = options.mpi if program in PROGRAMS else "openmpi"
    return Found(program, one.where, mpi, rules, default_s, tuned_s, whole, measured)


def steps_for(one: Application, run_s: float) -> int:
    """So many that the loop takes ``run_s``: by a run of 20 steps, and then by one of a second."""
    steps = 20
    for aim_s in (1.0, run_s):
        step_s = loop_s(one, one.run([*one.job, str(steps)]))
        steps = max(round(aim_s / max(step_s, 1e-7)), 20)
    return steps


def loop_s(one: Application, done: tuple[float, str]) -> float:
    """Seconds of a step, as the program printed them; of a program without steps, of all."""
    assert one.time is not None
    found = re.search(one.time, done[1])
    assert found is not None, done[1]
    return float(found.group(1))


def tuning_of(one: Application, budget: str) -> tuple[Path | None, str]:
    """A directory with rules for what the program calls, and what they are worth; None where nothing looks faster."""
    profile = one.directory / f"{one.name}.json"
    one.colltune("profile", "--out", str(profile), "--mpiexec", one.tune[1], "--", *one.job)
    for said, gate in (("proven", []), ("not proven", ["--gate", "off"])):
        out = one.directory / f"{one.name}-{len(gate)}"
        words = ["--profile", str(profile), "--runtime", "100h", "--budget", budget, "--out", str(out), *gate]
        try:
            one.colltune("tune", *words, *one.tune)
        except RuntimeError as error:
            print(error, file=sys.stderr)
            continue
        rules = sum(rules.departs for rules in (load_tuning(out).live or {}).values())
        if rules:
            return out, f"{', '.join(sorted(load_tuning(out).live or {}))}: {said}"
    return None, "none: nothing looks faster"


def saved_by_all(tuned: Path) -> list[Ends]:
    """Seconds that the calls which met a rule would save if all ran tuned, by the latest run; none: too few calls."""
    place = max((tuned / HISTORY).iterdir())
    if not (place / GAIN).exists():
        return []
    gain = json.loads((place / GAIN).read_text())
    ends: list[float | None] = [0.0, 0.0, 0.0]
    for cell in gain["cells"]:
        whole = (cell["tuned_calls"] + cell["default_calls"]) / max(cell["tuned_calls"], 1)
        for at, end in enumerate(("estimate", "low", "high")):
            value, before = cell["saved_s"].get(end), ends[at]
            ends[at] = None if value is None or before is None else before + value * whole
    estimate, low, high = ends
    return [(estimate, low, high)] if gain["cells"] and estimate is not None else []


def interval(differences: list[float]) -> Ends:
    """The mean and its 95% bounds; None for fewer than three."""
    mean = fmean(differences)
    if len(differences) < 3:
        return mean, None, None
    half = float(student.ppf(0.975, len(differences) - 1)) * stdev(differences) / math.sqrt(len(differences))
    return mean, mean - half, mean + half


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
