"""Compares an application with the rules and without, and finds the rules that make it slower.

Notations: a side is the set of collectives whose rules are in force; the empty one is the library's default.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from colltune.core.errors import LaunchError
from colltune.core.interval import Interval, SpeedVerdict
from colltune.judge import wording
from colltune.judge.verdict import PRACTICAL, ratio_interval, verdict_of

Side = frozenset[str]
DEFAULT_SIDE: Side = frozenset()


@dataclass(frozen=True, slots=True)
class Runs:
    """Wall times in seconds of an application, without and with the rules of ``side``; ``failure``: how it ended."""

    side: Side
    default_s: tuple[float, ...]
    tuned_s: tuple[float, ...]
    failure: str = ""

    @property
    def speedup(self) -> Interval:
        return ratio_interval(self.default_s, self.tuned_s)

    @property
    def verdict(self) -> SpeedVerdict:
        return SpeedVerdict.SLOWER if self.failure else verdict_of(self.speedup)

    @property
    def hurts(self) -> bool:
        """Whether the rules look slower, also where too few runs leave it open: such rules are of no use here."""
        return bool(self.failure) or self.verdict is SpeedVerdict.SLOWER or self.speedup.estimate < 1.0 - PRACTICAL

    def text(self, name: str = "the application") -> str:
        if self.failure:
            return f"{name} {self.failure}"
        return wording.sentence(name, self.speedup, f"99% interval of {len(self.tuned_s)} runs each")


def withdrawn_text(names: Iterable[str]) -> str:
    return f"withdrawn for it: {', '.join(names) or 'nothing'}"


@dataclass(frozen=True, slots=True)
class Checked:
    """``rounds``: the first is with all rules. ``withdrawn``: by the collectives whose rules the application is better
    without, the runs that say so.
    """

    rounds: tuple[Runs, ...]
    withdrawn: Mapping[str, Runs]

    def text(self, name: str) -> str:
        """The sentence on the application."""
        last = self.rounds[-1]
        lost = withdrawn_text(f"the rules of {one}" for one in sorted(self.withdrawn))
        text = f"with the rules {self.rounds[0].text(name)}; {lost}"
        left = self.withdrawn and last.side.isdisjoint(self.withdrawn)
        return f"{text}; with the rules of {_names(last.side)} {last.text()}" if left else text


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
    say(f"with all rules {whole.text()}")
    if not whole.hurts:
        return Checked(tuple(rounds), {})
    if len(every) == 1:
        return Checked(tuple(rounds), dict.fromkeys(every, whole))
    alone = by_turns([frozenset({name}) for name in sorted(every)], time_s, runs, order)
    for one in alone:
        say(f"with the rules of {_names(one.side)} alone {one.text()}")
    withdrawn = {name: one for one in alone if one.hurts for name in one.side}
    left = every.difference(withdrawn)
    rounds += alone
    if not withdrawn:
        withdrawn = dict.fromkeys(left, whole)
    elif len(left) > 1:
        (rest,) = by_turns([left], time_s, runs, order)
        rounds.append(rest)
        say(f"with the rules of {_names(left)} {rest.text()}")
        withdrawn |= dict.fromkeys(left, rest) if rest.hurts else {}
    return Checked(tuple(rounds), withdrawn)


def by_turns(sides: Sequence[Side], time_s: Callable[[Side], float], runs: int, order: random.Random) -> list[Runs]:
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
    return [Runs(side, default_s, tuple(times[side]), failures.get(side, "")) for side in sides]


def _names(side: Side) -> str:
    return ", ".join(sorted(side))
