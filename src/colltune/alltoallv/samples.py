"""Samples of the non-uniform all-to-all from one launch of native/alltoallv_measure."""

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from statistics import median

from colltune.alltoallv.lookup_table import COLLECTIVE, peers_among
from colltune.core.disturbance import Load, worse_of
from colltune.core.errors import LaunchError
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, Status
from colltune.core.space import Point
from colltune.measure.agent_process import AgentProcess, parse_fields
from colltune.measure.contract import Effort
from colltune.measure.request import read_load
from colltune.measure.watch import Watch, unjudged

_FIRST = 5  # repetitions, by which the further ones are chosen
_FORWARDED = (64, 1024)  # averages up to which blocks of four times that are forwarded
_SILENCE_S = 120.0
_START_S = 120.0


def direct_above_bytes(average_bytes: int) -> int:
    """Blocks beyond this are not forwarded where the average is ``average_bytes``: four times it at least, in 16 bits.

    Few values: sizes beside each other have one setting, so that a program whose sizes vary does not change it.
    """
    return next((4 * most for most in _FORWARDED if average_bytes <= most), 65535)


@dataclass(frozen=True, slots=True, order=True)
class Blocks:
    """What is exchanged: ``distribution`` of native/alltoallv_measure/blocks.h, from each to ``peers``.

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
        found = peers_among(self.peers, ranks)
        if found is None:
            raise ValueError(f"{ranks} ranks cannot have {self.collective}")
        return found


@dataclass
class AlltoallvSource:
    """A Source of alltoallv scenarios, whose collective and size name the blocks (see Blocks).

    ``command`` starts the measuring program on the whole job. ``seed`` fixes the blocks. A launch that ends is not
    begun anew: what it was asked for comes back as crashed, and the next point raises LaunchError. What the job cannot
    form comes back as unmeasured, with the reason.
    """

    environment: Environment
    command: Sequence[str]
    process_environment: Mapping[str, str]
    seed: int = 1
    launch: int = 0
    watch: Watch = field(default_factory=unjudged)

    def __post_init__(self) -> None:
        self._process: AgentProcess | None = None
        self._asked = 0
        self._unfit = ""  # why the last point was not measured
        self._load = Load()  # what else ran during the last request
        self.disturbed = False

    def measure(self, points: Iterable[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        for point in points:
            yield point, self._calm(point, effort)

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
            self.disturbed = self.watch.is_disturbed_launch(self._process.last_lines)
            self._process = None

    def set_up_s(self) -> float:
        """Seconds that a communicator takes before its first call by a table, the slowest rank's; NaN if the job ends.

        In a launch that has done nothing else, connections that have to be opened for it are counted.
        """
        process = self._started()
        self._asked += 1
        process.send(f"setup {self._asked}")
        found = math.nan
        while (line := self._heard(process)) is not None and (words := line.split())[0] != "done":
            if words[0] == "setup":
                found = float(words[2])
        return found

    def _calm(self, point: Point, effort: Effort) -> list[Sample]:
        """Measures again what other programs disturbed; where that does not help, says so."""
        for tries in count(1):
            samples = self._point(point, effort)
            took_s = sum(sample.cost_s for sample in samples)
            if not self.watch.is_disturbed(self._load, took_s):
                break
            if (pause_s := self.watch.pause_s(tries)) is None:
                return [replace(s, status=Status.DISTURBED) if s.status is Status.OK else s for s in samples]
            time.sleep(pause_s)
        return samples

    def _point(self, point: Point, effort: Effort) -> list[Sample]:
        began_s, self._unfit, self._load = time.monotonic(), "", Load()
        kept: dict[int, tuple[float, ...]] = {}
        first = self._ask(point, _FIRST, kept)
        known = [median(times) for times in first.values() if times]
        more = 0
        if known:
            most = point.repetitions or effort.most
            wanted = max(effort.fewest, int(effort.box_s / max(median(known), 1e-7)))
            more = min(wanted, most) - _FIRST
        further = self._ask(point, more, kept) if more > 0 else {}
        cost_s = (time.monotonic() - began_s) / len(point.choices)
        samples, lost = [], Status.UNMEASURED if self._unfit else Status.CRASHED
        for index, choice in enumerate(point.choices):
            times = (*first.get(index, ()), *further.get(index, ()))
            status = Status.OK if times else Status.WRONG if index in first else lost
            samples.append(
                Sample(
                    scenario=point.scenario,
                    choice=choice,
                    status=status,
                    detail=self._unfit,
                    times_s=times,
                    cost_s=cost_s,
                    launch=self.launch,
                    group=self._asked,
                    started_s=began_s,
                    kept_s=median(kept[index]) if index in kept else None,
                    load=self._load,
                )
            )
        return samples

    def _ask(self, point: Point, repetitions: int, kept: dict[int, tuple[float, ...]]) -> dict[int, tuple[float, ...]]:
        """Times by position of the choice; empty where the result was wrong; nothing where the job ended.

        ``kept`` takes those with a heap that keeps what is freed, where calls meet page faults.
        """
        process = self._started()
        self._asked += 1
        settings = " ".join(_setting(choice, point.scenario) for choice in point.choices)
        blocks, at = Blocks.of(point.scenario), point.scenario
        size_bytes = 0 if blocks.is_recorded else at.size_bytes
        pattern = f"{blocks.distribution} {blocks.peers_among(at.ranks)} {size_bytes}"
        process.send(f"measure {self._asked} {at.nodes} {at.ppn} {pattern} {repetitions} {self.seed} {settings}")
        found: dict[int, tuple[float, ...]] = {}
        while (line := self._heard(process)) is not None and (words := line.split())[0] != "done":
            if words[0] == "unfit":
                self._unfit = " ".join(words[2:])
            if words[0] == "load":
                self._load = worse_of(self._load, read_load(parse_fields(line)))
            if words[0] == "kept":
                kept[int(words[2])] = tuple(map(float, words[3:]))
            if words[0] in ("time", "wrong"):
                found[int(words[2])] = tuple(map(float, words[3:]))
        return found

    @staticmethod
    def _heard(process: AgentProcess) -> str | None:
        """The next line; None where the job has ended, or fell silent and was ended."""
        try:
            return process.read(_SILENCE_S)
        except TimeoutError:
            process.kill()
            return None

    def _started(self) -> AgentProcess:
        if self._process is None:
            self._process = AgentProcess(self.command, self.process_environment, _START_S)
            ranks = int(self._process.ready.get("ranks", "0"))
            expected = self.environment.nodes * self.environment.ppn
            if ranks != expected:
                raise LaunchError(f"{ranks} ranks started in place of {expected}", "Check --nodes and --ppn")
        return self._process


def _setting(choice: Choice, scenario: Scenario) -> str:
    if choice == DEFAULT:
        return "library:0:0:0"
    values = dict(choice.parameters)
    direct = values.get("direct_above", direct_above_bytes(scenario.size_bytes))
    return f"{choice.algorithm}:{values.get('radix', 0)}:{values.get('batch', 0)}:{direct}"
