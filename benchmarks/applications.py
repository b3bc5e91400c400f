"""Programs that benches run with a tuning and without, on this machine or on network namespaces."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from on_cluster import NamespaceCluster

ROOT = Path(__file__).resolve().parents[1]

OPENMPI = "mpiexec.openmpi"
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
