"""What a source of samples owes to the campaign: live, replayed or simulated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from colltune.core.sample import Environment, Sample
from colltune.core.space import Point


class Convention(StrEnum):
    """What a time of a collective is.

    SLOWEST_RANK: from a start that the ranks agree on to the end of the slowest one. OSU: MPI_Barrier between calls
    and the mean over ranks and iterations, as the OSU Micro-Benchmarks do (``Sample.osu_mean_s``).
    """

    SLOWEST_RANK = "slowest-rank"
    OSU = "osu"


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
    convention: Convention = Convention.SLOWEST_RANK


class Source(Protocol):
    """Turns points into samples."""

    @property
    def environment(self) -> Environment: ...

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
