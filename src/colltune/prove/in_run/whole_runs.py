"""Compares an application with the rules and without, and finds the rules that make it slower.

Notations: a side is the set of collectives whose rules are in force; the empty one is the library's default.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from colltune.core.errors import LaunchError
from colltune.core.interval import SpeedVerdict
from colltune.core.proven import ApplicationRuns
from colltune.judge import wording
from colltune.judge.finding import Because, Finding
from colltune.judge.verdict import PRACTICAL, ratio_interval, verdict_of

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
