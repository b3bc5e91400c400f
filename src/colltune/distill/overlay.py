"""The rules of a campaign laid over those that earlier ones proved, in this shape of job or in another.

What the newer campaign looked at and came to an end with is as it says; elsewhere the earlier decisions stay. Between a
size of the one and a size of the other a choice stands only where both make it.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from colltune.core.decision_table import BySize, DecisionTable
from colltune.core.rules import RuleSet, Steps
from colltune.core.sample import DEFAULT, Choice, Scenario, SizeBasis, grouped

# In a mask: what was decided before goes, whatever it is. The default is "stays"; another choice "stays if it is this".
_GOES = Choice("goes")
# Rules of proven choices begin at 0 where half the least size is no more than this.
_SMALL_BYTES = 8


@dataclass(frozen=True)
class Overlay:
    """``looked_at``: the scenarios of the newer campaign; ``settled``: those that it came to an end with.

    ``whole``: collectives of which nothing earlier stays.
    """

    looked_at: Collection[Scenario]
    settled: Collection[Scenario]
    whole: Collection[str] = ()

    def rule_sets(self, older: Mapping[str, RuleSet], newer: Mapping[str, RuleSet]) -> dict[str, RuleSet]:
        """``newer`` over ``older``. A collective whose sizes mean another thing now is taken from ``newer``."""
        merged = dict(older)
        for name, rules in newer.items():
            before = older.get(name)
            if before is None or before.basis is not rules.basis or name in self.whole:
                merged[name] = rules
                continue
            kept = DecisionTable.of(before).combine(self._mask(rules), _stays)
            merged[name] = DecisionTable.of(rules).merge(kept).rule_set()
        return merged

    def stays(self, scenario: Scenario, choice: Choice, newer: Mapping[str, RuleSet]) -> bool:
        """Whether what was measured of ``choice`` in ``scenario`` before is not replaced."""
        rules = newer.get(scenario.collective)
        if rules is None:
            return True
        return scenario.collective not in self.whole and _stays(choice, self._mask(rules).evaluate(scenario)) == choice

    def _mask(self, newer: RuleSet) -> DecisionTable:
        mine = sorted(s for s in self.looked_at if s.collective == newer.collective)
        sizes = grouped(mine, lambda scenario: (scenario.nodes, scenario.ppn))
        shapes: dict[tuple[int, int], BySize] = {shape: self._of_shape(some, newer) for shape, some in sizes.items()}
        return DecisionTable.of_shapes(newer.collective, newer.basis, shapes)

    def _of_shape(self, scenarios: list[Scenario], newer: RuleSet) -> BySize:
        if newer.basis is SizeBasis.NONE:
            return Steps.always(_GOES if all(s in self.settled for s in scenarios) else DEFAULT)
        return Steps.of([*self._bounds(scenarios, newer), (None, DEFAULT)])

    def _bounds(self, scenarios: list[Scenario], newer: RuleSet) -> Iterator[tuple[int | None, Choice]]:
        def edge(scenario: Scenario) -> Choice:
            if scenario not in self.settled:
                return DEFAULT
            made = newer.evaluate(scenario)
            return _GOES if made == DEFAULT else made

        def at(scenario: Scenario) -> int:
            return scenario.basis_bytes(newer.basis)

        first, greatest = scenarios[0], scenarios[-1]
        if first.size_bytes > 2 * _SMALL_BYTES:
            yield at(first) // 2, DEFAULT
            yield at(first) - 1, edge(first)
        else:
            yield at(first) - 1, _GOES if first in self.settled else DEFAULT
        for scenario, following in pairwise(scenarios):
            both = scenario in self.settled and following in self.settled
            yield at(scenario), _GOES if scenario in self.settled else DEFAULT
            yield at(following) - 1, _GOES if both else edge(scenario) if scenario in self.settled else edge(following)
        yield at(greatest), _GOES if greatest in self.settled else DEFAULT
        yield 2 * at(greatest) - 1, edge(greatest)


@dataclass(frozen=True)
class Layer:
    """Rules by collective: those of the library's file, for every shape, and those of the live selector."""

    file: Mapping[str, RuleSet] = field(default_factory=dict)
    live: Mapping[str, RuleSet] = field(default_factory=dict)

    def over(self, older: "Layer", overlay: Overlay) -> "Layer":
        """These rules laid over ``older`` ones."""
        return Layer(overlay.rule_sets(older.file, self.file), overlay.rule_sets(older.live, self.live))


@dataclass(frozen=True)
class Layers:
    """What is ``proven``, and what is in force where provisional decisions are added to that."""

    proven: Layer = Layer()
    provisional: Layer = Layer()


def _stays(before: Choice, mask: Choice) -> Choice:
    return before if mask in (DEFAULT, before) else DEFAULT
