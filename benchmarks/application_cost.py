"""What it costs a program that colltune is in it, with its calls as by default: --cost of bench_applications.py."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from applications import Application
from colltune.deploy.live_selector import FOLDER
from colltune.emit.live_rules import LIVE_FILE
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
from cluster_applications import NEUTRAL  # noqa: E402

Start = tuple[Sequence[str], Mapping[str, str]]


def neutral_tuning(tuned: Path, target: Path) -> Path:
    """The tuning with its rules, none of which changes anything: a call that meets one is made as by default."""
    tuning = load_tuning(tuned)
    name = next(name for name in tuning.files if name.endswith(f"{FOLDER}/{LIVE_FILE}"))
    setting = "-" if tuning.environment.mpi == "openmpi" else f"{NEUTRAL}=777777"
    rules = re.sub(r"^(choice \d+) \S+ \S+", rf"\1 - {setting}", tuning.files[name].decode(), flags=re.M)
    save_tuning(target, replace(tuning, files={**tuning.files, name: rules.encode()}))
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
