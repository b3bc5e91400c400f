"""What tunings are worth in programs that we did not write: whole runs in turns, with the default and with the rules.

    python benchmarks/bench_applications.py [--only pw,cp2k,...] [--where nodes,node] [--rounds 7] [--budget 60s]
        [--minutes 20]

The programs are Debian's, with its Open MPI 4.1 (`apt-get install hpcc lammps quantum-espresso quantum-espresso-data
cp2k cp2k-data nwchem-openmpi nwchem-data abinit abinit-data mpb-mpi elk-lapw openmpi-bin libopenmpi-dev`), on four
namespaces with two ranks each (nodes; needs root and iproute2) and with two ranks on this machine (node). Inputs are
in benchmarks/application_inputs, ours, for runs of seconds, with pseudopotentials and basis sets of these packages.

Each program is profiled, tuned by its profile, and run in turns, in random order, under the variables of `colltune
env`. What it computes (energies) is compared: by how much tuned runs differ from those by default stands in the table.
A step that is done is kept in bench/applications/PROGRAM-WHERE.json; the next call goes on there. After ``--minutes``
no further step begins. Writes bench/applications.json: ``best_gain`` and ``geomean`` of the times by default over
tuned, 1 where nothing was tuned; ``surely_slower``, how many programs are slower by 1% or more with their whole
interval; and the table as benchmarks/history/programs.md has it.
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
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from scipy.stats import t as student

from colltune.core.proven import Verdict
from colltune.profile.benefit import benefit_of
from colltune.profile.profile_files import load_profile
from colltune.store.tuning import load_tuning

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "mpi"))

from namespaces import namespace_cluster, why_not  # noqa: E402

from applications import OPENMPI, Application  # noqa: E402

INPUTS = ROOT / "benchmarks" / "application_inputs"
KEPT = Path("bench") / "applications"
NODES, PPN = 4, 2


@dataclass(frozen=True)
class Program:
    """``words``: the command, in a directory with its inputs. ``result`` finds a number that it computes, in what it
    prints or in ``file``."""

    title: str
    words: tuple[str, ...]
    result: str
    file: str = ""


PROGRAMS = {
    "pw": Program("Quantum ESPRESSO, Si8 SCF", ("pw.x", "-in", "pw.in"), r"!    total energy += +(\S+)"),
    "cp2k": Program("CP2K, (H2O)4 MD", ("cp2k", "cp2k.inp"), r"ENERGY\| Total FORCE_EVAL.*:\s+(\S+)"),
    "nwchem": Program("NWChem, (H2O)2 B3LYP", ("nwchem.openmpi", "nwchem.nw"), r"Total DFT energy = +(\S+)"),
    "abinit": Program("ABINIT, Si SCF", ("abinit", "abinit.abi"), r"etotal\d*\s+(\S+)"),
    "lammps": Program("LAMMPS, Lennard-Jones", ("lmp", "-in", "in.lj", "-log", "none"), r"\n +400 +\S+ +(\S+)"),
    "rhodo": Program("LAMMPS, PPPM", ("lmp", "-in", "in.pppm", "-log", "none"), r"\n +200 +\S+ +(\S+)"),
    "hpcc": Program("HPCC", ("hpcc",), ""),
    "mpb": Program("MPB, photonic bands", ("mpb-mpi", "mpb.ctl"), r"\nfreqs:, \d.* (\S+)\n"),
    "elk": Program("Elk, Si", ("elk-lapw",), r"(\S+)\s*$", "TOTENERGY.OUT"),
    "al": Program("Quantum ESPRESSO, Al, many points", ("pw.x", "-in", "al.in"), r"!    total energy += +(\S+)"),
}


@dataclass
class Steps:
    """What is done of a program. Times in seconds of whole commands, one of each way in each round."""

    share: float | None = None
    collectives: dict[str, float] = field(default_factory=dict)
    rules: int | None = None
    tuning_s: float = 0.0
    default_s: list[float] = field(default_factory=list)
    tuned_s: list[float] = field(default_factory=list)
    default_results: list[float] = field(default_factory=list)
    tuned_results: list[float] = field(default_factory=list)
    failed: str = ""

    def gain(self) -> tuple[float, float | None, float | None]:
        """Time by default over tuned, by the mean of the logarithms of the rounds, and its 95% bounds."""
        logs = [math.log(a / b) for a, b in zip(self.default_s, self.tuned_s, strict=True)]
        if not logs:
            return 1.0, None, None
        if len(logs) < 3:
            return math.exp(fmean(logs)), None, None
        half = float(student.ppf(0.975, len(logs) - 1)) * stdev(logs) / math.sqrt(len(logs))
        return math.exp(fmean(logs)), math.exp(fmean(logs) - half), math.exp(fmean(logs) + half)

    def differs(self) -> float:
        """The greatest relative difference of what tuned runs computed from what those by default did."""
        pairs = zip(self.default_results, self.tuned_results, strict=False)
        return max((abs(a - b) / max(abs(a), 1e-300) for a, b in pairs), default=0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PROGRAMS))
    parser.add_argument("--where", default="nodes,node")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--minutes", type=float, default=math.inf, help="after these no further step begins")
    asked = parser.parse_args()
    until_s = time.monotonic() + 60.0 * asked.minutes
    KEPT.mkdir(parents=True, exist_ok=True)
    for where in asked.where.split(","):
        with tempfile.TemporaryDirectory() as place, layout(Path(place), where) as (job, tune, cluster, variables):
            for name in asked.only.split(","):
                directory = (KEPT / f"{name}-{where}").resolve()
                directory.mkdir(exist_ok=True)
                for path in INPUTS.iterdir():
                    (directory / path.name).write_bytes(path.read_bytes())
                command = [*job, *PROGRAMS[name].words]
                title = PROGRAMS[name].title
                one = Application(title, where, command, None, directory, tune, cluster, variables)
                with suppress(TimeoutError):
                    advance(name, one, asked, until_s)
    write_all()


@contextmanager
def layout(place: Path, where: str) -> Iterator[tuple[list[str], list[str], Any, dict[str, str]]]:
    """How a job is started there, where it is tuned, on what cluster, under what variables."""
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
    if where == "node":
        yield [OPENMPI, "-n", str(PPN)], ["--mpiexec", OPENMPI, "--ppn", str(PPN)], None, root
        return
    if (reason := why_not()) is not None:
        sys.exit(f"no cluster of namespaces here: {reason}")
    with namespace_cluster(place / "cluster", NODES) as cluster:
        # Open MPI 4.1 calls by other names what the cluster says to 5.0.
        own = {
            "OMPI_MCA_plm_rsh_agent": cluster.environment["PRTE_MCA_plm_ssh_agent"],
            "OMPI_MCA_oob_tcp_if_include": "eth0",
            "OMPI_MCA_btl": "self,vader,tcp",
        }
        slots = place / "slots"
        slots.write_text("".join(f"{host} slots={PPN}\n" for host in cluster.hosts))
        words = [OPENMPI, "--hostfile", str(slots), "--bind-to", "none", "--map-by", f"ppr:{PPN}:node"]
        tune = ["--mpiexec", OPENMPI, "--hostfile", str(cluster.host_file(PPN))]
        yield [*words, "-n", str(NODES * PPN)], tune, cluster, {**cluster.environment, **root, **own}


def advance(name: str, one: Application, asked: argparse.Namespace, until_s: float) -> None:
    """The steps of a program that are not done yet. Raises TimeoutError where the time is up."""
    kept = KEPT / f"{name}-{one.where}.json"
    steps = Steps(**json.loads(kept.read_text())) if kept.exists() else Steps()

    def done() -> None:
        kept.write_text(json.dumps(asdict(steps), indent=1) + "\n")
        if time.monotonic() > until_s:
            raise TimeoutError

    profile, tuned = one.directory / "profile.json", one.directory / "tuned"
    try:
        if steps.share is None:
            one.colltune("profile", "--out", str(profile), "--mpiexec", OPENMPI, "--", *one.job)
            read = load_profile(profile)
            benefit = benefit_of(read)
            steps.share = benefit.collectives
            steps.collectives = calls_of(profile)
            print(f"{one.name} {one.where}: {steps.share:.0%} in collectives {steps.collectives}", flush=True)
            done()
        if steps.rules is None:
            began_s = time.monotonic()
            words = ["--profile", str(profile), "--runtime", "100h", "--budget", asked.budget, "--out", str(tuned)]
            try:
                one.colltune("tune", *words, *one.tune)
                steps.rules = len(load_tuning(tuned).summary.having(Verdict.KEPT))
            except RuntimeError as error:
                if "tuning cannot pay" not in str(error) and "no call" not in str(error):
                    raise
                steps.rules = 0
            steps.tuning_s = time.monotonic() - began_s
            print(f"{one.name} {one.where}: {steps.rules} proven in {steps.tuning_s:.0f} s", flush=True)
            done()
        order = random.Random(1)
        variables = load_tuning(tuned).variables_at(tuned) if steps.rules else {}
        while steps.rules and len(steps.tuned_s) < asked.rounds:
            took: dict[str, tuple[float, float]] = {}
            for way in order.sample(["default", "tuned"], 2):
                time_s, text = one.run(one.job, variables if way == "tuned" else {})
                pattern = PROGRAMS[name].result
                text = (one.directory / PROGRAMS[name].file).read_text() if PROGRAMS[name].file else text
                found = re.findall(pattern, text) if pattern else []
                took[way] = time_s, float(found[-1].replace("D", "E")) if found else math.nan
            for way, times, results in (
                ("default", steps.default_s, steps.default_results),
                ("tuned", steps.tuned_s, steps.tuned_results),
            ):
                times.append(took[way][0])
                results.append(took[way][1])
            print(f"{one.name} {one.where}: round {len(steps.tuned_s)}: {took}", flush=True)
            done()
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        steps.failed = str(error).strip().splitlines()[-1][:200]
        print(f"{one.name} {one.where}: {error}", file=sys.stderr)
        done()


def calls_of(profile: Path) -> dict[str, float]:
    """Seconds in each collective, all ranks and sizes together, as the profile has them; the longest first."""
    found: dict[str, float] = {}
    for one in load_profile(profile).calls:
        found[one.collective] = found.get(one.collective, 0.0) + one.time_s
    return {name: round(found[name], 3) for name in sorted(found, key=lambda one: -found[one])}


def row(name: str, where: str, steps: Steps) -> str:
    shape = f"{NODES} x {PPN}" if where == "nodes" else f"1 x {PPN}"
    share = "-" if steps.share is None else f"{steps.share:.0%}"
    most = ", ".join(list(steps.collectives)[:3])
    gain, low, high = steps.gain()
    if steps.failed:
        told = f"ended: {steps.failed}"
    elif steps.rules is None:
        told = "not tuned"
    elif not steps.rules:
        told = "nothing proven"
    elif not steps.tuned_s:
        told = "not compared"
    else:
        told = f"{gain:.3f}" + ("" if low is None or high is None else f" ({low:.3f} to {high:.3f})")
    base_s = fmean(steps.default_s) if steps.default_s else 0.0
    pays = base_s * (1.0 - 1.0 / gain)
    surely = low is not None and low > 1.0
    paid = f"{math.ceil(steps.tuning_s / pays)}" if surely else "-"
    differs = f"{steps.differs():.0e}" if steps.tuned_results and PROGRAMS[name].result else "-"
    cells = [
        PROGRAMS[name].title,
        shape,
        share,
        most,
        str(steps.rules or 0),
        f"{base_s:.3g} s" if base_s else "-",
        told,
        differs,
    ]
    return "| " + " | ".join([*cells, f"{steps.tuning_s:.0f} s", paid]) + " |"


HEAD = [
    "| program | ranks | in collectives | most in | proven | a run | default / tuned | results differ by"
    " | tuning | paid back after runs |",
    "|---|---|---|---|---|---|---|---|---|---|",
]


def write_all() -> None:
    rows, gains, slower = list(HEAD), list[float](), 0
    for where in ("nodes", "node"):
        for name in PROGRAMS:
            path = KEPT / f"{name}-{where}.json"
            if path.exists():
                steps = Steps(**json.loads(path.read_text()))
                rows.append(row(name, where, steps))
                if steps.tuned_s or steps.rules == 0:
                    gain, _, high = steps.gain()
                    gains.append(gain)
                    slower += high is not None and high <= 0.99
    figures = {
        "programs": len(gains),
        "best_gain": round(max(gains, default=1.0), 3),
        "geomean": round(math.exp(fmean(map(math.log, gains))) if gains else 1.0, 3),
        "surely_slower": slower,
    }
    Path("bench/applications.json").write_text(json.dumps(figures, indent=1) + "\n")
    print("\n".join(rows))
    print(json.dumps(figures))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
