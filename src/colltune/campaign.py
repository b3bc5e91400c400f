"""A tuning campaign: what is measured next, until enough is known or the budget is spent.

The only module that knows both the learners and the source of samples.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from colltune.core.choice import DEFAULT, Choice
from colltune.core.sample import Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import Point, Space
from colltune.learn.contract import Learner
from colltune.measure.contract import Effort, Source

# Trials, warm-up, the calls back to back and the synchronisation, over the time box of a choice.
_OVERHEAD = 2.5
WHOLE = "the whole grid was measured"
# Statuses after which a choice is not trusted anywhere.
_BROKEN = frozenset({Status.WRONG, Status.CRASHED, Status.HUNG})


@dataclass(frozen=True)
class Progress:
    """Where a campaign stands. ``speedup``: default over best at the latest scenario, None where unknown."""

    collective: str
    scenario: Scenario | None
    pairs_done: int
    pairs_total: int
    elapsed_s: float
    budget_s: float
    best: Choice | None = None
    speedup: float | None = None


@dataclass(frozen=True)
class Outcome:
    """How a campaign ended. ``reasons`` says, per collective, why its measuring stopped."""

    samples: tuple[Sample, ...]
    reasons: Mapping[str, str]
    elapsed_s: float
    interrupted: bool


class StopRequestedError(Exception):
    """Raised in the midst of a campaign by a signal: what is measured by then is used."""


@dataclass
class Campaign:
    """Drives ``learners`` (one per collective, over ``spaces``) with samples of ``source``.

    ``record`` is called with new samples before anything else is asked for. ``known`` are samples of an earlier, cut
    off run of the same campaign: nothing of them is measured again. ``budget_s`` bounds the measuring, not counting
    the launch; it is shared equally among the collectives, and what one leaves goes to those after it.
    """

    source: Source
    spaces: Mapping[str, Space]
    learners: Mapping[str, Learner]
    record: Callable[[Sequence[Sample]], None]
    budget_s: float
    effort: Effort = field(default_factory=Effort)
    known: Sequence[Sample] = ()
    progress: Callable[[Progress], None] = lambda _progress: None
    clock: Callable[[], float] = time.monotonic

    def run(self) -> Outcome:
        self._started_s = self.clock()
        self._samples: list[Sample] = list(self.known)
        self._pairs_total = sum(1 for space in self.spaces.values() for _ in space.pairs())
        self._done = {(sample.scenario, sample.choice) for sample in self.known}
        self._broken = broken_choices(self.known)
        reasons: dict[str, str] = {}
        interrupted = False
        for collective, learner in self.learners.items():
            learner.tell([sample for sample in self.known if sample.scenario.collective == collective])
        try:
            for position, collective in enumerate(self.learners):
                shares = len(self.learners) - position
                deadline_s = self.clock() + (self._started_s + self.budget_s - self.clock()) / shares
                reasons[collective] = self._tune(collective, deadline_s)
        except (KeyboardInterrupt, StopRequestedError):
            interrupted = True
            reasons |= {name: "stopped from outside" for name in self.learners if name not in reasons}
        return Outcome(tuple(self._samples), reasons, self.clock() - self._started_s, interrupted)

    def _tune(self, collective: str, deadline_s: float) -> str:
        whole = self._whole_grid(collective)
        if not whole:
            return WHOLE
        pairs = sum(len(point.choices) for point in whole)
        if pairs * self.effort.box_s * _OVERHEAD <= deadline_s - self.clock():
            # Cheaper to measure than to be clever about.
            return WHOLE if self._measure(whole, deadline_s) else "its share of the budget is spent"
        learner = self.learners[collective]
        while (reason := learner.should_stop()) is None:
            points = learner.ask(1)
            if not points:
                return "nothing is left to measure"
            for point in points:
                # Also what is left out of it below is not asked for again.
                learner.tell_pending(point)
            if not self._measure(points, deadline_s):
                return "its share of the budget is spent"
        return reason

    def _whole_grid(self, collective: str) -> list[Point]:
        """What of the grid is not measured yet, shape by shape; the largest shapes, which matter most, first."""
        space = self.spaces[collective]
        points = []
        for scenario in sorted(space.scenarios, key=lambda s: (-s.ranks, -s.nodes, s.size_bytes)):
            choices = tuple(c for c in space.choices(scenario) if (scenario, c) not in self._done)
            if choices:
                points.append(self._trusted(Point(scenario, choices)))
        return points

    def _trusted(self, point: Point) -> Point:
        collective = point.scenario.collective
        return Point(point.scenario, tuple(c for c in point.choices if (collective, c) not in self._broken))

    def _measure(self, points: Sequence[Point], deadline_s: float) -> bool:
        """Measures ``points``; False if the deadline came first."""
        late = False

        def in_time() -> Iterator[Point]:
            nonlocal late
            for point in points:
                if late := self.clock() >= deadline_s:
                    return
                yield self._trusted(point)

        for point, samples in self.source.measure(in_time(), self.effort):
            self._take(point, samples)
        return not late

    def _take(self, point: Point, samples: Sequence[Sample]) -> None:
        if not samples:
            return
        self.record(samples)
        self._samples += samples
        collective = point.scenario.collective
        self._broken |= broken_choices(samples)
        self._done |= {(s.scenario, s.choice) for s in samples}
        self.learners[collective].tell(samples)
        times = {sample.choice: sample.time_s for sample in samples if sample.status is Status.OK}
        best = min(times, key=lambda choice: times[choice]) if times else None
        self.progress(
            Progress(
                collective,
                point.scenario,
                pairs_done=len(self._done),
                pairs_total=self._pairs_total,
                elapsed_s=self.clock() - self._started_s,
                budget_s=self.budget_s,
                best=best,
                speedup=times[DEFAULT] / times[best] if best is not None and DEFAULT in times else None,
            )
        )


def broken_choices(samples: Sequence[Sample]) -> set[tuple[str, Choice]]:
    """(collective, choice) pairs that gave a wrong result, ended the job or hung, anywhere.

    The default is never among them: it is what an application runs in any case, and a node that dies is not its fault.
    """
    return {(s.scenario.collective, s.choice) for s in samples if s.status in _BROKEN and s.choice != DEFAULT}
