"""What a source of samples owes to the campaign: live, replayed or simulated."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from colltune.core.sample import Environment, Sample, Status
from colltune.core.space import Point

# The detail of a sample that is inapplicable because the library refused the call; other details say that there is no
# such call at all.
REFUSED = "refused-by-the-library"
# Time boxes that the fewest repetitions may take.
_PATIENCE = 20.0
# The repetitions of such calls, where more were asked for; where so many were at most, what fills its time box is timed
# once.
_LEAST = 3
# A call that takes longer than so many time boxes, and so many times as long as the best, is timed once; the second
# where it is long.
_DEAR, _HOPELESS, _HOPELESS_LONG = 4.0, 3.0, 2.0


class TimeIsUpError(Exception):
    """The time that a source was given is over; what it was at is given up."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long a point is measured: until the median is known well enough, or the time box ends.

    ``relative_width``: full width of the 95% confidence interval of the median over the median at which a choice
    is done. ``box_s``: seconds inside the calls of one choice of a point, at most, beyond the fewest repetitions;
    of these there are fewer only where they would take more than 20 boxes.
    """

    relative_width: float = 0.05
    box_s: float = 0.005
    fewest: int = 10
    most: int = 200
    warm_up: int = 2

    def limited(self, repetitions: int) -> Effort:
        """With no more repetitions than a point asks for; 0: as it is."""
        if not repetitions:
            return self
        return replace(self, fewest=min(self.fewest, repetitions), most=min(self.most, repetitions))

    def patience(self, time_s: float, best_s: float) -> int:
        """The most repetitions of calls of ``time_s`` beside a best choice of ``best_s`` (native/agent/repeat.c)."""
        is_long = time_s > _PATIENCE * self.box_s
        is_hopeless = time_s > _DEAR * self.box_s and time_s > (_HOPELESS_LONG if is_long else _HOPELESS) * best_s
        if is_hopeless or self._once(time_s):
            return 1
        return max(int(_PATIENCE * self.box_s / max(time_s, 1e-9)), _LEAST)

    def _once(self, time_s: float) -> bool:
        """Whether one repetition is enough: a first look, of a call that takes long."""
        return time_s > (self.box_s if self.most <= _LEAST else _PATIENCE * self.box_s) and self.fewest <= _LEAST

    def expected_cost_s(self, time_s: float) -> float:
        """Seconds that the agent spends on a choice whose calls take ``time_s`` (see native/agent/measure.c).

        The interval of the median is taken to be narrow enough when the box is spent, or before.
        """
        time_s = max(time_s, 1e-7)
        if self._once(time_s):
            return 2.0 * time_s
        if time_s > _PATIENCE * self.box_s:
            return time_s * (1 + _LEAST)
        fewest = min(self.fewest, max(_LEAST, _PATIENCE * self.box_s / time_s))
        repetitions = max(fewest, min(self.most, self.box_s / time_s))
        warm_up = 1 if self.warm_up * time_s > self.box_s else self.warm_up
        back_to_back = 1.0 if time_s > self.box_s else min(50.0, max(3.0, 0.1 * self.box_s / time_s))
        return time_s * (1 + warm_up + repetitions + back_to_back)

    def comparison_cost_s(self, default_s: float, gain: float) -> float:
        """The same of the default, whose call takes ``default_s``, and of a choice with the log speed-up ``gain``."""
        return self.expected_cost_s(default_s) + self.expected_cost_s(default_s * math.exp(-gain))

    def overhead(self, samples: Iterable[Sample]) -> float:
        """What measuring took over the calls: ranks meet before each of them, and some are held up.

        Of all together: on a busy machine few measurements take most of the time.
        """
        measured = [sample for sample in samples if sample.status is Status.OK and sample.cost_s > 0.0]
        expected_s = sum(self.expected_cost_s(sample.time_s) for sample in measured)
        return sum(sample.cost_s for sample in measured) / expected_s if measured else 1.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a point that was begun; ``point`` holds the choices that were measured. ``last``: nothing follows.

    A choice that ends the job is told at once, in an answer of its own; the others of its point come in later ones.
    """

    ticket: int
    point: Point
    samples: list[Sample]
    last: bool


class Source(Protocol):
    """Turns points into samples."""

    @property
    def environment(self) -> Environment: ...

    @property
    def disturbed(self) -> bool:
        """Whether other programs disturbed it as a whole; known once it is closed."""
        ...

    def measure(self, points: Iterable[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        """One answer per point, as each completes: one sample per choice, failures as statuses.

        A choice that ends the job is told at once, in an answer of its own that may hold no more than it; its point's
        other choices come in later answers. From then on it is left out of the points of its collective, unless
        it is the default.
        Points are taken from ``points`` one by one as the source can use them, so that a generator may stop early.
        Raises LaunchError where nothing can be measured at all.
        """
        ...

    def close(self) -> None:
        """Gives back what the source holds; the source is of no use afterwards."""
        ...


class Launch(Source, Protocol):
    """A launch of a job as a source, which measures points on disjoint nodes at once.

    ``until_s``, of the clock of whoever launched it: what is not answered by then is given up, as if it had not been
    asked for.
    """

    until_s: float

    def begin(self, point: Point, effort: Effort, nodes: Sequence[int] | None = None) -> int:
        """Asks for ``point`` on ``nodes``, positions in the job, and returns the ticket of its answers."""
        ...

    def next_answer(self) -> Answer:
        """Waits for the next answer.

        Raises LaunchError where nothing can be measured at all, and TimeIsUpError once the source's time is over.
        """
        ...

    @property
    def launches(self) -> int:
        """How often the job was begun: anew after whatever ended it."""
        ...

    @property
    def inside_s(self) -> float:
        """Seconds inside calls of the collectives."""
        ...

    def start(self) -> object:
        """Begins the job unless it runs. Raises LaunchError where it cannot."""
        ...

    def kill(self) -> None:
        """Ends the job without waiting for what it is doing; ``start``, or what is measured next, begins another."""
        ...
