"""Applications on a cluster of namespaces, under a tuning whose effect is known."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from namespaces import NamespaceCluster

from colltune.bench.workbench import MachineOptions, Workbench, open_workbench
from colltune.core.rules import RuleSet
from colltune.core.sample import Choice
from colltune.deploy.live_selector import FOLDER, with_live
from colltune.emit.live_rules import LIVE_FILE, LiveEmitter, live_basis
from colltune.machine.compile import cache_directory
from colltune.mpi.installation import Installation
from colltune.mpi.programs import library_for
from colltune.store.earlier import GAIN, HISTORY
from colltune.store.tuning import Tuning, load_tuning, save_tuning
from commands import run_to_end
from compiled import program, shared

ROOT = Path(__file__).resolve().parents[2]
# On MPICH the radix of an algorithm that does not run, and what Open MPI has where nothing is set.
NEUTRAL, USUAL = 11, {"coll_tuned_use_dynamic_rules": 1, "coll_han_priority": 35}


@dataclass(frozen=True)
class Site:
    """A cluster with an MPI, and a place for programs and tunings that all its nodes see."""

    cluster: NamespaceCluster
    bench: Workbench
    place: Path
    ppn: int

    @classmethod
    def open(cls, cluster: NamespaceCluster, mpi: Installation, place: Path, ppn: int) -> "Site":
        place.mkdir(parents=True, exist_ok=True)
        options = MachineOptions(mpiexec=str(mpi.mpiexec), host_file=cluster.host_file(ppn))
        return cls(cluster, open_workbench(options, {**os.environ, **cluster.environment}), place, ppn)

    @property
    def is_openmpi(self) -> bool:
        return self.bench.environment.mpi == "openmpi"

    def program(self, name: str) -> str:
        """One of examples/, compiled."""
        return program(self.bench.installation.mpicc, ROOT / "examples" / f"{name}.c", "-O2")

    def slow_calls(self) -> Path:
        """The library that makes calls longer by a known time."""
        return shared("slow_calls.c", compiler=self.bench.installation.mpicc)

    def tuning(self, name: str, rule_sets: Mapping[str, RuleSet]) -> Path:
        """A tuning directory with ``rule_sets`` for the live selector."""
        plain = {one: RuleSet.always(one, rules.basis) for one, rules in rule_sets.items()}
        directory = self.place / name
        save_tuning(directory, with_live(self.bench, Tuning(self.bench.environment, plain, {}, {}), rule_sets))
        return directory

    def neutral(self, name: str, collective: str) -> Path:
        """A tuning with a rule for each call of ``collective`` that sets the library's own, as by default."""
        catalogue, choices = self.bench.catalogue, self.bench.catalogue.choices(collective)[1:]
        choice = next((one for one in choices if "k" in dict(one.parameters)), choices[0])
        rules = RuleSet.always(collective, live_basis(catalogue, collective), choice)

        def settings(of: str, one: Choice) -> list[tuple[str, int]]:
            names = [variable for variable, _ in catalogue.settings(of, one)]
            return [(variable, NEUTRAL if variable.endswith("_KVAL") else USUAL.get(variable, 0)) for variable in names]

        live = {f"{FOLDER}/{file}": data for file, data in LiveEmitter(catalogue, settings).emit([rules]).items()}
        tuning = load_tuning(directory := self.tuning(name, {collective: rules}))
        save_tuning(directory, replace(tuning, files={**tuning.files, **live}))
        return directory

    def run(
        self,
        tuned: Path | None,
        flags: Sequence[str],
        command: Sequence[str],
        *,
        slow: str = "",
        slow_us: float = 0.0,
        preload: str = "",
        timeout_s: float = 200.0,
    ) -> subprocess.CompletedProcess[str]:
        """``command`` on all nodes, by `colltune run FLAGS TUNED` where there is a tuning; calls ``slow`` are longer by
        ``slow_us``. ``preload``: a library in place of the one that does so."""
        hosts, ranks = str(self.cluster.host_file(self.ppn)), str(self.ppn * len(self.cluster.hosts))
        behind = [preload or str(self.slow_calls()), self.cluster.environment.get("LD_PRELOAD", "")]
        # Our library comes first, and is left there, so that what is longer is the MPI's.
        first = [] if tuned is None else [str(library_for(self.bench.installation, cache_directory(os.environ)))]
        told = {"LD_PRELOAD": ":".join(filter(None, [*first, *behind]))}
        if slow and tuned is not None:
            radix = re.search(rf"(\w+)={NEUTRAL}\b", (tuned / FOLDER / LIVE_FILE).read_text())
            told |= {"CT_SLOW": slow, "CT_SLOW_US": str(slow_us), "CT_SLOW_VARIABLE": radix[1] if radix else ""}
        job = [str(self.bench.installation.mpiexec)]
        if self.is_openmpi:
            job += ["--hostfile", str(self._slots()), "--bind-to", "none", "--map-by", f"ppr:{self.ppn}:node"]
            job += [word for name in told for word in ("-x", name)]
        else:
            job += ["-f", hosts]
        job += ["-n", ranks, *command]
        if tuned is not None:
            job = [sys.executable, "-m", "colltune", "run", *flags, str(tuned), "--", *job]
        environment = {
            **os.environ,
            **self.cluster.environment,
            **told,
            "PYTHONPATH": str(ROOT / "src"),
            "OMP_NUM_THREADS": "1",
        }
        return run_to_end(self.cluster.inside(*job), env=environment, timeout=timeout_s)

    def _slots(self) -> Path:
        path = self.place / "slots"
        path.write_text("".join(f"{host} slots={self.ppn}\n" for host in self.cluster.hosts))
        return path


def latest_gain(tuned: Path) -> dict[str, Any]:
    """What the last `run --measure` left in the history of ``tuned``."""
    place = max(path for path in (tuned / HISTORY).glob("*") if (path / GAIN).exists())
    return dict(json.loads((place / GAIN).read_text()))
