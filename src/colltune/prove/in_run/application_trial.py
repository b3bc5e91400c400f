"""Compares an application with the rules and without, and withdraws the rules that make it slower.

Notations: a side is the set of collectives whose rules are in force; the empty one is the library's default.
"""

import random
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from colltune.bench.workbench import Workbench
from colltune.core.errors import InputError, LaunchError, on_os_error
from colltune.core.interval import SpeedVerdict
from colltune.core.proven import ApplicationRuns
from colltune.core.rules import RuleSet
from colltune.deploy.live_selector import with_live
from colltune.judge import wording
from colltune.judge.finding import Because, Finding
from colltune.judge.verdict import PRACTICAL, fewest_launches, ratio_interval, verdict_of
from colltune.machine.process import RunningProgram
from colltune.mpi.program import tuned_command
from colltune.prove.replay.on_workbench import non_default
from colltune.store.tuning import Tuning, write_files

Side = frozenset[str]
DEFAULT_SIDE: Side = frozenset()


def finding_of(runs: ApplicationRuns) -> Finding:
    """Whether the application is faster with the rules; slower where it failed with them."""
    if runs.failure:
        return Finding(SpeedVerdict.SLOWER, launches=len(runs.tuned_s), why=Because.FAILED)
    speedup = ratio_interval(runs.default_s, runs.tuned_s)
    return Finding(verdict_of(speedup), speedup, len(runs.tuned_s))


def hurts(runs: ApplicationRuns) -> bool:
    """Whether the rules look slower, also where too few runs leave it open: such rules are of no use here."""
    finding = finding_of(runs)
    looks_slower = finding.speedup is None or finding.speedup.estimate < 1.0 - PRACTICAL
    return looks_slower or finding.verdict is SpeedVerdict.SLOWER


def runs_text(runs: ApplicationRuns, name: str = "the application") -> str:
    """Whether it is faster, and by how much, or how it ended."""
    finding = finding_of(runs)
    if finding.speedup is None:
        return f"{name} {runs.failure}"
    return wording.sentence(name, finding.speedup, f"99% interval of {finding.launches} runs each")


def withdrawn_text(names: Iterable[str]) -> str:
    return f"withdrawn for it: {', '.join(names) or 'nothing'}"


@dataclass(frozen=True, slots=True)
class Checked:
    """``rounds``: the first is with all rules. ``withdrawn``: by the collectives whose rules the application is better
    without, the runs that say so.
    """

    rounds: tuple[ApplicationRuns, ...]
    withdrawn: Mapping[str, ApplicationRuns]

    def text(self, name: str) -> str:
        """The sentence on the application."""
        last = self.rounds[-1]
        lost = withdrawn_text(f"the rules of {collective}" for collective in sorted(self.withdrawn))
        text = f"with the rules {runs_text(self.rounds[0], name)}; {lost}"
        left = self.withdrawn and self.withdrawn.keys().isdisjoint(last.rules)
        return f"{text}; with the rules of {', '.join(last.rules)} {runs_text(last)}" if left else text


def check_application(
    collectives: Iterable[str], time_s: Callable[[Side], float], runs: int, seed: int, say: Callable[[str], None]
) -> Checked:
    """Runs the application by turns without and with all rules; if it is slower, with those of each collective alone.

    The rules of a collective that are slower alone are withdrawn. All others are withdrawn too if together they are
    still slower, or if all rules are slower and those of no collective alone. ``time_s`` raises LaunchError where the
    application fails: without rules that ends the check, with rules they are withdrawn.
    """
    order = random.Random(seed)
    every = frozenset(collectives)
    (whole,) = by_turns([every], time_s, runs, order)
    rounds = [whole]
    say(f"with all rules {runs_text(whole)}")
    if not hurts(whole):
        return Checked(tuple(rounds), {})
    if len(every) == 1:
        return Checked(tuple(rounds), dict.fromkeys(every, whole))
    alone = by_turns([frozenset({name}) for name in sorted(every)], time_s, runs, order)
    for of_one in alone:
        say(f"with the rules of {of_one.rules[0]} alone {runs_text(of_one)}")
    withdrawn = {of_one.rules[0]: of_one for of_one in alone if hurts(of_one)}
    left = every.difference(withdrawn)
    rounds += alone
    if not withdrawn:
        withdrawn = dict.fromkeys(left, whole)
    elif len(left) > 1:
        (rest,) = by_turns([left], time_s, runs, order)
        rounds.append(rest)
        say(f"with the rules of {', '.join(rest.rules)} {runs_text(rest)}")
        withdrawn |= dict.fromkeys(left, rest) if hurts(rest) else {}
    return Checked(tuple(rounds), withdrawn)


