"""The interface between a learner and the campaign that drives it."""

from collections.abc import Sequence
from typing import Protocol

from colltune.core.sample import Sample
from colltune.core.space import Model, Point
from colltune.learn.scenario_columns import Floats


class Learner(Protocol):
    """Chooses what to measure next, for one collective, and learns from what was measured.

    Laws (tested on every implementation by ``colltune_study.testing.LearnerContract``): the order in which samples are
    told is irrelevant to the model; telling one sample twice changes nothing; a point that is pending or fully
    measured is never asked for again (one that was asked for with few ``repetitions`` may be, once); samples without a
    time never enter the model; equal seeds and samples give equal answers.
    """

    def ask(self, count: int) -> list[Point]:
        """At most ``count`` of the most useful points, best first; fewer, or none, when little of the space is left."""
        ...

    def tell(self, samples: Sequence[Sample]) -> None:
        """Takes the samples of measured points, failures included, and clears their pending marks."""
        ...

    def tell_pending(self, point: Point) -> None:
        """``point`` is being measured: do not ask for it again."""
        ...

    def expected_gain(self, points: Sequence[Point]) -> Floats:
        """(n,): what measuring each of n points by itself is expected to gain; at least 0, and 0 where nothing is open.

        The expected fall of the logarithm of the time of the selected choice, summed over the scenarios of the space:
        0.1 is a tenth of the time of one scenario. So what learners of different collectives ask for can be compared.
        """
        ...

    def should_stop(self) -> str | None:
        """The reason to stop measuring, in words; None while more should be measured."""
        ...

    def model(self) -> Model:
        """The model of all samples so far. Raises ValueError before the first sample with a time."""
        ...
