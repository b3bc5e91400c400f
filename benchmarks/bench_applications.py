"""What tunings are worth in whole applications: whole runs in turns, with the default and with the rules.

    python benchmarks/bench_applications.py [--only pw,npb_ft,...] [--where 4x2,8x1,1x2,4x2@100mbit] [--rounds 10]
        [--budget 60s] [--built bench/programs] [--npb DIR] [--minife DIR] [--until profile|tune|compare] [--minutes 20]
    python benchmarks/bench_applications.py --cost --only pw [--rounds 30]
    python benchmarks/bench_applications.py --auto --only pw [--rounds 5] [--auto-minutes 10]

The programs, where each is from, their inputs and why these, stand in benchmarks/application_inputs/programs.toml.
Those under Open MPI are Debian's, with its Open MPI 4.1 (`apt-get install hpcc lammps quantum-espresso
quantum-espresso-data gromacs cp2k cp2k-data nwchem-openmpi nwchem-data abinit abinit-data mpb-mpi elk-lapw openmpi-bin
libopenmpi-dev`). Those under MPICH are of PyPI and of Debian's sources: `sh benchmarks/application_inputs/build.sh
bench/programs` makes them in some 20 minutes. Those of examples/ are compiled here. NPB and MiniFE are built by who
runs this, as their own pages say, with the mpicc of that MPICH: ``--npb`` is the directory with the programs of NPB 3.4
for MPI (ft.A.x and so on), ``--minife`` that with miniFE.x. What is not given, or not built, is left out.

They run on network namespaces, four with two ranks each (4x2), eight with one (8x1) or two (8x2), by links of 1 Gbit/s
or of what is named behind @ (needs root and iproute2), and with two ranks on this machine (1x2).

Each program is profiled, tuned by its profile (MPI_Alltoallv and MPI_Alltoallw too, where they take 5% of the time),
and run in turns, in random order, as `colltune run` starts it: by files, or live where a rule has no file. What it
computes is compared. Then it runs once under `run --profile` for the share of collectives that is left, and three times
under `run --measure --share 50%`.

``--cost``: what it costs a program that colltune is in it. By turns it runs without, under a live selector whose rules
change nothing, under the profiler, and under `run --measure` of these rules.

``--auto``: programs that a tuning makes surely more than 3% faster run by `run --auto`, with a directory that is new,
ten times at least and for ``--auto-minutes``; then in turns by default, tuned, and by `run --auto` once more.

A step that is done is kept in bench/applications/PROGRAM-WHERE.json; the next call goes on there. After ``--minutes``
no further step begins. Writes bench/applications.json, of rows on links of 1 Gbit/s: ``codes`` that are among them;
``best_gain`` and ``geomean`` of the times by default over tuned, 1 where nothing was tuned;
``geomean_over_40_percent``, of codes that spend over 40% in collectives by default, rows of one code first taken
together, and ``at_most_over_40_percent``, if each call took its fastest choice's time; ``surely_slower``, how many
rows, on any link, are slower by 1% or more with their whole interval; ``measured_overlap``, of how many measured runs
the interval overlaps that of the whole runs; ``preload_cost``, the worst upper end of a 95% interval of the wall time
that --cost found to be added; ``auto_captured``, what the last runs by `run --auto` save over what the tuning saves,
the median of the programs; ``auto_cost``, the share of the time of all runs before them that trying took by their own
accounts, the worst program's. Prints the tables too.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from application_auto import RUNS, auto_job, lost
from application_cost import BeingThere, neutral_tuning
from application_rows import (
    COST_HEAD,
    HEAD,
    INPUTS,
    KEPT,
    Program,
    auto_figures,
    cost_figures,
    cost_rows,
    described,
    figures,
    kept_rows,
    load_steps,
    programs,
    row,
    saved_by_all,
)
from applications import OPENMPI, ROOT, Application, Layout, layout
from colltune.alltoallv.interposed import with_alltoallv
from colltune.alltoallv.lookup_table import TABLE, load_table
from colltune.alltoallv.matrices import alltoallv_share
from colltune.core.proven import Verdict
from colltune.deploy.live_selector import only_live
from colltune.profile.profile_files import load_profile
from colltune.session.application.run_application import RunOptions, ready_run
from colltune.store.earlier import HISTORY, PROFILE
from colltune.store.tuning import load_tuning
from harness import compiled, options_of, write_figures

SHARE = 50
MEASURED_RUNS = 3
LEAST_ALLTOALLV = 0.05
LEAST_GAIN = 1.03  # of a tuning, with its whole interval, for --auto
NOTHING_TO_TUNE = ("tuning cannot pay", "no call", "has no blocking")


def main() -> None:
    known = programs()
    parser = options_of(__doc__)
    parser.add_argument("--only", default=",".join(known))
    parser.add_argument("--where", default="4x2,8x1,1x2")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--built", type=Path, default=Path("bench") / "programs", help="what build.sh made")
    parser.add_argument("--npb", type=Path, help="the programs of NPB 3.4 for MPI")
    parser.add_argument("--minife", type=Path, help="where miniFE.x is")
    parser.add_argument("--until", choices=["profile", "tune", "compare", "measure"], default="measure")
    parser.add_argument("--cost", action="store_true", help="what being in the programs costs, and nothing else")
    parser.add_argument("--auto", action="store_true", help="what they gain by run --auto, and nothing else")
    parser.add_argument("--auto-minutes", type=float, default=10.0, help="for which each runs so before it is judged")
    parser.add_argument("--minutes", type=float, default=math.inf, help="after these no further step begins")
    asked = parser.parse_args()
    until_s = time.monotonic() + 60.0 * asked.minutes
    KEPT.mkdir(parents=True, exist_ok=True)
    names = asked.only.split(",")
    tools = mpich_of(asked.built)
    places = {key: str(one.resolve()) for key, one in places_of(asked).items()}
    if any("{examples}" in known[name].command[0] for name in names):
        compile_examples(tools, Path(places["examples"]))
    for where in asked.where.split(","):
        for mpi in sorted({known[name].mpi for name in names}):
            mpiexec = OPENMPI if mpi == "openmpi" else str(tools / "bin" / "mpiexec")
            with tempfile.TemporaryDirectory() as directory, layout(Path(directory), where, mpi, mpiexec) as there:
                for name in [one for one in names if known[one].mpi == mpi]:
                    with suppress(TimeoutError):
                        if (one := application(name, known[name], where, there, places)) is not None:
                            if mpi == "mpich":
                                libraries = f"{tools / 'lib'}:{places['built']}/usr/lib"
                                one.environment |= {"LD_LIBRARY_PATH": libraries, "NUMEXPR_MAX_THREADS": "1"}
                            Bench(name, known[name], one, asked, until_s).advance()
    report(known)


def mpich_of(built: Path) -> Path:
    """The MPICH of build.sh, else that of the environment which this Python is of: the same release."""
    venv = built.resolve() / "venv"
    return venv if venv.exists() else Path(sys.prefix)


def places_of(asked: argparse.Namespace) -> dict[str, Path]:
    """What stands for a directory in a command."""
    nowhere = Path("not given")
    given = {"npb": asked.npb or nowhere, "minife": asked.minife or nowhere}
    return {"built": asked.built, "examples": KEPT / "examples", **given}


def report(known: dict[str, Program]) -> None:
    """All that is kept: the figures to bench/applications.json, and the tables printed."""
    rows = kept_rows(known)
    costs = [line for one in rows for line in cost_rows(*one)]
    tables = [[*HEAD, *(row(*one) for one in rows)], described(known), [*COST_HEAD, *costs] if costs else []]
    print("\n\n".join("\n".join(table) for table in tables))
    write_figures("applications", {**figures(rows), **cost_figures(rows), **auto_figures(rows)})


def application(
    name: str, program: Program, where: str, there: Layout, places: Mapping[str, str]
) -> Application | None:
    """The program in a directory of its own, with its inputs; None, and why, where it is not here."""
    command = [word.format(**places) for word in program.command]
    if shutil.which(command[0]) is None:
        print(f"{program.title} is left out: {command[0]} is not here. From: {program.source}", file=sys.stderr)
        return None
    directory = (KEPT / f"{name}-{where}").resolve()
    directory.mkdir(exist_ok=True)
    more = [Path(path.format(**places)) for path in program.inputs]
    for path in [*(one for one in INPUTS.iterdir() if one.suffix not in (".toml", ".sh", ".inc")), *more]:
        if path.is_file():
            (directory / path.name).write_bytes(path.read_bytes())
    if program.prepare and not (directory / "prepared").exists():
        subprocess.run(program.prepare, shell=True, cwd=directory, check=True, capture_output=True)
        (directory / "prepared").touch()
    job, variables = [*there.job, *command], dict(there.variables)
    return Application(program.title, where, job, program.loop, directory, there.tune, there.cluster, variables)


def compile_examples(tools: Path, place: Path) -> None:
    place.mkdir(exist_ok=True)
    for name in ("fft_transpose", "k_core", "path_finding"):
        compiled(tools / "bin" / "mpicc", ROOT / "examples" / f"{name}.c", place / name, "-lm")


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
            if self.asked.cost or self.asked.auto:
                advance = self.advance_cost if self.asked.cost else self.advance_auto
                advance()
                return
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
        began_s = time.monotonic()
        self.one.run(self.one.job)
        whole_s = time.monotonic() - began_s
        self.one.colltune("profile", "--out", str(self.profile), "--mpiexec", self.one.tune[1], "--", *self.one.job)
        self.steps.share = in_collectives(self.profile)
        self.steps.collectives = calls_of(self.profile)
        return f"{whole_s:.2f} s a run, {self.steps.share:.0%} in collectives {self.steps.collectives}"

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
            if not any(why in str(error) for why in NOTHING_TO_TUNE):
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

    def timed(self, words: Sequence[str], variables: Mapping[str, str] | None = None) -> tuple[float, float, float]:
        """Of a run: its seconds, what it computed, and the seconds by its own clock; NaN for what it does not say."""
        time_s, text = self.one.run(words, variables)
        text = (self.one.directory / self.program.file).read_text() if self.program.file else text
        return time_s, last_number(self.program.result, text), last_number(self.program.clock, text)

    def round(self, order: random.Random) -> str:
        words, variables = self.started()
        took: dict[str, tuple[float, float, float]] = {}
        for way in order.sample(["default", "tuned"], 2):
            took[way] = self.timed(words, variables) if way == "tuned" else self.timed(self.one.job)
        for way, (time_s, result, clock_s) in took.items():
            kept = vars(self.steps)
            kept[f"{way}_s"].append(time_s)
            kept[f"{way}_results"].append(result)
            if self.program.clock:
                kept[f"{way}_clock_s"].append(clock_s)
        return f"round {len(self.steps.tuned_s)}: {took}"

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

    def advance_cost(self) -> None:
        """Rounds of all ways of being in the program. Any tuning of its collectives will do."""
        rules, order = self.tuned, random.Random(1)
        if not (rules / "tuning.json").exists():
            rules = self.one.directory / "any-rules"
        if not (rules / "tuning.json").exists():
            words = ["--runtime", "100h", "--budget", "20s", "--gate", "off", "--out", str(rules), *self.one.tune]
            self.step(lambda: self.one.colltune("tune", "--profile", str(self.profile), *words)[1])
        there = BeingThere(self.one, neutral_tuning(rules, self.one.directory / "neutral"))
        while len(self.steps.cost.get("default", [])) < self.asked.rounds:
            self.step(lambda: self.cost_round(there, order))

    def cost_round(self, there: BeingThere, order: random.Random) -> str:
        took = there.round(order)
        for way, seconds in took.items():
            self.steps.cost.setdefault(way, []).append(seconds)
        return f"cost, round {len(self.steps.cost['default'])}: {took}"

    def advance_auto(self) -> None:
        """Times in turns are those of the program's own clock where it has one: a command starts half a second."""
        steps, memory, order = self.steps, self.one.directory / "auto", random.Random(1)
        if (steps.gain()[1] or 0.0) <= LEAST_GAIN:
            return
        if not steps.auto_s:
            shutil.rmtree(memory, ignore_errors=True)
        while len(steps.auto_s) < RUNS or sum(steps.auto_s) < 60.0 * self.asked.auto_minutes:
            self.step(lambda: self.auto_run(memory))
        while len(steps.auto_turns.get("default", [])) < self.asked.rounds:
            self.step(lambda: self.auto_round(memory, order))

    def auto_run(self, memory: Path) -> str:
        began_s = time.monotonic()
        self.one.run(auto_job(self.one, memory))
        self.steps.auto_s.append(time.monotonic() - began_s)
        self.steps.auto_lost = lost(memory)
        return f"auto, run {len(self.steps.auto_s)}: {self.steps.auto_s[-1]:.4g} s, {self.steps.auto_lost:.3%} lost"

    def auto_round(self, memory: Path, order: random.Random) -> str:
        ways = {"default": (self.one.job, {}), "tuned": self.started(), "auto": (auto_job(self.one, memory), {})}
        took = {way: self.clocked(*ways[way]) for way in order.sample(list(ways), len(ways))}
        for way, seconds in took.items():
            self.steps.auto_turns.setdefault(way, []).append(seconds)
        return f"auto, round {len(self.steps.auto_turns['default'])}: {took}"

    def clocked(self, words: Sequence[str], variables: Mapping[str, str] | None = None) -> float:
        time_s, _, clock_s = self.timed(words, variables)
        return time_s if math.isnan(clock_s) else clock_s


def last_number(pattern: str, text: str) -> float:
    """What ``pattern`` finds last in ``text``; NaN where it finds nothing."""
    matches = re.findall(pattern, text) if pattern else []
    return float(matches[-1].replace("D", "E")) if matches else math.nan


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
