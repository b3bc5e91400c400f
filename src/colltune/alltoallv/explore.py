"""What the all-to-all takes by each setting, on the parts of the job: one launch, measured as all collectives are."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from colltune.alltoallv.lookup_table import COLLECTIVE, Setting, Shape, choice_of
from colltune.core.medians import medians_of
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario
from colltune.core.space import Space
from colltune.core.stop import StopRequest
from colltune.distill.decide import Decided, decide
from colltune.learn.decision import DecisionLearner
from colltune.measure.contract import Effort, Source
from colltune.search.campaign import Campaign, Outcome, models_of

EFFORT = Effort(fewest=20, most=50)
_PROMISING = 1.05  # default over best, as the model has it, from which a proof is tried


@dataclass
class AlltoallvExploration:
    """Measures what ``settings`` says of each of ``parts`` at average blocks of ``sizes`` bytes, within ``budget_s``.

    The same of matrices that were ``recorded``, by their names. All of it where there is time; where there is not, what
    is expected to change most for its time. ``known``: samples of an earlier run, which are not measured again.
    """

    source: Source
    record: Callable[[Sequence[Sample]], None]
    parts: Sequence[Shape]
    settings: Callable[[Shape], Sequence[Setting]]
    sizes: Sequence[int]
    budget_s: float
    seed: int
    recorded: Sequence[Scenario] = ()
    known: Sequence[Sample] = ()
    clock: Callable[[], float] = time.monotonic
    stop: StopRequest = field(default_factory=StopRequest)

    def run(self) -> tuple[Outcome, Decided]:
        """How it went, and what looks faster where; nothing is decided where nothing was measured."""
        spaces = self._spaces()
        learners = {name: DecisionLearner(space, self.seed) for name, space in spaces.items()}
        outcome = Campaign(
            source=self.source,
            spaces=spaces,
            learners=learners,
            record=self.record,
            budget_s=self.budget_s,
            effort=EFFORT,
            known=self.known,
            clock=self.clock,
            stop=self.stop,
        ).run()
        medians = medians_of(outcome.samples)
        if outcome.interrupted or not medians:
            return outcome, Decided({}, {}, {})
        models = models_of(learners, outcome, medians, grid_alone=True)
        found = decide(models, spaces, outcome.samples, lambda _scenario: DEFAULT, _PROMISING)
        return outcome, Decided.together(found.values())

    def _spaces(self) -> dict[str, Space]:
        legal: dict[Shape, tuple[Choice, ...]] = {}

        def choices(scenario: Scenario) -> tuple[Choice, ...]:
            shape = Shape(scenario.nodes, scenario.ppn)
            if shape not in legal:
                legal[shape] = tuple(choice_of(setting) for setting in self.settings(shape))
            return legal[shape]

        grid = (Scenario(COLLECTIVE, shape.nodes, shape.ppn, size) for shape in self.parts for size in self.sizes)
        found = {COLLECTIVE: Space(COLLECTIVE, tuple(grid), choices)}
        return found | {one.collective: Space(one.collective, (one,), choices) for one in self.recorded}
