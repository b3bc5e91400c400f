"""Decisions as ordered rules: what every file format expresses, and what Python can evaluate.

Sizes, ranks and ranks per node are decided by functions of a whole number that are constant between bounds (`Steps`).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

from colltune.core.sample import DEFAULT, Choice, Scenario, SizeBasis

_T = TypeVar("_T")
_U = TypeVar("_U")
_V = TypeVar("_V")


@dataclass(frozen=True, slots=True)
class Span:
    """The whole numbers from ``low`` to ``high``, both included; None is no upper bound."""

    low: int
    high: int | None

    @property
    def is_empty(self) -> bool:
        return self.high is not None and self.high < self.low

    def holds(self, number: int) -> bool:
        return self.low <= number and (self.high is None or number <= self.high)

    def meets(self, other: Span) -> bool:
        """Whether some number lies in both."""
        return (other.high is None or self.low <= other.high) and (self.high is None or other.low <= self.high)


@dataclass(frozen=True)
class Steps(Generic[_T]):
    """``pairs``: ascending upper bounds, the last one None, each with the value up to there.

    No two neighbours have the same value, so equal functions are equal objects. Make it by ``of``, ``cut`` or
    ``always``. Raises ValueError for pairs that are not so.
    """

    pairs: tuple[tuple[int | None, _T], ...]

    def __post_init__(self) -> None:
        bounds = self.bounds
        if not self.pairs or self.pairs[-1][0] is not None or len(bounds) != len(self.pairs) - 1:
            raise ValueError("the last step, and no other, has no bound")
        if any(bound >= following for bound, following in pairwise(bounds)):
            raise ValueError(f"bounds that do not ascend: {bounds}")
        if any(step[1] == following[1] for step, following in pairwise(self.pairs)):
            raise ValueError("two neighbouring steps have the same value")

    @classmethod
    def of(cls, pairs: Iterable[tuple[int | None, _T]]) -> Steps[_T]:
        """From (upper bound, value) in order: steps that nothing reaches are left out, equal neighbours become one."""
        kept: list[tuple[int | None, _T]] = []
        for bound, value in pairs:
            last = kept[-1][0] if kept else -1
            if last is None or (bound is not None and bound <= last):
                continue
            if kept and kept[-1][1] == value:
                kept.pop()
            kept.append((bound, value))
        return cls(tuple(kept))

    @classmethod
    def always(cls, value: _T) -> Steps[_T]:
        return cls(((None, value),))

    @classmethod
    def cut(cls, bounds: Iterable[int | None], value_of: Callable[[Span], _T], least: int = 0) -> Steps[_T]:
        """The numbers from ``least`` on, cut behind each of ``bounds``, with the value of each part."""
        ends = sorted({bound for bound in bounds if bound is not None and bound >= least})
        starts = [least, *(end + 1 for end in ends)]
        return cls.of((end, value_of(Span(start, end))) for start, end in zip(starts, (*ends, None), strict=True))

    @property
    def bounds(self) -> tuple[int, ...]:
        """The upper bounds, without the last step, which has none."""
        return tuple(bound for bound, _ in self.pairs if bound is not None)

    @property
    def last(self) -> _T:
        """The value beyond every bound."""
        return self.pairs[-1][1]

    def at(self, number: int) -> _T:
        return self.pairs[bisect_left(self.bounds, number)][1]

    def spans(self, least: int = 0) -> Iterator[tuple[Span, _T]]:
        """The steps that reach numbers from ``least`` on, each as where it holds and its value."""
        low = least
        for bound, value in self.pairs:
            if bound is None or bound >= low:
                yield Span(low, bound), value
                low = low if bound is None else bound + 1

    def map(self, value_of: Callable[[_T], _U]) -> Steps[_U]:
        return Steps.of((bound, value_of(value)) for bound, value in self.pairs)

    def combine(self, other: Steps[_U], value_of: Callable[[_T, _U], _V]) -> Steps[_V]:
        """``value_of`` the values of both, number by number."""
        return Steps.cut((*self.bounds, *other.bounds), lambda span: value_of(self.at(span.low), other.at(span.low)))

    def restrict(self, span: Span, outside: _T) -> Steps[_T]:
        """These steps inside ``span``, and ``outside`` elsewhere."""
        inside = Steps.cut((span.low - 1, span.high), lambda part: span.holds(part.low))
        return self.combine(inside, lambda value, holds: value if holds else outside)


@dataclass(frozen=True, slots=True)
class Rule:
    """Applies where ppn, ranks and size are at most the given bounds; None is no bound.

    ``max_size`` is in the rule set's basis, in bytes.
    """

    max_ppn: int | None
    max_ranks: int | None
    max_size: int | None
    choice: Choice

    def matches(self, ppn: int, ranks: int, size: int) -> bool:
        return (
            (self.max_ppn is None or ppn <= self.max_ppn)
            and (self.max_ranks is None or ranks <= self.max_ranks)
            and (self.max_size is None or size <= self.max_size)
        )

    @property
    def bounds(self) -> tuple[int | None, int | None, int | None]:
        """Of ranks per node, ranks and size."""
        return self.max_ppn, self.max_ranks, self.max_size


@dataclass(frozen=True, slots=True)
class Region:
    """Where one decision holds. ``size`` is in bytes of the rules' basis."""

    ppn: Span
    ranks: Span
    size: Span