def by_turns(
    sides: Sequence[Side], time_s: Callable[[Side], float], runs: int, order: random.Random
) -> list[ApplicationRuns]:
    """Those of each side, beside the default; a side that fails is not run again. Raises where the default fails."""
    times: dict[Side, list[float]] = {side: [] for side in (DEFAULT_SIDE, *sides)}
    failures: dict[Side, str] = {}
    for _ in range(runs):
        for side in order.sample(list(times), len(times)):
            if side in failures:
                continue
            try:
                times[side].append(time_s(side))
            except LaunchError as error:
                if side == DEFAULT_SIDE:
                    raise
                failures[side] = error.what
    default_s = tuple(times[DEFAULT_SIDE])
    return [
        ApplicationRuns(tuple(sorted(side)), default_s, tuple(times[side]), failures.get(side, "")) for side in sides
    ]


LOG = "application.log"  # what the application printed meanwhile
_FEWEST_RUNS = 3
# A run with rules counts as hung after this many times the longest run by default.
_PATIENCE, _LEAST_PATIENCE_S = 10.0, 60.0


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
        """As many runs as there is time for, with patience by the longest by default. The first of these also warms up
        files and caches, so it is not compared. Raises LaunchError where the command fails without any tuning.
        """
        longest = [self._wall_s(DEFAULT_SIDE, None)]

        def time_s(side: Side) -> float:
            if side != DEFAULT_SIDE:
                return self._wall_s(side, max(_PATIENCE * max(longest), _LEAST_PATIENCE_S))
            longest.append(self._wall_s(side, None))
            return longest[-1]

        runs = max(_FEWEST_RUNS, min(fewest_launches(), int(self.budget_s / (2.0 * longest[0]))))
        self.say(f"running the application {runs} times each way, about {longest[0]:.3g} s a run")
        return check_application(non_default(self.tuning.rule_sets), time_s, runs, self.seed, self.say)

    def _variables(self, side: Side) -> dict[str, str]:
        """By which the rules of ``side`` are in force."""
        variables: Mapping[str, str] = {}
        if side != DEFAULT_SIDE:
            place = self.workplace / "-".join(sorted(side))
            part = without(self.bench, self.tuning, non_default(self.tuning.rule_sets) - side)
            write_files(place, part.files)
            variables = part.variables_at(place)
        return dict(variables)

    def _wall_s(self, side: Side, patience_s: float | None) -> float:
        """Of a run under the rules of ``side``. Raises LaunchError where it fails or is not done in time."""
        variables = self._variables(side)
        environment = {**self.bench.process_environment, **variables}
        beside, mpi = self.bench.installation.mpiexec.parent, self.tuning.environment.mpi
        argv = tuned_command(self.command, beside, mpi, variables, environment.get("PATH"))
        with open(self.log, "a", encoding="utf-8") as log:
            log.write(f"# {', '.join(sorted(side)) or 'default'}\n")
            log.flush()
            started_s = time.monotonic()
            code = _wait(argv, environment, log, patience_s)
            taken_s = time.monotonic() - started_s
        if code is None:
            raise LaunchError(f"was not done after {patience_s:.0f} s", f"See {self.log}")
        if code != 0:
            raise LaunchError(f"ended with exit code {code}", f"See {self.log}")
        return taken_s


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
    rule_sets = RuleSet.without(tuning.rule_sets, collectives)
    by_shape = None if tuning.by_shape is None else RuleSet.without(tuning.by_shape, collectives)
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
