"""A cluster in memory whose MPI takes its algorithms when a job starts."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, SizeBasis, Status
from colltune.core.space import Point
from colltune.measure.answers import Answered, AnsweringSource
from colltune.measure.contract import Effort
from colltune.measure.launched import LaunchedPlan, LaunchedSource
from colltune_study.recorded.launch_effects import AS_MEASURED, LaunchEffects
from colltune_study.testing import HALVING, RING, TREE, true_time_s

ENVIRONMENT = Environment("intelmpi", "2021.17", "0" * 64, "simulated", 3, 4, "single")
EFFORT = Effort(box_s=0.0005)
EVERY = (DEFAULT, TREE, RING, HALVING)
Rules = Mapping[str, RuleSet]


def choices_in(rules: Rules) -> set[Choice]:
    return {rule.choice for some in rules.values() for rule in some.rules}


class Job(AnsweringSource):
    """A launch under ``rules``; ``ends``: whether a call with a choice ends it."""

    def __init__(self, rules: Rules, number: int, effects: LaunchEffects, ends: Callable[[Scenario, Choice], bool]):
        super().__init__(ENVIRONMENT, number)
        self.rules, self.effects, self.ends = rules, effects, ends

    def _answer(self, scenario: Scenario, choice: Choice, repetitions: int, effort: Effort) -> Answered:
        del repetitions, effort
        assert choice == DEFAULT, "an algorithm cannot be chosen while the job runs"
        if scenario.collective in self.rules:
            choice = self.rules[scenario.collective].evaluate(scenario)
        if self.ends(scenario, choice):
            return Answered(Status.CRASHED, (), 1e-3, "signal 11")
        factor = self.effects.of_launch(scenario, choice, (1, self._launch))
        return Answered(Status.OK, (true_time_s(scenario, choice) * factor,) * 3, 1e-3)


@dataclass
class Cluster:
    """``job``: what a launch of it is; ``began``: the rules of those that there were."""

    effects: LaunchEffects = AS_MEASURED
    ends: Callable[[Scenario, Choice], bool] = lambda _scenario, _choice: False
    said: Callable[[RuleSet], RuleSet] = lambda rules: rules
    basis: SizeBasis = SizeBasis.MESSAGE
    tells_ranks: bool = True
    job: type[Job] = Job
    began: list[Rules] = field(default_factory=list)

    def open(self, rules: Rules) -> Job:
        self.began.append(rules)
        return self.job(rules, len(self.began), self.effects, self.ends)

    def source(self) -> LaunchedSource:
        def together(scenario: Scenario) -> Hashable:
            if not self.tells_ranks:
                return scenario.collective, scenario.size_bytes
            whole = self.basis is SizeBasis.NONE
            return (scenario.collective, scenario.nodes, scenario.ppn) if whole else scenario

        plan = LaunchedPlan(self.open, lambda rules, _shapes: self.said(rules), lambda _name: self.basis, together)
        return LaunchedSource(plan, ENVIRONMENT, seed=1)

    def measure(self, points: list[Point]) -> dict[Scenario, dict[Choice, Sample]]:
        source = self.source()
        found: dict[Scenario, dict[Choice, Sample]] = {point.scenario: {} for point in points}
        for point, samples in source.measure(points, EFFORT):
            found[point.scenario].update({sample.choice: sample for sample in samples})
        source.close()
        return found