@dataclass(frozen=True)
class RuleSet:
    """The decisions for one collective: the first rule that matches decides.

    Rules are sorted from most to least restrictive: by ppn bound, then ranks bound, then size bound. Every
    (ppn, ranks) block ends with an unbounded size and the last rule has no bound at all, so the set is
    total; this nesting is what lets a file write it as a tree. Raises ValueError for rules that are not so.
    """

    collective: str
    basis: SizeBasis
    rules: tuple[Rule, ...]

    def __post_init__(self) -> None:
        if not self.rules:
            raise ValueError("a rule set needs at least the rule that always applies")
        keys = [tuple(math.inf if bound is None else bound for bound in rule.bounds) for rule in self.rules]
        if sorted(set(keys)) != keys:
            raise ValueError(f"rules of {self.collective} are not in order, or two have the same bounds")
        last = self.rules[-1]
        if last.bounds != (None, None, None):
            raise ValueError(f"the last rule of {self.collective} has a bound, so some calls match no rule")
        for rule, after in zip(self.rules, (*self.rules[1:], None), strict=True):
            ends_block = after is None or (rule.max_ppn, rule.max_ranks) != (after.max_ppn, after.max_ranks)
            if ends_block and rule.max_size is not None:
                raise ValueError(f"a block of {self.collective} has no rule for its largest sizes")
            if after is not None and rule.max_ppn != after.max_ppn and rule.max_ranks is not None:
                raise ValueError(f"a ppn block of {self.collective} has no rule for its largest rank counts")
        if self.basis is SizeBasis.NONE and any(rule.max_size is not None for rule in self.rules):
            raise ValueError(f"rules of {self.collective} cannot depend on the size")

    @property
    def departs(self) -> bool:
        """Whether any call runs something else than the library's default."""
        return any(rule.choice != DEFAULT for rule in self.rules)

    def regions(self) -> Iterator[tuple[Region, Rule]]:
        """Each rule with where it decides: up to its bounds, and beyond those of the rules before it."""
        ppn, ranks, size = 1, 1, 0
        for rule, after in zip(self.rules, (*self.rules[1:], None), strict=True):
            yield Region(Span(ppn, rule.max_ppn), Span(ranks, rule.max_ranks), Span(size, rule.max_size)), rule
            if after is not None and after.max_ppn != rule.max_ppn:
                ppn, ranks, size = (rule.max_ppn or 0) + 1, 1, 0
            elif after is not None and after.max_ranks != rule.max_ranks:
                ranks, size = (rule.max_ranks or 0) + 1, 0
            else:
                size = (rule.max_size or 0) + 1

    def region_of(self, rule: Rule) -> Region:
        """Where ``rule``, one of these, decides."""
        return next(region for region, own in self.regions() if own == rule)

    def rule_for(self, scenario: Scenario) -> Rule:
        """The rule that decides for ``scenario``."""
        size = scenario.basis_bytes(self.basis)
        return next(rule for rule in self.rules if rule.matches(scenario.ppn, scenario.ranks, size))

    def evaluate(self, scenario: Scenario) -> Choice:
        return self.rule_for(scenario).choice

    @staticmethod
    def decided(rule_sets: Mapping[str, RuleSet], scenario: Scenario) -> Choice:
        """What ``rule_sets`` choose: the default for a collective that has none."""
        rules = rule_sets.get(scenario.collective)
        return DEFAULT if rules is None else rules.evaluate(scenario)

    @staticmethod
    def without(rule_sets: Mapping[str, RuleSet], collectives: Collection[str]) -> dict[str, RuleSet]:
        """``rule_sets`` with the library's own choice everywhere in ``collectives``."""
        return {n: RuleSet.always(n, rules.basis) if n in collectives else rules for n, rules in rule_sets.items()}

    @classmethod
    def always(cls, collective: str, basis: SizeBasis, choice: Choice = DEFAULT) -> RuleSet:
        return cls(collective, basis, (Rule(None, None, None, choice),))
