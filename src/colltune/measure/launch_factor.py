"""What a launch of a job does to its times: seen by calls at default, beside those that are measured in it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Sample, Scenario, Status, element_bytes

# Of each collective and shape, so many calls tell what a launch does to all of them.
_REFERENCES = 5


def calls_beside(scenario: Scenario) -> list[Scenario]:
    """An element shorter, and an element longer."""
    element, size = element_bytes(scenario.collective), scenario.size_bytes
    sizes = (size - element, size + element) if size else ()
    return [replace(scenario, size_bytes=beside) for beside in sizes if beside >= element]


@dataclass
class LaunchFactors:
    """``first_s``: of each reference, what it took in the first launch."""

    first_s: dict[Scenario, float] = field(default_factory=dict)

    def references(self, scenarios: Sequence[Scenario], rules: Mapping[str, RuleSet]) -> dict[Scenario, Scenario]:
        """Calls at default beside some of ``scenarios``: those that earlier launches measured too, then others."""
        beside_of = {
            scenario: beside
            for scenario in scenarios
            for beside in reversed(calls_beside(scenario))
            if rules[scenario.collective].evaluate(beside) == DEFAULT
        }
        chosen: dict[tuple[str, int, int], dict[Scenario, Scenario]] = {}
        for scenario, beside in sorted(beside_of.items(), key=lambda both: both[1] not in self.first_s):
            of_place = chosen.setdefault(_place(scenario), {})
            if len(of_place) < _REFERENCES and beside not in of_place.values():
                of_place[scenario] = beside
        return {scenario: beside for of_place in chosen.values() for scenario, beside in of_place.items()}

    def take(self, references: Iterable[Sample]) -> "ThisLaunch":
        """Of a launch in which ``references`` were measured."""
        taken_s = {sample.scenario: sample.time_s for sample in references if sample.status is Status.OK}
        logs: dict[tuple[str, int, int], list[float]] = {}
        for reference, time_s in taken_s.items():
            known = logs.setdefault(_place(reference), [])
            if reference in self.first_s:
                known.append(math.log(time_s / self.first_s[reference]))
        factors = {place: math.exp(median(known)) if known else 1.0 for place, known in logs.items()}
        for reference, time_s in taken_s.items():
            self.first_s.setdefault(reference, time_s / factors[_place(reference)])
        return ThisLaunch(factors)


@dataclass(frozen=True)
class ThisLaunch:
    """``factors``: how many times as long calls take as in the first launch, by collective and shape."""

    factors: Mapping[tuple[str, int, int], float]

    def in_first(self, sample: Sample) -> Sample:
        """``sample`` as it would have been in the first launch."""
        return sample.scaled(1.0 / self.factors.get(_place(sample.scenario), 1.0))


def _place(scenario: Scenario) -> tuple[str, int, int]:
    return scenario.collective, scenario.nodes, scenario.ppn
