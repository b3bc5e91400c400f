"""Points on disjoint parts at once: on a simulated machine that knows which nodes work, and for how long."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from types import SimpleNamespace

import pytest
from campaign_bench import Bench

from colltune.bench.parallel import TOLERANCE, Lanes, disturbance, lanes_of
from colltune.core.proven import Decision, StopReason, Verdict
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, Status
from colltune.core.space import Point, Space
from colltune.core.topology import Topology
from colltune.learn.decision import DecisionLearner
from colltune.measure.contract import Answer, Effort, Source
from colltune.prove.audit.audit import Audit
from colltune.prove.audit.claims import ProofTime, claims_of
from colltune.schedule.contract import Task
from colltune.schedule.durations import Durations, ScenarioRows
from colltune.schedule.filling import FillingPacker
from colltune.search.point_queue import PointQueue
from packer_laws import groups

SERIAL = Topology.serial([f"n{number}" for number in range(8)])
RING = Choice("ring")
SPEED = {DEFAULT: 1.0, RING: 0.5}
JOB = SimpleNamespace(parts_disturb=True, ppn=1)  # what a packer asks of a bench


class Machine:
    """A Launch with a clock of its own; every node knows until when it works, and never does two things."""

    environment = Environment("mpich", "5.0.2", "0" * 64, "simulated", 8, 1, "single")
    disturbed = False

    def __init__(self, slowdown: Callable[[int], float] = lambda _others: 1.0) -> None:
        self.now_s = 0.0
        self.most_at_once = 0
        self._slowdown = slowdown
        self._running: list[tuple[float, int, Point, tuple[int, ...], float]] = []
        self._tickets = 0
        self.places: set[tuple[int, ...]] = set()

    def begin(self, point: Point, effort: Effort, nodes: Sequence[int] | None = None) -> int:
        assert nodes is not None
        assert len(nodes) == point.scenario.nodes
        assert all(set(nodes).isdisjoint(other[3]) for other in self._running)
        self._tickets += 1
        self.places.add(tuple(nodes))
        time_s = 1e-6 * (point.scenario.size_bytes + 1) * point.scenario.nodes
        took_s = 10 * time_s * len(point.choices)
        heapq.heappush(self._running, (self.now_s + took_s, self._tickets, point, tuple(nodes), time_s))
        self.most_at_once = max(self.most_at_once, len(self._running))
        return self._tickets

    def next_answer(self) -> Answer:
        others = len(self._running) - 1
        self.now_s, ticket, point, _, time_s = heapq.heappop(self._running)
        time_s *= self._slowdown(others)
        samples = [
            Sample(point.scenario, choice, Status.OK, (time_s * SPEED[choice],) * 10, cost_s=10 * time_s, group=ticket)
            for choice in point.choices
        ]
        return Answer(ticket, point, samples, last=True)

    def measure(self, points: Iterable[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        for point in points:
            self.begin(point, effort, range(point.scenario.nodes))
            answer = self.next_answer()
            yield answer.point, answer.samples

    def close(self) -> None:
        pass


def space(collective: str) -> Space:
    scenarios = tuple(Scenario(collective, nodes, 1, 1 << power) for nodes in (2, 4, 8) for power in range(10))
    return Space(collective, scenarios, lambda _scenario: (DEFAULT, RING))


def run(topology: Topology | None, machine: Machine) -> dict[tuple[Scenario, Choice], float]:
    lanes = None if topology is None else Lanes(machine, FillingPacker(topology))
    bench = Bench(spaces=[space("bcast"), space("allgather")], source=machine, lanes=lanes)
    assert set(bench.run().reasons.values()) == {StopReason.WHOLE}
    assert len(bench.journal) == len(bench.measured) == 120
    return {(s.scenario, s.choice): s.time_s for s in bench.journal}


@pytest.mark.parametrize(
    ("topology", "count", "least"),
    [(SERIAL, 1, 0.99), (groups(1, 8), 1, 0.99), (groups(2, 8), 2, 1.2), (groups(4, 8), 4, 1.3)],
)
def test_a_parallel_campaign_finds_the_same_in_less_time(topology: Topology, count: int, least: float) -> None:
    """By factors of 1.27 and 1.33 at most; an unknown topology runs one at a time."""
    serial, parallel = Machine(), Machine()
    assert run(None, serial) == run(topology, parallel)
    assert (serial.most_at_once, parallel.most_at_once) == (1, count)
    assert serial.now_s / parallel.now_s >= least


def test_a_proof_compares_regions_of_parts_at_once_on_parts_drawn_for_each_launch() -> None:
    scenarios = [Scenario(name, 2, 1, 1 << power) for name in ("bcast", "allgather", "alltoall") for power in range(10)]

    def proven(topology: Topology | None) -> tuple[list[Decision], Machine]:
        machine, seeds = Machine(), count(1)

        def launched() -> Source | Lanes:
            return machine if topology is None else Lanes(machine, FillingPacker(topology, next(seeds)))

        choices, gains, even = (dict.fromkeys(scenarios, value) for value in (RING, 0.7, 1.0))
        audit = Audit(
            claims=claims_of(choices, gains, even, ProofTime(0.0, even)),
            open_source=launched,
            record=lambda _samples: None,
            baseline=lambda _scenario: DEFAULT,
            cost_s=lambda _scenario: 1e-4,
            total_weight=30.0,
            threshold=1.03,
            launch_s=1e-3,
            clock=lambda: machine.now_s,
        )
        return audit.run(10.0), machine

    (serial, alone), (parallel, beside) = proven(None), proven(groups(4, 8))
    assert {one.verdict for one in serial} == {one.verdict for one in parallel} == {Verdict.KEPT}
    assert (alone.most_at_once, alone.places) == (1, {(0, 1)})
    assert beside.most_at_once > 1
    assert beside.places == {(first, first + 1) for first in range(0, 8, 2)}


def test_points_that_disturb_one_another_are_told_with_the_number_and_measured_in_turn() -> None:
    notes: list[str] = []
    shared = Machine(lambda others: 1.0 + 0.2 * others)
    found = disturbance(shared, groups(2, 8), "bcast", 1)
    assert found.places == 2
    assert found.ratio == pytest.approx(1.2)
    assert lanes_of(JOB, shared, groups(2, 8), "bcast", notes.append) is None
    assert "1.20 times as long beside 1 others" in notes[0]


def test_points_that_leave_one_another_alone_are_measured_at_once_and_where_none_can_disturb_unseen() -> None:
    notes: list[str] = []
    assert lanes_of(JOB, Machine(lambda others: TOLERANCE - 0.02), groups(4, 8), "bcast", notes.append) is not None
    assert "at once" in notes[0]
    assert lanes_of(JOB, Machine(), groups(1, 8), "bcast", notes.append) is None
    assert "no room" in notes[1]
    assert lanes_of(JOB, Machine(), SERIAL, "bcast", notes.append) is None
    assert len(notes) == 2
    machine, alone = Machine(), SimpleNamespace(parts_disturb=False, ppn=1)
    assert lanes_of(alone, machine, groups(4, 8), "bcast", lambda _text: None) is not None
    assert machine.now_s == 0.0


def learnt(costs_s: Mapping[Scenario, float], times: int = 1) -> Durations:
    """What is known of them after so many measurements of each."""
    durations = Durations(first_s=7.0)
    for scenario, cost_s in costs_s.items():
        durations.tell([Sample(scenario, DEFAULT, Status.OK, (1e-6,), cost_s=cost_s)] * times)
    return durations


def expect_s(durations: Durations, scenario: Scenario) -> float:
    return float(durations.expected_s(ScenarioRows.of([scenario]))[0])


@pytest.mark.parametrize(
    ("cost_s", "nodes"),
    [
        (lambda s: 1e-3 + 1e-4 * s.ranks.bit_length() + 1e-8 * s.size_bytes, 16),
        # A message for each rank, and at larger sizes the bytes of each rank in turn: nothing of that is in log2 ranks.
        (lambda s: 1e-4 + 2e-3 * s.ranks + 1e-8 * s.size_bytes * s.ranks, 128),
    ],
    ids=["by the logarithm of the ranks", "linear in the ranks"],
)
def test_durations_learn_the_constant_messages_and_bytes(cost_s: Callable[[Scenario], float], nodes: int) -> None:
    seen = [Scenario("bcast", nodes, 1, size) for size in (8, 4096, 1 << 16, 1 << 18) for nodes in (2, 4, 8, 16)]
    durations = learnt({one: cost_s(one) for one in seen})
    for unseen in (Scenario("bcast", nodes, 1, 8), Scenario("bcast", nodes, 1, 1 << 20)):
        assert expect_s(durations, unseen) == pytest.approx(cost_s(unseen), rel=0.2)
    # Nothing is known of the other collective but that it runs on the same machine.
    assert 1e-4 < expect_s(durations, Scenario("reduce", 4, 1, 8)) < 2e-2
    assert expect_s(Durations(first_s=7.0), Scenario("bcast", 4, 2, 8)) == 7.0


def test_noise_on_a_few_bytes_says_nothing_of_a_megabyte() -> None:
    costs_s = {1: 4e-4, 2: 4e-4, 4: 5e-4, 8: 1.2e-2}
    durations = learnt({Scenario("bcast", 1, 2, size): cost_s for size, cost_s in costs_s.items()}, 9)
    assert expect_s(durations, Scenario("bcast", 1, 2, 1 << 20)) < 2.0


def test_what_bytes_cost_is_learnt_from_other_collectives_too() -> None:
    of_bcast = {Scenario("bcast", 8, 1, size): 1e-3 + 1e-7 * size for size in (8, 4096, 1 << 16, 1 << 20)}
    durations = learnt({**of_bcast, **{Scenario("alltoall", 8, 1, size): 1e-3 for size in (1, 2, 4, 8)}}, 9)
    assert expect_s(durations, Scenario("alltoall", 8, 1, 8)) == pytest.approx(1e-3, rel=0.1)
    # Eight blocks of a megabyte.
    assert expect_s(durations, Scenario("alltoall", 8, 1, 1 << 20)) == pytest.approx(0.84, rel=0.2)


def test_more_ranks_than_were_measured_have_a_worst_case() -> None:
    durations = learnt({Scenario("bcast", 4, 1, size): 1e-3 for size in (8, 64, 512)}, 9)
    assert expect_s(durations, Scenario("bcast", 64, 1, 8)) == pytest.approx(1e-3, rel=0.1)
    assert durations.worst_cases_s(ScenarioRows.of([Scenario("bcast", 64, 1, 8)]))[0] >= 0.9 * 16e-3


def test_a_queue_prefers_what_may_change_the_selection() -> None:
    """Near the size at which RING is twice as fast it is selected already; near the other one it is open which."""
    durations = Durations(1.0)
    queue = PointQueue(space("bcast"), DecisionLearner(space("bcast"), 1), durations)
    for power, faster in ((2, 2.0), (8, 1.0)):
        scenario = Scenario("bcast", 8, 1, 1 << power)
        pair = [(DEFAULT, 1e-5), (RING, 1e-5 / faster)]
        samples = [Sample(scenario, choice, Status.OK, (time_s,), cost_s=1e-3) for choice, time_s in pair]
        durations.tell(samples)
        queue.know(samples)
    near, far = (Point(Scenario("bcast", 8, 1, 1 << power), (DEFAULT, RING)) for power in (3, 7))
    worth_near, worth_far = queue.worth([near, far])
    assert worth_far > 1.3 * worth_near > 0.0
    assert all(point.scenario.size_bytes not in (4, 256) or point.scenario.nodes < 8 for point in queue.everything())
    assert queue.rest_s() == pytest.approx(sum(queue.expect_s(point) for point in queue.everything()))


def test_a_task_waits_for_room() -> None:
    packer = FillingPacker(groups(2, 8))
    tasks = [Task(Point(Scenario("bcast", nodes, 1, 8), (DEFAULT,)), 1.0) for nodes in (4, 8)]
    assert [placement.task.nodes for placement in packer.start(tasks, 0.0)] == [8]
