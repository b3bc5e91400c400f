"""What the all-to-all takes by each setting, on the parts of the job: launches of an agent that knows its algorithms.

A launch is measured as all collectives are.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from colltune.alltoallv.lookup_table import COLLECTIVE, Setting, Shape, choice_of, neighbours, setting_of
from colltune.alltoallv.samples import AGENT_PARTS, AlltoallvSource
from colltune.bench.contract import Place
from colltune.bench.workbench import Workbench
from colltune.core.medians import medians_of
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario
from colltune.core.space import Space
from colltune.core.stop import StopRequest
from colltune.distill.decide import Decided, decide
from colltune.learn.decision import DecisionLearner
from colltune.machine.compile import cache_directory
from colltune.measure.contract import Effort, Source
from colltune.measure.watch import Watch, our_process
from colltune.mpi.programs import program_for
from colltune.search.campaign import Campaign, Outcome, models_of


class PatternLaunch(Source, Protocol):
    """A launch whose seed has drawn the blocks."""

    def set_up_s(self) -> float:
        """Starts the job. Seconds that a communicator takes before its first call by a table; NaN if the job ends."""
        ...


class PatternBench(Place, Protocol):
    """What tuning the all-to-all asks of a job: less than `Bench`, for nothing is in a catalogue."""

    def launch(self, seed: int, number: int) -> PatternLaunch:
        """A fresh launch, which its samples know by ``number``."""
        ...


@dataclass(frozen=True)
class JobPatterns:
    """A PatternBench on a real job."""

    workbench: Workbench
    program: Path
    matrices: Sequence[Path] = ()  # as recorded.write_matrices wrote them

    @classmethod
    def on(cls, workbench: Workbench, matrices: Sequence[Path] = ()) -> "JobPatterns":
        """Compiles the program. Raises InputError where that cannot be done."""
        cache = cache_directory(workbench.process_environment)
        program = program_for(workbench.installation, AGENT_PARTS, cache)
        return cls(workbench, program, matrices)

    @property
    def environment(self) -> Environment:
        return self.workbench.environment

    @property
    def nodes(self) -> int:
        return self.workbench.nodes

    @property
    def ppn(self) -> int:
        return self.workbench.ppn

    @property
    def watch(self) -> Watch:
        return self.workbench.watch

    def now_s(self) -> float:
        return self.workbench.now_s()

    def launch(self, seed: int, number: int) -> AlltoallvSource:
        command = self.workbench.command([str(self.program), *map(str, self.matrices)])
        variables = {**self.workbench.process_environment, **command.environment, **our_process()}
        return AlltoallvSource(self.environment, command.argv, variables, seed, number, self.workbench.watch)


EFFORT = Effort(fewest=20, most=50)
# Of the budget, for the settings that are looked at first; and how often what is next to the fastest is added.
_GRID_SHARE, _ROUNDS = 0.8, 6
_PROMISING = 1.05  # default over best, as the model has it, from which a proof is tried


@dataclass
class AlltoallvExploration:
    """Measures what ``settings`` says of each of ``parts`` at average blocks of ``sizes`` bytes, within ``budget_s``.

    The same of matrices that were ``recorded``, by their names. All of it where there is time; where there is not, what
    is expected to change most for its time. Then what is ``nearby`` of the fastest setting of a part at a size, for as
    long as that is faster and there is time. ``known``: samples of an earlier run, which are not measured again.
    """

    source: Source
    record: Callable[[Sequence[Sample]], None]
    parts: Sequence[Shape]
    settings: Callable[[Shape], Sequence[Setting]]
    sizes: Sequence[int]
    budget_s: float
    seed: int
    nearby: Callable[[Setting, Shape], Sequence[Setting]] = neighbours
    recorded: Sequence[Scenario] = ()
    known: Sequence[Sample] = ()
    clock: Callable[[], float] = time.monotonic
    stop: StopRequest = field(default_factory=StopRequest)

    def run(self) -> tuple[Outcome, Decided]:
        """How it went, and what looks faster where; nothing is decided where nothing was measured."""
        added: dict[Scenario, tuple[Choice, ...]] = {}
        began_s, known, rounds = self.clock(), self.known, 0
        while True:
            spaces = self._spaces(added)
            learners = {name: DecisionLearner(space, self.seed) for name, space in spaces.items()}
            spent_s = self.clock() - began_s
            outcome = Campaign(
                source=self.source,
                spaces=spaces,
                learners=learners,
                record=self.record,
                budget_s=self.budget_s * (1.0 if rounds else _GRID_SHARE) - spent_s,
                effort=EFFORT,
                known=known,
                clock=self.clock,
                stop=self.stop,
            ).run()
            medians, known, rounds = medians_of(outcome.samples), outcome.samples, rounds + 1
            nearer = self._nearer(medians, spaces[COLLECTIVE])
            over = self.clock() - began_s >= self.budget_s
            if outcome.interrupted or not nearer or over or rounds > _ROUNDS:
                break
            added |= {scenario: (*added.get(scenario, ()), *choices) for scenario, choices in nearer.items()}
        outcome = replace(outcome, elapsed_s=self.clock() - began_s)
        if outcome.interrupted or not medians:
            return outcome, Decided({}, {}, {})
        models = models_of(learners, outcome, medians, grid_alone=True)
        decided = decide(models, spaces, outcome.samples, lambda _scenario: DEFAULT, _PROMISING)
        return outcome, Decided.together(decided.values())

    def _nearer(
        self, medians: Mapping[tuple[Scenario, Choice], float], space: Space
    ) -> dict[Scenario, tuple[Choice, ...]]:
        """By scenario, what is next to its fastest choice and was not to be measured there yet."""
        fastest: dict[Scenario, tuple[float, Choice]] = {}
        for (scenario, choice), time_s in medians.items():
            fastest[scenario] = min((time_s, choice), fastest.get(scenario, (math.inf, choice)))
        added = {}
        for scenario in space.scenarios:
            if scenario in fastest:
                there = self.nearby(setting_of(fastest[scenario][1]), Shape(scenario.nodes, scenario.ppn))
                if new := tuple(c for c in map(choice_of, there) if c not in space.choices(scenario)):
                    added[scenario] = new
        return added

    def _spaces(self, added: Mapping[Scenario, tuple[Choice, ...]]) -> dict[str, Space]:
        legal: dict[Shape, tuple[Choice, ...]] = {}

        def choices(scenario: Scenario) -> tuple[Choice, ...]:
            shape = Shape(scenario.nodes, scenario.ppn)
            if shape not in legal:
                legal[shape] = tuple(choice_of(setting) for setting in self.settings(shape))
            return (*legal[shape], *added.get(scenario, ()))

        grid = (Scenario(COLLECTIVE, shape.nodes, shape.ppn, size) for shape in self.parts for size in self.sizes)
        spaces = {COLLECTIVE: Space(COLLECTIVE, tuple(grid), choices)}
        recorded = {scenario.collective: Space(scenario.collective, (scenario,), choices) for scenario in self.recorded}
        return spaces | recorded
