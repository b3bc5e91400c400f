"""What the all-to-all takes by each setting, on the parts of the job: launches of an agent that knows its algorithms.

A launch is measured as all collectives are.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from colltune.alltoallv.lookup_table import (
    COLLECTIVE,
    FILLS,
    Setting,
    Shape,
    candidates,
    choice_of,
    neighbours,
    setting_of,
)
from colltune.alltoallv.matrices import RecordedMatrix
from colltune.alltoallv.samples import AGENT_PARTS, AlltoallvSource
from colltune.bench.workbench import Workbench
from colltune.core.medians import medians_of
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario
from colltune.core.space import Space
from colltune.core.stop import StopRequest
from colltune.distill.decide import Decided, decide
from colltune.learn.decision import DecisionLearner
from colltune.machine.compile import cache_directory
from colltune.measure.contract import Effort, Source
from colltune.measure.watch import our_process
from colltune.mpi.programs import program_for
from colltune.profile.application_profile import Profile
from colltune.search.campaign import Campaign, Outcome, models_of


class PatternLaunch(Source, Protocol):
    """A launch whose seed has drawn the blocks."""

    def set_up_s(self) -> float:
        """Starts the job. Seconds that a communicator takes before its first call by a table; NaN if the job ends."""
        ...


# A fresh launch by its seed, and the number by which its samples know it.
Launches = Callable[[int, int], PatternLaunch]


def launches_on(workbench: Workbench, matrices: Sequence[Path] = ()) -> Launches:
    """Launches on a real job; ``matrices``: as `write_matrices` wrote them.

    Compiles the program. Raises InputError where that cannot be done.
    """
    environ = workbench.process_environment
    program = program_for(workbench.installation, AGENT_PARTS, cache_directory(environ))

    def launch(seed: int, number: int) -> AlltoallvSource:
        command = workbench.command([str(program), *map(str, matrices)])
        variables = {**environ, **command.environment, **our_process()}
        return AlltoallvSource(workbench.environment, command.argv, variables, seed, number, workbench.watch)

    return launch


EFFORT = Effort(fewest=20, most=50)
# Of the budget, for the settings that are looked at first; and how often what is next to the fastest is added.
_GRID_SHARE, _ROUNDS = 0.8, 6
_PROMISING = 1.05  # default over best, as the model has it, from which a proof is tried


@dataclass(frozen=True)
class AlltoallvOptions:
    """``sizes``: average blocks in bytes. ``resume``: nothing that a run explored which was cut off is again.

    ``parts``: of the job, as parts_of gives them or some of them. ``settings``: what is tried on a part, the library's
    own first; ``nearby``: what is next to a setting. ``recorded``: matrices of the application, which decide their
    cells alone. ``fills``: the classes of FILLS that are of use. ``profile``: of a run that the table is for.
    """

    sizes: Sequence[int]
    budget_s: float
    seed: int = 1
    resume: bool = False
    parts: Sequence[Shape] = ()
    settings: Callable[[Shape], Sequence[Setting]] = candidates
    nearby: Callable[[Setting, Shape], Sequence[Setting]] = neighbours
    recorded: Sequence[RecordedMatrix] = ()
    fills: Sequence[int] = tuple(range(len(FILLS)))
    profile: Profile | None = None


@dataclass
class AlltoallvExploration:
    """Measures what ``options`` say of each of ``parts`` and of recorded matrices, within ``budget_s``.

    All of it where there is time; where there is not, what is expected to change most for its time. Then what is nearby
    of the fastest setting of a part at a size, for as long as that is faster and there is time. ``known``: samples of
    an earlier run, which are not measured again.
    """

    source: Source
    record: Callable[[Sequence[Sample]], None]
    options: AlltoallvOptions
    parts: Sequence[Shape]
    budget_s: float
    known: Sequence[Sample] = ()
    clock: Callable[[], float] = time.monotonic
    stop: StopRequest = field(default_factory=StopRequest)

    def run(self) -> tuple[Outcome, Decided]:
        """How it went, and what looks faster where; nothing is decided where nothing was measured."""
        added: dict[Scenario, tuple[Choice, ...]] = {}
        began_s, known, rounds = self.clock(), self.known, 0
        while True:
            spaces = self._spaces(added)
            learners = {name: DecisionLearner(space, self.options.seed) for name, space in spaces.items()}
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
            medians, known, rounds = medians_of(outcome.for_choosing), outcome.samples, rounds + 1
            nearer = self._nearer(medians, spaces[COLLECTIVE])
            over = self.clock() - began_s >= self.budget_s
            if outcome.interrupted or not nearer or over or rounds > _ROUNDS:
                break
            added |= {scenario: (*added.get(scenario, ()), *choices) for scenario, choices in nearer.items()}
        outcome = replace(outcome, elapsed_s=self.clock() - began_s)
        if outcome.interrupted or not medians:
            return outcome, Decided({}, {}, {})
        models = models_of(learners, outcome, medians, grid_alone=True)
        decided = decide(models, spaces, outcome.for_choosing, lambda _scenario: DEFAULT, _PROMISING)
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
                there = self.options.nearby(setting_of(fastest[scenario][1]), Shape(scenario.nodes, scenario.ppn))
                if new := tuple(c for c in map(choice_of, there) if c not in space.choices(scenario)):
                    added[scenario] = new
        return added

    def _spaces(self, added: Mapping[Scenario, tuple[Choice, ...]]) -> dict[str, Space]:
        legal: dict[Shape, tuple[Choice, ...]] = {}

        def choices(scenario: Scenario) -> tuple[Choice, ...]:
            shape = Shape(scenario.nodes, scenario.ppn)
            if shape not in legal:
                legal[shape] = tuple(choice_of(setting) for setting in self.options.settings(shape))
            return (*legal[shape], *added.get(scenario, ()))

        sizes = self.options.sizes
        grid = (Scenario(COLLECTIVE, shape.nodes, shape.ppn, size) for shape in self.parts for size in sizes)
        spaces = {COLLECTIVE: Space(COLLECTIVE, tuple(grid), choices)}
        for matrix in self.options.recorded:
            name = matrix.scenario.collective
            spaces[name] = Space(name, (matrix.scenario,), choices)
        return spaces
