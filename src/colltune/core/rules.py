"""Decisions as ordered rules: what every file format expresses, and what Python can evaluate."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from colltune.core.sample import DEFAULT, Choice, Scenario, SizeBasis
from colltune.core.steps import Span


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
        keys = [tuple(math.inf if one is None else one for one in rule.bounds) for rule in self.rules]
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
        return next(region for region, one in self.regions() if one == rule)

    def rule_for(self, scenario: Scenario) -> Rule:
        """The rule that decides for ``scenario``."""
        size = scenario.basis_bytes(self.basis)
        for rule in self.rules:
            if rule.matches(scenario.ppn, scenario.ranks, size):
                return rule
        raise AssertionError("unreachable: a rule set is total")

    def evaluate(self, scenario: Scenario) -> Choice:
        return self.rule_for(scenario).choice

    @staticmethod
    def decided(rule_sets: Mapping[str, "RuleSet"], scenario: Scenario) -> Choice:
        """What ``rule_sets`` choose: the default for a collective that has none."""
        rules = rule_sets.get(scenario.collective)
        return DEFAULT if rules is None else rules.evaluate(scenario)

    @classmethod
    def always(cls, collective: str, basis: SizeBasis, choice: Choice = DEFAULT) -> "RuleSet":
        return cls(collective, basis, (Rule(None, None, None, choice),))
