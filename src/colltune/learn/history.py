"""The samples that a learner was told: their medians and their failures."""

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Sequence

from colltune.core.medians import breaks, pair_median
from colltune.core.sample import Choice, Sample, Scenario, Status
from colltune.core.space import Space

Pair = tuple[Scenario, Choice]

_Order = tuple[int, int, int, str, str]


def _order(pair: Pair) -> _Order:
    """Sorts pairs; tuples of plain values compare several times faster than the pairs themselves."""
    scenario, choice = pair
    return scenario.nodes, scenario.ppn, scenario.size_bytes, choice.algorithm, str(choice.parameters)


class History:
    """The samples of one collective as a set: neither their order nor a repetition matters.

    Failures never get a time. A choice that failed in any way is excluded at its scenario, and everywhere once it
    is broken (`core.medians.breaks`).
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self._samples: set[Sample] = set()
        self._times: defaultdict[Pair, list[Sample]] = defaultdict(list)
        self._failed: defaultdict[Pair, set[Status]] = defaultdict(set)
        self._broken: set[Choice] = set()
        self._medians: dict[Pair, float] = {}  # of every pair with a time, excluded or not
        self._sorted: list[tuple[_Order, Pair]] = []  # the keys of _medians, in order
        self._sorted_times: dict[Pair, float] | None = None

    def tell(self, samples: Iterable[Sample]) -> list[Sample]:
        """Adds samples. Returns those that were not told before.

        Raises ValueError for a sample of another collective.
        """
        new = []
        for sample in samples:
            if sample.scenario.collective != self.space.collective:
                raise ValueError(f"{sample.scenario} was told to a learner of {self.space.collective}")
            pair = (sample.scenario, sample.choice)
            if sample in self._samples:
                continue
            self._samples.add(sample)
            new.append(sample)
            self._sorted_times = None
            if sample.status is Status.OK and sample.times_s:
                self._note_time(pair, sample)
            else:
                self._note_failure(pair, sample.status)
        return new

    def _note_time(self, pair: Pair, sample: Sample) -> None:
        if pair not in self._times:
            insort(self._sorted, (_order(pair), pair))
        self._times[pair].append(sample)
        self._medians[pair] = pair_median(self._times[pair])

    def _note_failure(self, pair: Pair, status: Status) -> None:
        self._failed[pair].add(status)
        if breaks(pair[1], status):
            self._broken.add(pair[1])

    def excluded(self, scenario: Scenario, choice: Choice) -> bool:
        """Whether ``choice`` failed in a way that rules it out at ``scenario``."""
        return bool(self._failed) and ((scenario, choice) in self._failed or choice in self._broken)

    def candidates(self, scenario: Scenario) -> tuple[Choice, ...]:
        """The legal choices that no failure rules out."""
        if not self._failed:
            return self.space.choices(scenario)
        return tuple(choice for choice in self.space.choices(scenario) if not self.excluded(scenario, choice))

    def times(self) -> dict[Pair, float]:
        """Per measured pair that is not excluded, its median in seconds; in a fixed order."""
        if self._sorted_times is None:
            self._sorted_times = {pair: self._medians[pair] for _, pair in self._sorted if not self.excluded(*pair)}
        return self._sorted_times

    def samples_of(self, pair: Pair) -> Sequence[Sample]:
        """The samples of ``pair`` that have a time, in the order in which they were told."""
        return self._times.get(pair, ())

    @property
    def known(self) -> int:
        """How many pairs have a time and are not excluded."""
        return len(self.times()) if self._failed else len(self._times)

    @property
    def sample_count(self) -> int:
        """How many different samples were told."""
        return len(self._samples)

    @property
    def anything_failed(self) -> bool:
        return bool(self._failed)

    @property
    def has_times(self) -> bool:
        """Whether any pair that is not excluded has a time."""
        return self.known > 0
