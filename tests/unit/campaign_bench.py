"""A campaign on the simulated times of a small space, for the tests of campaigns."""

from collections import Counter
from collections.abc import Callable, Sequence

from colltune.bench.parallel import Lanes
from colltune.core.sample import Choice, Environment, Sample, Scenario, Status
from colltune.core.space import Space
from colltune.learn.decision import DecisionLearner
from colltune.measure.contract import Effort, Launch
from colltune.search.campaign import Campaign, Outcome, Progress
from colltune_study.simulated.drawn import SimulatedSource
from colltune_study.testing import small_space, true_time_s

ENVIRONMENT = Environment("mpich", "5.0.2", "0" * 64, "simulated", 3, 4, "single")
EFFORT = Effort(box_s=0.001, fewest=5, most=20)
# The small space's times are of microseconds: this budget is ample for all of it.
AMPLE_S = 1000.0

Pair = tuple[Scenario, Choice]


def truth(scenario: Scenario, choice: Choice) -> float:
    return true_time_s(scenario, choice)


class Bench:
    """A campaign over the suite's small space, with a journal that is a list."""

    def __init__(
        self,
        collectives: Sequence[str] = ("bcast",),
        budget_s: float = AMPLE_S,
        known: Sequence[Sample] = (),
        truth: Callable[[Scenario, Choice], float | Status] = truth,
        spaces: Sequence[Space] | None = None,
        effort: Effort = EFFORT,
        source: Launch | None = None,
        lanes: Lanes | None = None,
    ) -> None:
        self.source = source or SimulatedSource(ENVIRONMENT, truth, seed=1)
        self.spaces = {space.collective: space for space in spaces or [small_space(name) for name in collectives]}
        self.journal: list[Sample] = []
        self.heard: list[Progress] = []
        self.campaign = Campaign(
            source=self.source,
            spaces=self.spaces,
            learners={name: DecisionLearner(space, 1) for name, space in self.spaces.items()},
            record=self.journal.extend,
            budget_s=budget_s,
            effort=effort,
            known=known,
            progress=self.heard.append,
            clock=lambda: self.source.now_s,
            lanes=lanes,
        )

    def run(self) -> Outcome:
        return self.campaign.run()

    @property
    def measured(self) -> Counter[Pair]:
        return Counter((sample.scenario, sample.choice) for sample in self.journal)

    @property
    def spent_s(self) -> dict[str, float]:
        """Seconds by collective."""
        return {name: sum(s.cost_s for s in self.journal if s.scenario.collective == name) for name in self.spaces}

    @property
    def pairs(self) -> set[Pair]:
        return {pair for space in self.spaces.values() for pair in space.pairs()}
