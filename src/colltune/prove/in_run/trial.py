"""Compares the application itself with the tuning and without, and withdraws the tuning where it is slower."""

import random
import shutil
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from colltune.bench.workbench import Workbench
from colltune.core.errors import InputError, LaunchError, on_os_error
from colltune.core.heap import KEEPING, setting_text
from colltune.core.rules import RuleSet
from colltune.core.summary import HeapRuns
from colltune.deploy.live_selector import with_live
from colltune.machine.process import RunningProgram
from colltune.mpi.program import tuned_command
from colltune.prove.compare.verdict import PointVerdict, fewest_launches
from colltune.prove.in_run.whole_runs import DEFAULT_SIDE, Checked, Runs, Side, check_application
from colltune.prove.replay.on_workbench import departing
from colltune.store.tuning import Tuning, write_files

LOG = "application.log"  # what the application printed meanwhile
_FEWEST_RUNS = 3
# A run with rules counts as hung after this many times the longest run by default.
_PATIENCE, _LEAST_PATIENCE_S = 10.0, 60.0
# Runs a command, and writes the most memory that any of the processes took which it waited for.
_PEAK = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(128 - code if code < 0 else code)
"""


@dataclass(frozen=True)
class Trial:
    """Runs ``command`` under parts of ``tuning``, whose files go to ``workplace``, which all nodes see.

    What it prints goes to ``log``. ``budget_s``: for one comparison, of three runs each at least.
    """

    bench: Workbench
    tuning: Tuning
    command: Sequence[str]
    workplace: Path
    log: Path
    budget_s: float
    seed: int
    say: Callable[[str], None] = lambda _text: None

    def check(self) -> Checked:
        """Raises LaunchError where the command fails without any tuning."""
        longest = [self._run(DEFAULT_SIDE, None)]  # also warms up files and caches, so it is not compared

        def time_s(side: Side) -> float:
            taken_s = self._run(
                side, None if side == DEFAULT_SIDE else max(_PATIENCE * max(longest), _LEAST_PATIENCE_S)
            )
            if side == DEFAULT_SIDE:
                longest.append(taken_s)
            return taken_s

        runs = max(_FEWEST_RUNS, min(fewest_launches(), int(self.budget_s / (2.0 * longest[0]))))
        self.say(f"running the application {runs} times each way, about {longest[0]:.3g} s a run")
        return check_application(departing(self.tuning.rule_sets), time_s, runs, self.seed, self.say)

    def _run(self, side: Side, patience_s: float | None) -> float:
        """Seconds from start to end. Raises LaunchError for an exit code other than 0, and after ``patience_s``."""
        variables = self._variables(side)
        return self._wall_s(variables, patience_s, "default" if side == DEFAULT_SIDE else ", ".join(sorted(side)))

    def check_heap(self) -> HeapRuns:
        """Runs the application, under all rules of the tuning, by turns as it is and with a heap that keeps memory.

        Raises LaunchError where it fails as it is.
        """
        every, order, failure = frozenset(departing(self.tuning.rule_sets)), random.Random(self.seed), ""
        times: dict[bool, list[float]] = {False: [], True: []}
        peaks = {False: 0, True: 0}

        def run(keeps: bool) -> float:
            patience_s = max(_PATIENCE * max(times[False]), _LEAST_PATIENCE_S) if keeps else None
            variables = {**self._variables(every), **(KEEPING if keeps else {})}
            peak = self.workplace / "peak"
            time_s = self._wall_s(variables, patience_s, "the heap keeps memory" if keeps else "as it is", peak)
            peaks[keeps] = max(peaks[keeps], 1024 * int(peak.read_text()))
            return time_s

        times[False].append(run(False))
        runs = max(_FEWEST_RUNS, min(fewest_launches(), int(self.budget_s / (2.0 * times[False][0]))))
        turns = [keeps for _ in range(runs - 1) for keeps in order.sample((False, True), 2)]
        for keeps in (True, *turns):
            try:
                times[keeps].append(run(keeps))
            except LaunchError as error:
                if not keeps:
                    raise
                failure = error.what
                break
        return _heap_runs(times, (peaks[False], peaks[True]), failure)

    def _variables(self, side: Side) -> dict[str, str]:
        """By which the rules of ``side`` are in force."""
        variables: Mapping[str, str] = {}
        if side != DEFAULT_SIDE:
            place = self.workplace / "-".join(sorted(side))
            part = without(self.bench, self.tuning, departing(self.tuning.rule_sets) - side)
            write_files(place, part.files)
            variables = part.variables_at(place)
        return dict(variables)

    def _wall_s(
        self, variables: Mapping[str, str], patience_s: float | None, title: str, peak: Path | None = None
    ) -> float:
        """As ``_run``. The most memory of a process on this node goes to ``peak``, in KiB."""
        environment = {**self.bench.process_environment, **variables}
        beside, mpi = self.bench.installation.mpiexec.parent, self.tuning.environment.mpi
        argv = tuned_command(self.command, beside, mpi, variables, environment.get("PATH"))
        if peak is not None:
            argv = [sys.executable, "-c", _PEAK, str(peak), *argv]
        with open(self.log, "a", encoding="utf-8") as log:
            log.write(f"# {title}\n")
            log.flush()
            started_s = time.monotonic()
            code = _wait(argv, environment, log, patience_s)
            taken_s = time.monotonic() - started_s
        if code is None:
            raise LaunchError(f"was not done after {patience_s:.0f} s", f"See {self.log}")
        if code != 0:
            raise LaunchError(f"ended with exit code {code}", f"See {self.log}")
        return taken_s


def _heap_runs(times: Mapping[bool, Sequence[float]], peaks: tuple[int, int], failure: str) -> HeapRuns:
    setting, default_s, kept_s = setting_text(), tuple(times[False]), tuple(times[True])
    if failure:
        finding = f"With a heap that keeps memory the application {failure}."
        return HeapRuns(setting, default_s, kept_s, peaks, proven=False, finding=finding)
    runs = Runs(DEFAULT_SIDE, default_s, kept_s)
    proven = runs.verdict is PointVerdict.FASTER
    grown = f"its largest process takes {peaks[1] / 2**20:.0f} MiB in place of {peaks[0] / 2**20:.0f} MiB"
    advice = f"Set it in your job script: {setting}" if proven else "That is no proof, so leave it out"
    finding = f"With a heap that keeps memory {runs.text()}, and {grown}. {advice}."
    return HeapRuns(setting, default_s, kept_s, peaks, proven, finding)


def require_command(command: Sequence[str], beside: Path, environment: Mapping[str, str]) -> None:
    """Raises InputError where there is no such program. Called before the tuning, not after it."""
    if not command:
        raise InputError("the profile does not say by which command it was taken", "Run `colltune profile` again")
    program = tuned_command(command, beside, "", {}, environment.get("PATH"))[0]
    if shutil.which(program, path=environment.get("PATH")) is None:
        raise InputError(
            f"cannot run {command[0]}, by which the profile was taken",
            "Run `tune` where it can be run, or without --check",
        )


def without(bench: Workbench, tuning: Tuning, collectives: Collection[str], failed: Collection[str] = ()) -> Tuning:
    """``tuning`` with ``collectives`` at the library's own choice in its file; ``failed`` of them in the live
    selector's too, which knows the program it is in.
    """

    def left_of(rule_sets: Mapping[str, RuleSet]) -> dict[str, RuleSet]:
        return {n: RuleSet.always(n, rules.basis) if n in collectives else rules for n, rules in rule_sets.items()}

    rule_sets = left_of(tuning.rule_sets)
    by_shape = None if tuning.by_shape is None else left_of(tuning.by_shape)
    left = bench.tuning(rule_sets)
    tuning = replace(tuning, rule_sets=rule_sets, files=left.files, variables=left.variables, by_shape=by_shape)
    live = tuning.live or {}
    return with_live(bench, tuning, {name: rules for name, rules in live.items() if name not in failed})


def _wait(argv: Sequence[str], environment: Mapping[str, str], output: IO[str], patience_s: float | None) -> int | None:
    """The exit code; None where the job was ended after ``patience_s``."""
    with on_os_error("cannot be started", "Check the command of the profile", LaunchError):
        launch = RunningProgram(argv, environment, stdout=output, stderr=output, guest=True)
    try:
        return launch.wait(patience_s)
    finally:
        if launch.process.poll() is None:
            launch.end()
