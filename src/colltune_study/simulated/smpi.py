"""A Source whose machine is simulated by SimGrid's SMPI. docs/design/simulated.md says what is modelled."""

import contextlib
import hashlib
import heapq
import json
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from colltune.core.sample import Choice, Environment, Sample, Scenario, Status
from colltune.core.space import Point
from colltune.machine.files import read_file, read_record
from colltune.measure.contract import Answer, Effort, TimeIsUpError
from colltune_study.simulated.drawn import Noise, SimulatedSource
from colltune_study.simulated.smpi_cluster import SimulatedCluster, parse_cluster
from colltune_study.simulated.smpi_process import Simgrid, Simulated, SimulatedCall, SimulationError, SmpiProcess

# The simulator gives the same time for the same call always: nothing is added to it.
EXACT = Noise(0.0, 0.0, 1.5, 0.0, 0.0, 1.0, 1.0, 0.0)
# As on a well-behaved machine: repetitions scatter, launches differ by a little, choices each by themselves.
STEADY = Noise(0.03, 0.01, 1.5, 0.0, 0.01, 1.05, 1.02, 0.5)

# Steps of a loop over all ranks that are simulated at most (of loops in which steps differ, twice as many).
STEPS = 32
# The simulator takes counts as int.
_MOST_BYTES = 2**31 - 1
# Shapes on which an algorithm has to be right before it is a candidate: a power of two and none.
PROOF_SHAPES = ((8, 4), (6, 3))
_PROOF_CLUSTER = parse_cluster("fattree:64x1")
# An algorithm is also checked on the shape on which it is timed, as long as that is quick.
_CHECKED_RANKS = 32
_RUNNING = 4  # simulations that wait for requests
# What a measurement takes on a real machine beside its calls: the request, a communicator, the answer.
SET_UP_S = 1e-3


Known = tuple[float, bool] | str


def read_memory(path: Path) -> dict[str, Known]:
    """What was simulated before: seconds and whether they were sampled, or why there are none. Damage is left out."""
    known: dict[str, Known] = {}
    with contextlib.suppress(OSError):
        for line in read_file(path).splitlines():
            with contextlib.suppress(ValueError):  # another tuning may be writing the last line
                known.update(read_record(line, dict[str, Known]))
    return known


@dataclass(frozen=True, slots=True)
class AlgorithmCheck:
    """Whether an algorithm is right, and if not, what was seen."""

    right: bool
    seen: str = ""


class Simulator:
    """Times and checks algorithms on ``cluster``. Every answer is kept in ``memory``, if that is a file, for later.

    ``limit_s``: of the clock on the wall, for one call; what takes longer is left out. ``steps`` of a loop over all
    ranks are simulated at most, 0 for all.
    """

    def __init__(
        self,
        simgrid: Simgrid,
        cluster: SimulatedCluster,
        memory: Path | None = None,
        limit_s: float = 300.0,
        steps: int = STEPS,
    ) -> None:
        self._simgrid, self._steps = simgrid, steps
        self.cluster = cluster
        self._limit_s = limit_s
        self._memory = memory
        self._known = {} if memory is None else read_memory(memory)
        self._running: OrderedDict[tuple[str, int, int], SmpiProcess] = OrderedDict()

    def time(self, algorithm: SimulatedCall, nodes: int, ppn: int, size_bytes: int) -> Simulated | str:
        """Seconds of simulated time, or why there are none."""
        key = f"time {self._place(self.cluster, nodes, ppn)} {algorithm.words()} {size_bytes} {self._steps}"
        if key not in self._known:
            found: Known
            try:
                process = self._process(self.cluster, nodes, ppn)
                simulated = process.time(algorithm, size_bytes, self._steps, self._limit_s)
                # The clock's last digits depend on what was simulated before.
                found = float(f"{simulated.time_s:.7g}"), simulated.sampled
            except SimulationError as error:
                self._end(self.cluster, nodes, ppn)
                found = str(error)
            self._keep(key, found)
        known = self._known[key]
        return known if isinstance(known, str) else Simulated(*known)

    def verdict(self, algorithm: SimulatedCall, nodes: int, ppn: int) -> AlgorithmCheck:
        """Whether ``algorithm`` gives right results on a shape; which network it has makes no difference to that."""
        key = f"check {nodes}x{ppn} {algorithm.words()}"
        if key not in self._known:
            try:
                process = self._process(_PROOF_CLUSTER, nodes, ppn)
                wrong = max(
                    process.check(algorithm, size, self._limit_s) for size in _check_sizes(algorithm, nodes * ppn)
                )
                found = f"{wrong} ranks had a wrong result on {nodes} x {ppn}" if wrong else ""
            except SimulationError as error:
                self._end(_PROOF_CLUSTER, nodes, ppn)
                found = f"{error} on {nodes} x {ppn}"
            self._keep(key, found)
        seen = str(self._known[key])
        return AlgorithmCheck(not seen, seen)

    def close(self) -> None:
        while self._running:
            self._running.popitem()[1].close()

    def _keep(self, key: str, found: Known) -> None:
        self._known[key] = found
        if self._memory is not None:
            self._memory.parent.mkdir(parents=True, exist_ok=True)
            with self._memory.open("a", encoding="utf-8") as file:
                file.write(json.dumps({key: found}) + "\n")

    def _place(self, cluster: SimulatedCluster, nodes: int, ppn: int) -> str:
        """What a time depends on beside the call: the network, the hosts of the ranks, the costs of a rank."""
        bare = f"{cluster.platform()}{cluster.host_file(nodes, ppn)}{replace(cluster, nodes=2, ppn=1)}"
        return hashlib.sha256(bare.encode()).hexdigest()[:16]

    def _process(self, cluster: SimulatedCluster, nodes: int, ppn: int) -> SmpiProcess:
        key = (cluster.text, nodes, ppn)
        if key not in self._running:
            while len(self._running) >= _RUNNING:
                self._running.popitem(last=False)[1].close()
            self._running[key] = SmpiProcess(self._simgrid, cluster, nodes, ppn)
        self._running.move_to_end(key)
        return self._running[key]

    def _end(self, cluster: SimulatedCluster, nodes: int, ppn: int) -> None:
        process = self._running.pop((cluster.text, nodes, ppn), None)
        if process is not None:
            process.close()


