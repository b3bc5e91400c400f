"""Samples of the non-uniform all-to-all, from an agent that is linked with its algorithms."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from colltune.alltoallv.lookup_table import COLLECTIVE, peers_among
from colltune.core.errors import LaunchError
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario
from colltune.core.space import Point
from colltune.machine.compile import AGENT
from colltune.measure.contract import Effort
from colltune.measure.live import LivePlan, LiveSource
from colltune.measure.request import Settings
from colltune.measure.watch import Watch, unjudged

# What such an agent is made of, and the algorithms by their numbers there: of colltune_alltoallv.h, and by the table in
# force.
AGENT_PARTS = (AGENT, "alltoallv_measure", COLLECTIVE)
ALGORITHMS = ("library", "linear", "parata", "hieata", "tuned")
_FORWARDED = (64, 1024)  # averages up to which blocks of four times that are forwarded
_PATIENCE_S = 120.0  # without a word from the agent
_SET_UPS = 5  # repetitions


def direct_above_bytes(average_bytes: int) -> int:
    """Blocks beyond this are not forwarded where the average is ``average_bytes``: four times it at least, in 16 bits.

    Few values: sizes beside each other have one setting, so that a program whose sizes vary does not change it.
    """
    return next((4 * most for most in _FORWARDED if average_bytes <= most), 65535)


@dataclass(frozen=True, slots=True, order=True)
class Blocks:
    """What is exchanged: ``distribution`` of native/alltoallv_measure/weights.h, from each to ``peers``.

    ``peers``: as in cells.peers_among; "0": all. A scenario names it by its collective: plain "alltoallv" is uniform
    blocks for all. Its size is the average block, empty ones included, of the rank that sends or receives most; its
    block for itself does not count.
    """

    distribution: str = "uniform"
    peers: str = "0"

    @property
    def collective(self) -> str:
        return COLLECTIVE if self == Blocks() else f"{COLLECTIVE}[{self.distribution},{self.peers}]"

    @classmethod
    def of(cls, scenario: Scenario) -> "Blocks":
        """The inverse of ``collective``; raises ValueError for another collective."""
        if scenario.collective == COLLECTIVE:
            return cls()
        name, _, inside = scenario.collective.rstrip("]").partition("[")
        distribution, _, peers = inside.partition(",")
        if name != COLLECTIVE or not peers:
            raise ValueError(f"not a pattern of alltoallv: {scenario.collective}")
        return cls(distribution, peers)

    @property
    def is_recorded(self) -> bool:
        """Whether it is a matrix, which is exchanged as it is."""
        return self.distribution.startswith("counts")

    def peers_among(self, ranks: int) -> int:
        """Of each of ``ranks``; 0: all. Raises ValueError where they cannot have this pattern."""
        peers = peers_among(self.peers, ranks)
        if peers is None:
            raise ValueError(f"{ranks} ranks cannot have {self.collective}")
        return peers

    def among(self, ranks: int) -> str:
        """As the agent reads it. Raises ValueError as `peers_among`."""
        return f"{self.distribution},{self.peers_among(ranks)}"


_SET_UP = Blocks("set_up")


class AlltoallvSource(LiveSource):
    """A LiveSource of alltoallv scenarios, whose collective and size name the blocks (see Blocks).

    ``command`` starts the agent of AGENT_PARTS on the whole job. ``seed`` fixes the blocks; ``launch`` is in samples.
    """

    def __init__(
        self,
        environment: Environment,
        command: Sequence[str],
        process_environment: Mapping[str, str],
        seed: int = 1,
        launch: int = 0,
        watch: Watch | None = None,
    ) -> None:
        plan = LivePlan(
            command,
            process_environment,
            _settings,
            seed,
            start_timeout_s=_PATIENCE_S,
            silence_s=_PATIENCE_S,
            watch=watch or unjudged(),
            named=lambda scenario: f"{COLLECTIVE}[{Blocks.of(scenario).among(scenario.ranks)},{seed}]",
        )
        super().__init__(plan, environment)
        self._number = launch

    def start(self) -> Mapping[str, str]:
        """As a LiveSource does; raises LaunchError where other ranks start than were asked for."""
        ready, expected = super().start(), self.environment.nodes * self.environment.ppn
        if ready.get("ranks") != str(expected):
            raise LaunchError(f"{ready.get('ranks')} ranks started in place of {expected}", "Check --nodes and --ppn")
        return ready

    def measure(self, points: Iterable[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        for point, samples in super().measure(points, effort):
            yield point, [replace(sample, launch=self._number) for sample in samples]

    def set_up_s(self) -> float:
        """Seconds before a communicator's first call by a table, on its slowest rank; NaN where there are none."""
        job = self.environment
        point = Point(Scenario(_SET_UP.collective, job.nodes, job.ppn, 0), (DEFAULT,), repetitions=_SET_UPS)
        times_s = [
            sample.time_s for _, samples in self.measure([point], Effort()) for sample in samples if sample.times_s
        ]
        return times_s[0] if times_s else math.nan


def _settings(scenario: Scenario, choice: Choice) -> Settings:
    """The variables of native/common/mock_ups.h."""
    if choice == DEFAULT:
        return ()
    values = {"direct_above": direct_above_bytes(scenario.size_bytes), **dict(choice.parameters)}
    values["algorithm"] = ALGORITHMS.index(choice.algorithm)
    return tuple((f"COLLTUNE_ALLTOALLV_{name.upper()}", int(value)) for name, value in values.items())
