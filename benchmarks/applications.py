"""Applications with the default, with a tuning made by their profile, and with thresholds only; writes the table.

    python benchmarks/applications.py [--rounds 5] [--only fft,fft256,solver,hpcc,lammps] [--budget 30s] [--no-write]

The two programs of examples/ run under MPICH on eight network namespaces (1 Gbit/s; two ranks on this machine where
there can be none), Debian's HPCC and LAMMPS under Debian's Open MPI on two ranks here. Each is profiled, tuned by its
profile, and run by turns in all ways. Thresholds only: the best that MPICH 3's cross-over sizes can say of the measured
calls (`colltune export --to cvars`), put in force as rules, because MPICH 4 and later do not read them any more; Open
MPI has no such thresholds. Times are those that the programs print of their main loop, of HPCC those of the command.
The table goes to benchmarks/history/applications.md, between the marks there.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import monotonic

from colltune.catalog import load
from colltune.core.medians import medians_of
from colltune.core.proven import Verdict
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice
from colltune.core.space import Space
from colltune.distill.minimal_rules import distill_proven
from colltune.emit.contract import variables_for
from colltune.emit.mpich.selection_file import MpichEmitter
from colltune.emit.thresholds import MODELS, fit
from colltune.mpi.detect import find_mpi
from colltune.profile.advice import benefit_of
from colltune.profile.profile_files import load_profile
from colltune.store.journal import read_journal
from colltune.store.tuning import JOURNAL, Tuning, load_tuning, save_tuning
from on_cluster import NamespaceCluster, namespace_cluster, why_not

ROOT = Path(__file__).resolve().parents[1]

NODES = 8
MPICH = Path(sys.executable).parent / "mpiexec"
OPENMPI = "mpiexec.openmpi"
MARKS = "<!-- applications -->", "<!-- end of applications -->"
WAYS = ("default", "tuned", "thresholds")
_LJ = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 8 0 8 0 8
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 1
run 3000
"""


