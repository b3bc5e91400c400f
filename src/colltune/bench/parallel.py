"""Measures on disjoint parts of a job at once, and finds out whether they disturb one another."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from colltune.bench.contract import Bench
from colltune.core.sample import DEFAULT, Sample, Scenario, Status
from colltune.core.space import Point
from colltune.core.topology import Top, Topology
from colltune.measure.contract import Effort, Launch, TimeIsUpError
from colltune.schedule.contract import Placement, Task
from colltune.schedule.filling import FillingPacker

# Points that a packer chooses from: the more, the better it fills the gaps, and the less it keeps to their order.
WINDOW = 16
# A time beside others that is longer by more than this share says that they disturb one another.
TOLERANCE = 1.10
_ROUNDS = 3
_CHECK = Effort(relative_width=0.05, box_s=0.02, fewest=20, most=400)
_CHECK_BYTES = 1 << 16


@dataclass(frozen=True)
class Lanes:
    """A source that measures at once what ``packer`` puts on disjoint parts of the job."""

    source: Launch
    packer: FillingPacker


def conduct(
    lanes: Lanes,
    effort: Effort,
    tasks: Callable[[int], Sequence[Task]],
    begin: Callable[[Point], Point],
    take: Callable[[Point, Sequence[Sample]], None],
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Measures until ``tasks``, which is asked anew whenever something has ended, gives nothing more.

    ``begin`` says what of a point is measured, just before it is; ``take`` gets the samples. There is no barrier: what
    finds room starts, whatever else is running. ``clock`` is that of the machine. Ends early where the source's time is
    over.
    """
    source, packer = lanes.source, lanes.packer
    running: dict[int, Placement] = {}
    while True:
        for placement in packer.start(tasks(WINDOW), clock()):
            running[source.begin(begin(placement.task.point), effort, placement.nodes)] = placement
        if not running:
            return
        try:
            answer = source.next_answer()
        except TimeIsUpError:
            return
        if answer.last:
            packer.finish(running.pop(answer.ticket))
        take(answer.point, answer.samples)


def lanes_of(
    bench: Bench, source: Launch, topology: Topology, collective: str, note: Callable[[str], None]
) -> Lanes | None:
    """``source`` with a packer for ``topology``, after a check that what runs at once disturbs nothing, if it might.

    None where points are better measured one at a time; ``note`` hears why.
    """
    if topology.top is Top.ALONE or len(topology.hosts) < 2:
        return None
    if not bench.parts_disturb:
        return Lanes(source, FillingPacker(topology))
    interference = disturbance(source, topology, collective, bench.ppn)
    if interference is None:
        note("the topology leaves no room for two measurements at once")
        return None
    if interference.ratio > TOLERANCE:
        note(f"{interference.text}, so points are measured one at a time")
        return None
    note(f"{interference.text}; points are measured on disjoint parts of the job at once")
    return Lanes(source, FillingPacker(topology))


@dataclass(frozen=True)
class Interference:
    """One point measured alone, and beside others: medians in seconds. ``places``: how many ran at once."""

    point: Point
    places: int
    alone_s: float
    beside_s: float

    @property
    def ratio(self) -> float:
        return self.beside_s / self.alone_s

    @property
    def text(self) -> str:
        scenario = self.point.scenario
        where = f"{scenario.collective} of {scenario.size_bytes} B on {scenario.nodes} x {scenario.ppn}"
        return f"{where} takes {self.ratio:.2f} times as long beside {self.places - 1} others as alone"


def disturbance(source: Launch, topology: Topology, collective: str, ppn: int) -> Interference | None:
    """How much points on disjoint parts of the job disturb one another; None where no two can run at once."""
    places = _places(topology, collective, ppn)
    if len(places) < 2:
        return None
    point = Point(Scenario(collective, len(places[0]), ppn, 0 if collective == "barrier" else _CHECK_BYTES), (DEFAULT,))
    alone, beside = [], []
    for _ in range(_ROUNDS):
        alone += _times_s(source, point, places[:1])
        beside += _times_s(source, point, places)
    if not alone or not beside:
        return None
    return Interference(point, len(places), median(alone), median(beside))


def _places(topology: Topology, collective: str, ppn: int) -> list[tuple[int, ...]]:
    """The widest parts of equal size of which two at least can measure at once."""
    nodes = len(topology.hosts) // 2
    while nodes >= 1:
        if nodes * ppn > 1:
            point = Point(Scenario(collective, nodes, ppn, 0), (DEFAULT,))
            tasks = [Task(point, 1.0) for _ in range(len(topology.hosts) // nodes)]
            placed = FillingPacker(topology).start(tasks, 0.0)
            if len(placed) > 1:
                return [placement.nodes for placement in placed]
        nodes //= 2
    return []


def _times_s(source: Launch, point: Point, places: Sequence[tuple[int, ...]]) -> list[float]:
    """The median on the first place, while all places measure the same. Empty where it failed."""
    tickets = [source.begin(point, _CHECK, nodes) for nodes in places]
    samples: dict[int, list[Sample]] = {ticket: [] for ticket in tickets}
    left = set(tickets)
    while left:
        answer = source.next_answer()
        samples[answer.ticket] += answer.samples
        if answer.last:
            left.discard(answer.ticket)
    return [sample.time_s for sample in samples[tickets[0]] if sample.status is Status.OK]