def _check_sizes(algorithm: SimulatedCall, ranks: int) -> tuple[int, ...]:
    """Fewer elements than ranks, and a number that divides by neither ranks nor segments."""
    if algorithm.collective == "barrier":
        return (0,)
    if algorithm.collective in ("allgather", "alltoall", "gather", "scatter"):
        return (1, 67)
    return (12, 4 * (5 * ranks + 3), 2 * algorithm.segment + 20)


class SmpiSource:
    """A Source on a simulated cluster.

    ``algorithm_of`` says what runs for a choice in a scenario, the default included. The simulator's times know no
    noise; ``noise`` adds some, drawn anew for every ``launch``, so that what has to prove itself against noise does.
    ``now_s`` is the clock of the simulated machine: what its owner would have waited, by SET_UP_S and the calls.
    ``until_s`` is of ``clock``, that of the machine by default.
    """

    disturbed = False  # nothing else runs on a simulated cluster

    def __init__(
        self,
        environment: Environment,
        simulator: Simulator,
        algorithm_of: Callable[[Scenario, Choice], SimulatedCall],
        seed: int,
        launch: int = 1,
        noise: Noise = EXACT,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._simulator, self._algorithm_of = simulator, algorithm_of
        self._detail: dict[tuple[Scenario, Choice], str] = {}
        self._inner = SimulatedSource(environment, self._truth, seed, launch, noise)
        self._running: list[tuple[float, int, Point, list[Sample]]] = []
        self._tickets = 0
        self.now_s = 0.0
        self._clock = clock or (lambda: self.now_s)
        self.until_s = math.inf
        self.launches = 1

    @property
    def environment(self) -> Environment:
        return self._inner.environment

    @property
    def inside_s(self) -> float:
        return self.now_s

    def start(self) -> None:
        """Nothing has to be begun: the simulator starts with what it is asked first."""

    def kill(self) -> None:
        self._inner.kill()

    def measure(self, points: Iterable[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        for point in points:
            if not point.choices:
                continue
            if self._clock() >= self.until_s:
                return
            self.begin(point, effort)
            answer = self.next_answer()
            yield answer.point, answer.samples

    def begin(self, point: Point, effort: Effort, nodes: Sequence[int] | None = None) -> int:  # noqa: ARG002
        """Begins at once, beside all that runs. Where it is simulated makes no difference, nor does what runs beside.

        Every point is simulated alone: that points on disjoint parts do not disturb one another is taken for granted.
        """
        samples: list[Sample] = []
        end_s = self.now_s
        for _, found in self._inner.measure([point], effort):
            for sample in found:
                samples.append(self._costed(sample, effort, end_s))
                end_s += samples[-1].cost_s
        self._tickets += 1
        heapq.heappush(self._running, (end_s, self._tickets, point, samples))
        return self._tickets

    def next_answer(self) -> Answer:
        """What ends next on the simulated machine. Raises TimeIsUpError from ``until_s`` on."""
        if self._clock() >= self.until_s:
            raise TimeIsUpError
        end_s, ticket, point, samples = heapq.heappop(self._running)
        self.now_s = max(self.now_s, end_s)
        return Answer(ticket, point, samples, last=True)

    def close(self) -> None:
        self._inner.close()

    def _costed(self, sample: Sample, effort: Effort, started_s: float) -> Sample:
        calls = 1 + effort.warm_up + len(sample.times_s)
        cost_s = SET_UP_S + (calls * sample.time_s if sample.times_s else 0.0)
        detail = self._detail.get((sample.scenario, sample.choice), "")
        return replace(sample, cost_s=cost_s, started_s=started_s, detail=detail)

    def _truth(self, scenario: Scenario, choice: Choice) -> float | Status:
        algorithm = self._algorithm_of(scenario, choice)
        found = self._find(scenario, algorithm)
        if isinstance(found, str):
            self._detail[scenario, choice] = found
            return Status.INAPPLICABLE
        if found.sampled:
            self._detail[scenario, choice] = "not every step was simulated"
        return found.time_s

    def _find(self, scenario: Scenario, algorithm: SimulatedCall) -> Simulated | str:
        if scenario.ranks <= _CHECKED_RANKS:
            verdict = self._simulator.verdict(algorithm, scenario.nodes, scenario.ppn)
            if not verdict.right:
                return verdict.seen
        return self._simulator.time(algorithm, scenario.nodes, scenario.ppn, scenario.size_bytes)


def fits(scenario: Scenario) -> bool:
    """Whether the buffers of a call can be counted by the simulator."""
    return scenario.size_bytes * scenario.ranks <= _MOST_BYTES