@dataclass
class Application:
    """``time`` finds the seconds in what the program prints; None takes the whole command."""

    name: str
    where: str
    job: list[str]
    time: str | None
    directory: Path
    tune: list[str]
    cluster: NamespaceCluster | None = None
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, command: Sequence[str], variables: Mapping[str, str] | None = None) -> tuple[float, str]:
        started_s = monotonic()
        inside = list(command) if self.cluster is None else self.cluster.inside(*command)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", **self.environment}
        environment |= variables or {}
        done = subprocess.run(
            inside, env=environment, cwd=self.directory, capture_output=True, text=True, timeout=300, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(
                f"{' '.join(command)} ended with {done.returncode}: {(done.stdout + done.stderr)[-1500:]}"
            )
        found = None if self.time is None else re.search(self.time, done.stdout)
        return float(found.group(1)) if found else monotonic() - started_s, done.stdout

    def colltune(self, *words: str) -> tuple[float, str]:
        return self.run([sys.executable, "-m", "colltune", *words])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="fft,fft256,solver,hpcc,lammps")
    parser.add_argument("--budget", default="30s")
    parser.add_argument("--no-write", action="store_true", help="only print the table")
    options = parser.parse_args()
    rows = [
        "| application | ranks | in collectives | rules | default | tuned | thresholds only |",
        "|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        with applications(place, options.only.split(",")) as found:
            for one in found:
                try:
                    rows.append(row(one, place, options.rounds, options.budget))
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    print(error, file=sys.stderr)
                    rows.append(f"| {one.name} | {one.where} | could not be run | | | | |")
                print(rows[-1], flush=True)
    table = "\n".join(rows)
    print(table)
    if not options.no_write:
        write(ROOT / "benchmarks" / "history" / "applications.md", table)


@contextmanager
def applications(place: Path, names: Sequence[str]) -> Iterator[list[Application]]:
    """Those of ``names`` that can be run here; of the others it says on stderr why not."""
    found: list[Application] = []
    reason = why_not()
    if reason is None and {"fft", "solver"} & set(names):
        with namespace_cluster(place / "cluster", NODES, realtime=False) as cluster:
            found += examples(place, names, cluster)
            yield found + debian(place, names)
        return
    if reason is not None:
        print(f"the examples run on this machine alone: {reason}", file=sys.stderr)
    yield examples(place, names, None) + debian(place, names)


def examples(place: Path, names: Sequence[str], cluster: NamespaceCluster | None) -> list[Application]:
    ranks = NODES if cluster is not None else 2
    job = [str(MPICH), "-n", str(ranks)]
    tune = ["--mpiexec", str(MPICH)]
    if cluster is not None:
        hosts = str(cluster.host_file(1))
        job, tune = [str(MPICH), "-f", hosts, "-n", str(ranks)], [*tune, "--hostfile", hosts]
    else:
        tune += ["--ppn", "2"]
    environment = dict(cluster.environment) if cluster is not None else {}
    known = {
        "fft": ("FFT, 1 KiB blocks", "fft_transpose.c", ["64", "400"], r"step_s (\S+)"),
        "fft256": ("FFT, 16 KiB blocks", "fft_transpose.c", ["256", "60"], r"step_s (\S+)"),
        "solver": ("solver", "solver.c", ["1000", "1000"], r"step_s (\S+)"),
    }
    found = []
    for name in names:
        if name in known:
            title, source, arguments, time = known[name]
            program = place / Path(source).stem
            compiler = str(MPICH.with_name("mpicc"))
            text = str(ROOT / "examples" / source)
            subprocess.run([compiler, "-O2", text, "-lm", "-o", str(program)], check=True)
            where = f"{NODES} nodes x 1" if cluster is not None else "1 x 2"
            whole = [*job, str(program), *arguments]
            found.append(Application(title, where, whole, time, place, tune, cluster, environment))
    return found


def debian(place: Path, names: Sequence[str]) -> list[Application]:
    environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    known: dict[str, tuple[str, list[str], str | None]] = {
        "hpcc": ("HPCC", ["hpcc"], None),
        "lammps": ("LAMMPS, Lennard-Jones", ["lmp", "-in", "in.lj", "-log", "none"], r"Loop time of (\S+)"),
    }
    (place / "in.lj").write_text(_LJ)
    sample = Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")
    if sample.exists():
        # One process column in place of two: two ranks. A matrix that takes seconds.
        text = re.sub(r"^2( +Qs)$", r"1\1", sample.read_text(), flags=re.MULTILINE)
        text = re.sub(r"^1000( +Ns)$", r"2000\1", text, flags=re.MULTILINE)
        (place / "hpccinf.txt").write_text(text)
    found = []
    for name, (title, program, time) in known.items():
        if name not in names:
            continue
        if shutil.which(program[0]) is None or shutil.which(OPENMPI) is None:
            print(f"{title} is not here: apt-get install {name} openmpi-bin", file=sys.stderr)
            continue
        tune = ["--mpiexec", OPENMPI, "--ppn", "2"]
        found.append(Application(title, "1 x 2", [OPENMPI, "-n", "2", *program], time, place, tune, None, environment))
    return found


def row(one: Application, place: Path, rounds: int, budget: str) -> str:
    key = re.sub(r"\W+", "_", one.name)
    profile, tuned, threshold = place / f"{key}.json", place / f"{key}_tuned", place / f"{key}_thresholds"
    one.colltune("profile", "--out", str(profile), "--mpiexec", one.tune[1], "--", *one.job)
    try:
        _, said = one.colltune(
            "tune", "--profile", str(profile), "--runtime", "10h", "--budget", budget, "--out", str(tuned), *one.tune
        )
        print(said, file=sys.stderr)
    except RuntimeError as error:
        if "tuning cannot pay" not in str(error):
            raise
        print(error, file=sys.stderr)
    # As by `colltune env`: the start of `colltune run` would count in what takes a second.
    ways: dict[str, Mapping[str, str]] = {"default": {}}
    if (tuned / "tuning.json").exists():
        ways["tuned"] = load_tuning(tuned).variables_at(tuned)
        if thresholds_only(tuned, threshold):
            ways["thresholds"] = load_tuning(threshold).variables_at(threshold)
    times: dict[str, list[float]] = {way: [] for way in ways}
    order = random.Random(1)
    for _ in range(rounds):
        for way in order.sample(list(ways), len(ways)):
            times[way].append(one.run(one.job, ways[way])[0])
    for way, found in times.items():
        print(way, ways[way], [round(time_s, 6) for time_s in found], file=sys.stderr)
    base_s = median(times["default"])
    share = benefit_of(load_profile(profile)).collectives
    rules = "nothing to gain" if "tuned" not in ways else str(proven(tuned))
    cells = [one.name, one.where, f"{share:.0%}", rules, f"{base_s:.3g} s"]
    cells += [ratio(times[way], base_s) if way in times else "-" for way in WAYS[1:]]
    return "| " + " | ".join(cells) + " |"


def ratio(times: Sequence[float], base_s: float) -> str:
    found = sorted(time_s / base_s for time_s in times)
    return f"{median(found):.2f} ({found[0]:.2f} to {found[-1]:.2f})"


def proven(tuned: Path) -> int:
    return len(load_tuning(tuned).summary.having(Verdict.KEPT))


def thresholds_only(tuned: Path, out: Path) -> bool:
    """Writes the tuning that the best thresholds for the same measurements make; False where there are none."""
    tuning = load_tuning(tuned)
    made = tuning.environment
    if made.mpi != "mpich":
        return False
    catalogue = load(made.mpi, made.mpi_version)
    medians = medians_of(read_journal(tuned / JOURNAL).samples)
    rule_sets: dict[str, RuleSet] = {}
    for name in sorted({scenario.collective for scenario, _ in medians} & MODELS.keys()):
        scenarios = sorted({s for s, _ in medians if s.collective == name and s.nodes == made.nodes})
        if (best := fit(name, {pair: medians[pair] for pair in medians if pair[0] in scenarios})) is None:
            continue
        chosen = {
            s: _legal(catalogue.legal(s, made.thread_level), MODELS[name].decide(s, best.values)) for s in scenarios
        }
        space = Space(name, tuple(scenarios), lambda s: tuple(catalogue.legal(s, made.thread_level)))
        rule_sets[name] = distill_proven(chosen, space, catalogue.collective(name).basis)
    if not rule_sets:
        return False
    mpi = find_mpi(made.facts["mpiexec"], os.environ)
    emitter = MpichEmitter.from_library(mpi.libmpi, mpi.version)
    written = emitter.emit(list(rule_sets.values()))
    files = {f"mpich/{name}": data for name, data in written.items()}
    save_tuning(out, Tuning(made, rule_sets, files, variables_for(emitter, Path("{directory}/mpich"), written)))
    return True


def _legal(choices: Sequence[Choice], algorithm: str) -> Choice:
    return Choice(algorithm) if Choice(algorithm) in choices else DEFAULT


def write(path: Path, table: str) -> None:
    """Puts ``table`` between the marks of a page."""
    before, rest = path.read_text().split(MARKS[0])
    path.write_text(f"{before}{MARKS[0]}\n{table}\n{MARKS[1]}{rest.split(MARKS[1])[1]}")


if __name__ == "__main__":
    main()
