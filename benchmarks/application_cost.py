"""What it costs a program that colltune is in it, with its calls as by default: --cost of bench_applications.py."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from applications import Application
from colltune.catalog import load
from colltune.core.rules import RuleSet
from colltune.deploy.live_selector import FOLDER
from colltune.emit.live_rules import LiveEmitter, live_basis
from colltune.machine.compile import cache_directory
from colltune.mpi.detect import mpi_at_hand
from colltune.mpi.program import launcher_of
from colltune.mpi.programs import library_for
from colltune.profile.profile_files import part_files, preload_command, preload_environment
from colltune.session.application.measure_run import begin_measuring
from colltune.session.application.run_application import ReadyRun, RunOptions, ready_run, unheard
from colltune.store.earlier import HISTORY
from colltune.store.tuning import load_tuning, save_tuning

SHARE = 5
Start = tuple[Sequence[str], Mapping[str, str]]


def neutral_tuning(tuned: Path, target: Path) -> Path:
    """The tuning with a rule for every call of its collectives that sets each control variable to 0, where the library
    decides by itself: so every call is made as by default, and the selector has work in each."""
    tuning = load_tuning(tuned)
    catalogue = load(tuning.environment.mpi, tuning.environment.mpi_version)
    rule_sets = {}
    for name in tuning.rule_sets:
        choice = min(catalogue.choices(name)[1:], key=lambda one: len(one.parameters))
        rule_sets[name] = RuleSet.always(name, live_basis(catalogue, name), choice)
    emitter = LiveEmitter(catalogue, lambda name, choice: [(word, 0) for word, _ in catalogue.settings(name, choice)])
    files = {f"{FOLDER}/{name}": data for name, data in emitter.emit(list(rule_sets.values())).items()}
    save_tuning(target, replace(tuning, live=rule_sets, files={**tuning.files, **files}))
    return target


class BeingThere:
    """A program with the library in it, in each way, as its ranks see it: without the start of the command itself."""

    def __init__(self, one: Application, neutral: Path) -> None:
        self.one, self.neutral = one, neutral
        self.around = {**os.environ, **one.environment}

    def round(self, order: random.Random) -> dict[str, list[float]]:
        """Wall and processor seconds of a run of each way, in random order."""
        ways: dict[str, Callable[[], Start]] = {
            "default": lambda: (self.one.job, {}),
            "live": lambda: self._ready(RunOptions(via="live")).started(),
            "profile": self._profiled,
            "measure": self._measured,
        }
        took = {}
        for way in order.sample(list(ways), len(ways)):
            shutil.rmtree(self.neutral / HISTORY, ignore_errors=True)
            words, variables = ways[way]()
            busy_s = processor_s()
            wall_s, _ = replace(self.one, time=None).run(words, variables)
            took[way] = [wall_s, processor_s() - busy_s]
        return took

    def _ready(self, options: RunOptions) -> ReadyRun:
        return ready_run(self.neutral, self.one.job, options, self.around, unheard)

    def _profiled(self) -> Start:
        out = self.one.directory / "cost-profile.json"
        for old in part_files(out):
            old.unlink()
        installation = mpi_at_hand(self.one.job, self.around, mpiexec=self.one.tune[1])
        launcher = launcher_of(self.one.job, installation.mpiexec.parent, self.around.get("PATH", ""))
        words = preload_command([launcher, *self.one.job[1:]], installation.library)
        library = library_for(installation, cache_directory(self.around))
        return words, preload_environment(library, out, self.around)

    def _measured(self) -> Start:
        ready = self._ready(RunOptions(measure=True, share=SHARE))
        run = begin_measuring(ready.force.directory, ready.force.tuning, SHARE, ready.application)
        return replace(ready, force=ready.force.exporting(run.variables)).started()


def processor_s() -> float:
    """What all processors of this machine have worked: the daemons that start ranks leave the tree of their parents."""
    user, nice, system, _idle, _wait, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
