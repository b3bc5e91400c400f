"""The expected time of a measurement on far more ranks than were measured.

The lines of ``colltune.schedule.durations`` tell rounds, ranks and bytes apart by measurements on many counts of
ranks. Of a job that is only planned for there are a few points on a small one, on which these parts cannot be told
apart. So here is a model of two numbers: seconds per round of a tree, and seconds per byte.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from colltune.core.sample import PER_BLOCK, Sample, Scenario, Status, grouped
from colltune.measure.contract import Effort

# Bytes that move per rank below which a call says what a round takes, and from which it says what a byte takes.
_SMALL, _LARGE = 1024, 65536


@dataclass(frozen=True, slots=True)
class Ping:
    """``round_s``: seconds per doubling of the ranks; ``byte_s``: seconds per byte that each rank sends or receives."""

    round_s: float
    byte_s: float

    def time_s(self, scenario: Scenario) -> float:
        return self.round_s * math.log2(scenario.ranks) + self.byte_s * _moved(scenario)


@dataclass(frozen=True)
class Extrapolation:
    """``pings``: by collective and whether the ranks are on several nodes. ``overhead``: measuring over its calls."""

    pings: Mapping[tuple[str, bool], Ping]
    overhead: float
    effort: Effort

    @classmethod
    def of(cls, samples: Sequence[Sample], effort: Effort) -> Extrapolation:
        """From measurements of any choices. A collective that is missing, or a kind of ranks, is taken from others."""
        good = [sample for sample in samples if sample.status is Status.OK and sample.cost_s > 0.0]
        seen = grouped(good, lambda sample: (sample.scenario.collective, sample.scenario.nodes > 1))
        return cls({kind: _fit(some) for kind, some in seen.items()}, effort.overhead(good), effort)

    def expect_s(self, scenario: Scenario) -> float:
        """Expected seconds of measuring one choice in ``scenario``; 0 where nothing was measured."""
        ping = self._ping(scenario.collective, scenario.nodes > 1)
        return 0.0 if ping is None else self.overhead * self.effort.expected_cost_s(ping.time_s(scenario))

    def _ping(self, collective: str, several: bool) -> Ping | None:
        if (collective, several) in self.pings:
            return self.pings[collective, several]
        akin = [ping for (_, across), ping in self.pings.items() if across == several]
        own = self.pings.get((collective, not several))
        if not akin:
            return own or next(iter(self.pings.values()), None)
        typical = Ping(median(ping.round_s for ping in akin), median(ping.byte_s for ping in akin))
        if own is None:
            return typical
        return Ping(max(own.round_s, typical.round_s), max(own.byte_s, typical.byte_s))


def _moved(scenario: Scenario) -> float:
    """Bytes that a rank sends or receives at least: its blocks for all ranks, or the message."""
    return float(scenario.size_bytes * (scenario.ranks if scenario.collective in PER_BLOCK else 1))


def _fit(samples: Sequence[Sample]) -> Ping:
    small = [s.time_s / math.log2(s.scenario.ranks) for s in samples if _moved(s.scenario) <= _SMALL]
    round_s = median(small or [0.0])
    rest = [
        max(s.time_s - round_s * math.log2(s.scenario.ranks), 0.0) / _moved(s.scenario)
        for s in samples
        if _moved(s.scenario) >= _LARGE
    ]
    return Ping(round_s, median(rest or [0.0]))
