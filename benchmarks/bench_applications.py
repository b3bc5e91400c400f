"""What tunings are worth in programs that we did not write: whole runs in turns, with the default and with the rules.

    python benchmarks/bench_applications.py [--only pw,dedalus,...] [--where 4x2,8x1,1x2] [--rounds 7] [--budget 60s]
        [--built bench/programs] [--until profile|tune|compare] [--minutes 20]

The programs stand in benchmarks/application_inputs/programs.toml. Those under Open MPI are Debian's, with its Open MPI
4.1 (`apt-get install hpcc lammps quantum-espresso quantum-espresso-data cp2k cp2k-data nwchem-openmpi nwchem-data
abinit abinit-data mpb-mpi elk-lapw openmpi-bin libopenmpi-dev`). Those under MPICH are of PyPI and of Debian's sources:
`sh benchmarks/application_inputs/build.sh bench/programs` makes them in some 20 minutes. They run on network
namespaces, four with two ranks each (4x2) or eight with one (8x1), by links of 1 Gbit/s (needs root and iproute2), and
with two ranks on this machine (1x2). Inputs are those of the distributions where build.sh names them, others ours.

Each program is profiled, tuned by its profile (MPI_Alltoallv and MPI_Alltoallw too, where they take 5% of the time),
and run in turns, in random order, as `colltune run` starts it: by files, or live where a rule has no file. What it
computes is compared: by how much tuned runs differ from those by default stands in the table. Then it runs once under
`run --profile` for the share of collectives that is left, and three times under `run --measure --share 50%`.

A step that is done is kept in bench/applications/PROGRAM-WHERE.json; the next call goes on there. After ``--minutes``
no further step begins. Writes bench/applications.json: ``best_gain`` and ``geomean`` of the times by default over
tuned, 1 where nothing was tuned; ``surely_slower``, how many rows are slower by 1% or more with their whole interval;
``measured_overlap``, of how many measured runs the interval overlaps that of the whole runs; and prints the table as
benchmarks/history/programs.md has it.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from application_rows import HEAD, INPUTS, SHAPES, Program, Steps, figures, load_steps, programs, row
from applications import OPENMPI, Application
from bench_application_gain import SHARE, saved_by_all
from colltune.alltoallv.interposed import with_alltoallv
from colltune.alltoallv.lookup_table import TABLE, load_table
from colltune.alltoallv.matrices import alltoallv_share
from colltune.core.proven import Verdict
from colltune.deploy.live_selector import only_live
from colltune.profile.profile_files import load_profile
from colltune.session.application.run_application import RunOptions, ready_run
from colltune.store.earlier import HISTORY, PROFILE
from colltune.store.tuning import load_tuning
from on_cluster import namespace_cluster, why_not

ROOT = Path(__file__).resolve().parents[1]

KEPT = Path("bench") / "applications"
MEASURED_RUNS = 3
LEAST_ALLTOALLV = 0.05


def main() -> None:
    known = programs()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(known))
    parser.add_argument("--where", default=",".join(SHAPES))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--built", type=Path, default=Path("bench") / "programs", help="what build.sh made")
    parser.add_argument("--until", choices=["profile", "tune", "compare", "measure"], default="measure")
    parser.add_argument("--minutes", type=float, default=math.inf, help="after these no further step begins")
    asked = parser.parse_args()
    until_s = time.monotonic() + 60.0 * asked.minutes
    KEPT.mkdir(parents=True, exist_ok=True)
    names = asked.only.split(",")
    for where in asked.where.split(","):
        for mpi in sorted({known[name].mpi for name in names}):
            with tempfile.TemporaryDirectory() as place, layout(Path(place), where, mpi, asked.built) as there:
                for name in [one for one in names if known[one].mpi == mpi]:
                    with suppress(TimeoutError):
                        Bench(name, known[name], there.application(name, known[name], where), asked, until_s).advance()
    rows, found = list(HEAD), list[Steps]()
    for where in SHAPES:
        for name, program in known.items():
            path = KEPT / f"{name}-{where}.json"
            if path.exists():
                found.append(load_steps(path))
                rows.append(row(program, where, found[-1]))
    Path("bench/applications.json").write_text(json.dumps(figures(found), indent=1) + "\n")
    print("\n".join(rows))
    print(json.dumps(figures(found)))


@dataclass(frozen=True)
class Layout:
    """How a job is started there, where it is tuned, on what cluster, under what variables."""

    job: list[str]
    tune: list[str]
    cluster: Any
    variables: dict[str, str]
    built: Path

    def application(self, name: str, program: Program, where: str) -> Application:
        """The program in a directory of its own, with its inputs."""
        directory = (KEPT / f"{name}-{where}").resolve()
        directory.mkdir(exist_ok=True)
        more = [Path(path.format(built=self.built)) for path in program.inputs]
        for path in [*(one for one in INPUTS.iterdir() if one.suffix not in (".toml", ".sh", ".inc")), *more]:
            if path.is_file():
                (directory / path.name).write_bytes(path.read_bytes())
        command = [*self.job, *(word.format(built=self.built) for word in program.command)]
        return Application(
            program.title, where, command, program.loop, directory, self.tune, self.cluster, self.variables
        )


@contextmanager
def layout(place: Path, where: str, mpi: str, built: Path) -> Iterator[Layout]:
    built = built.resolve()
    nodes, ppn = SHAPES[where]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
    mpiexec = OPENMPI if mpi == "openmpi" else str(built / "venv" / "bin" / "mpiexec")
    if mpi == "mpich":
        root = {"LD_LIBRARY_PATH": str(built / "usr" / "lib"), "NUMEXPR_MAX_THREADS": "1"}
    if nodes == 1:
        yield Layout([mpiexec, "-n", str(ppn)], ["--mpiexec", mpiexec, "--ppn", str(ppn)], None, root, built)
        return
    if (reason := why_not()) is not None:
        sys.exit(f"no cluster of namespaces here: {reason}")
    with namespace_cluster(place / "cluster", nodes) as cluster:
        # Open MPI 4.1 calls by other names what the cluster says to 5.0.
        own = {
            "OMPI_MCA_plm_rsh_agent": cluster.environment["PRTE_MCA_plm_ssh_agent"],
            "OMPI_MCA_oob_tcp_if_include": "eth0",
            "OMPI_MCA_btl": "self,vader,tcp",
        }
        slots = place / "slots"
        slots.write_text("".join(f"{host} slots={ppn}\n" for host in cluster.hosts))
        words = ["--hostfile", str(slots), "--bind-to", "none", "--map-by", f"ppr:{ppn}:node"]
        if mpi == "mpich":
            words = ["-f", str(cluster.host_file(ppn))]
        job = [mpiexec, *words, "-n", str(nodes * ppn)]
        tune = ["--mpiexec", mpiexec, "--hostfile", str(cluster.host_file(ppn))]
        yield Layout(job, tune, cluster, {**cluster.environment, **root, **own}, built)


class Bench:
    """The steps of a program in one layout. What is done is kept after each; the time is up by TimeoutError."""

    def __init__(self, name: str, program: Program, one: Application, asked: argparse.Namespace, until_s: float):
        self.program, self.one, self.asked, self.until_s = program, one, asked, until_s
        self.kept = KEPT / f"{name}-{one.where}.json"
        self.steps = load_steps(self.kept)
        self.profile, self.tuned = one.directory / "profile.json", one.directory / "tuned"
        self.table = one.directory / "alltoallv"

    def advance(self) -> None:
        steps = self.steps
        after = ["profile", "tune", "compare", "measure"].index(self.asked.until)
        try:
            if steps.share is None:
                self.step(self.profiled)
            if after >= 1 and steps.rules is None:
                self.step(self.tuned_by_profile)
            if after >= 1 and steps.alltoallv is None:
                self.step(self.tuned_alltoallv)
            if after < 2 or not steps.tuned:
                return
            order = random.Random(1 + len(steps.tuned_s))
            while len(steps.tuned_s) < self.asked.rounds:
                self.step(lambda: self.round(order))
            if after >= 3 and steps.share_tuned is None and steps.rules:
                self.step(self.profiled_tuned)
            while after >= 3 and steps.rules and steps.measured_runs < MEASURED_RUNS:
                self.step(self.measured)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"{self.one.name} {self.one.where}: {error}", file=sys.stderr)
            steps.failed = str(error).strip().splitlines()[-1][:200]
            self.keep()

    def step(self, work: Callable[[], str]) -> None:
        if time.monotonic() > self.until_s:
            raise TimeoutError
        self.steps.failed = ""
        print(f"{self.one.name} {self.one.where}: {work()}", flush=True)
        self.keep()

    def keep(self) -> None:
        self.kept.write_text(json.dumps(asdict(self.steps), indent=1) + "\n")

    def profiled(self) -> str:
        self.one.colltune("profile", "--out", str(self.profile), "--mpiexec", self.one.tune[1], "--", *self.one.job)
        self.steps.share = in_collectives(self.profile)
        self.steps.collectives = calls_of(self.profile)
        return f"{self.steps.share:.0%} in collectives {self.steps.collectives}"

    def tuned_by_profile(self) -> str:
        words = ["--profile", str(self.profile), "--runtime", "100h", "--budget", self.asked.budget]
        self.tune("tune", *words, "--out", str(self.tuned))
        made = (self.tuned / "tuning.json").exists()
        self.steps.rules = len(load_tuning(self.tuned).summary.having(Verdict.KEPT)) if made else 0
        return f"{self.steps.rules} proven in {self.steps.tuning_s:.0f} s"

    def tuned_alltoallv(self) -> str:
        self.steps.alltoallv = 0
        if (share := alltoallv_share(load_profile(self.profile))) < LEAST_ALLTOALLV:
            return f"{share:.1%} in MPI_Alltoallv and MPI_Alltoallw"
        words = ["--profile", str(self.profile), "--budget", self.asked.budget, "--out", str(self.table)]
        self.tune("tune", "alltoallv", *words)
        if (self.table / TABLE).exists():
            self.steps.alltoallv = sum(len(entry.rules) for entry in load_table(self.table / TABLE))
        return f"{self.steps.alltoallv} rules of alltoallv, {share:.0%} of the time"

    def tune(self, *words: str) -> None:
        """Charges the time to the tuning. That nothing can be gained is no error."""
        began_s = time.monotonic()
        try:
            print(self.one.colltune(*words, *self.one.tune)[1], file=sys.stderr)
        except RuntimeError as error:
            if "tuning cannot pay" not in str(error) and "no call" not in str(error):
                raise
            print(error, file=sys.stderr)
        self.steps.tuning_s += time.monotonic() - began_s

    def started(self) -> tuple[Sequence[str], Mapping[str, str]]:
        """The command and the environment of the tuned program, without the start of `colltune run` itself."""
        around = {**os.environ, **self.one.environment}
        table = self.table if self.steps.alltoallv else None
        if not self.steps.rules:
            assert table is not None
            return with_alltoallv(self.one.job, table, around)
        via = "live" if only_live(load_tuning(self.tuned)) else "file"
        return ready_run(self.tuned, self.one.job, RunOptions(via=via, alltoallv=table), around, print).started()

    def round(self, order: random.Random) -> str:
        words, variables = self.started()
        took: dict[str, tuple[float, float]] = {}
        for way in order.sample(["default", "tuned"], 2):
            time_s, text = self.one.run(words, variables) if way == "tuned" else self.one.run(self.one.job)
            text = (self.one.directory / self.program.file).read_text() if self.program.file else text
            found = re.findall(self.program.result, text) if self.program.result else []
            took[way] = time_s, float(found[-1].replace("D", "E")) if found else math.nan
        steps = self.steps
        for way, times, results in (
            ("default", steps.default_s, steps.default_results),
            ("tuned", steps.tuned_s, steps.tuned_results),
        ):
            times.append(took[way][0])
            results.append(took[way][1])
        return f"round {len(steps.tuned_s)}: {took}"

    def profiled_tuned(self) -> str:
        self.one.colltune("run", "--profile", *self.alltoallv_words(), str(self.tuned), "--", *self.one.job)
        latest = max(path for path in (self.tuned / HISTORY).iterdir() if (path / PROFILE).exists())
        self.steps.share_tuned = in_collectives(latest / PROFILE)
        return f"{self.steps.share_tuned:.0%} in collectives tuned"

    def measured(self) -> str:
        words = [f"--share={SHARE}%", *self.alltoallv_words(), str(self.tuned)]
        self.one.colltune("run", "--measure", *words, "--", *self.one.job)
        self.steps.measured_runs += 1
        found = saved_by_all(self.tuned)
        self.steps.measured += found
        return f"measured {found}"

    def alltoallv_words(self) -> list[str]:
        return ["--alltoallv", str(self.table)] if self.steps.alltoallv else []


def in_collectives(path: Path) -> float:
    """Of the time of the run that was profiled, the share in collectives."""
    profile = load_profile(path)
    return profile.collective_s / max(profile.core_s, 1e-12)


def calls_of(profile: Path) -> dict[str, float]:
    """Seconds in each collective, all ranks and sizes together, as the profile has them; the longest first."""
    found: dict[str, float] = {}
    for one in load_profile(profile).calls:
        found[one.collective] = found.get(one.collective, 0.0) + one.time_s
    return {name: round(found[name], 3) for name in sorted(found, key=lambda one: -found[one])}


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
