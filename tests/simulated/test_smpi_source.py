"""The contract of sources on SimGrid's SMPI, and what only a real simulation shows."""

import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from bench_laws import BenchContract
from colltune.bench.contract import Bench
from colltune.core.sample import DEFAULT, Choice, Scenario, Status
from colltune.core.space import Point
from colltune.measure.contract import Effort, Source
from colltune_study.simulated.simulated_cluster import NATIVE, Simulation, build_cpp
from colltune_study.simulated.smpi import STEADY, AlgorithmCheck, Simulator
from colltune_study.simulated.smpi_cluster import parse_cluster
from colltune_study.simulated.smpi_process import SimulatedCall
from source_laws import SourceContract


class TestSmpiSource(SourceContract):
    @pytest.fixture(autouse=True)
    def _use(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def make(self) -> Source:
        return self._simulation.source(1, noise=STEADY)

    def points(self) -> list[Point]:
        scenarios = [Scenario("bcast", 6, 3, 4096), Scenario("allreduce", 4, 2, 64), Scenario("alltoall", 3, 1, 100)]
        return [Point(scenario, self._simulation.legal(scenario)) for scenario in scenarios]


class TestSimulation(BenchContract):
    @pytest.fixture(autouse=True)
    def _use(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def make(self) -> Bench:
        return self._simulation


def test_every_algorithm_is_right_on_shapes_of_all_kinds(simulation: Simulation) -> None:
    """What `legal` leaves out silently would be missed here."""
    wrong = []
    for collective in simulation.catalogue.entries:
        for shape in ((2, 1), (5, 1), (4, 2), (6, 3)):
            scenario = Scenario(collective, *shape, 0 if collective == "barrier" else 1 << 20)
            for choice in simulation.catalogue.legal(scenario):
                algorithm = simulation.algorithm(scenario, choice)
                verdict = simulation.simulator.verdict(algorithm, *shape)
                wrong += [] if verdict.right else [(collective, choice, verdict.seen)]
    assert wrong == []


def test_without_noise_times_are_the_same_whatever_came_before(simulation: Simulation, tmp_path: Path) -> None:
    scenario = Scenario("allgather", 6, 3, 3000)
    algorithm = simulation.algorithm(scenario, Choice("ring"))
    with closing(Simulator(simulation.simulator._simgrid, simulation.cluster, tmp_path / "memory.jsonl")) as other:
        other.time(simulation.algorithm(scenario, Choice("gather_bcast")), 6, 3, 1 << 20)
        assert other.time(algorithm, 6, 3, 3000) == simulation.simulator.time(algorithm, 6, 3, 3000)
    again = Simulator(simulation.simulator._simgrid, simulation.cluster, tmp_path / "memory.jsonl")
    assert again.time(algorithm, 6, 3, 3000) == simulation.simulator.time(algorithm, 6, 3, 3000)
    assert not again._running  # it was remembered


def test_the_default_is_one_of_the_candidates(simulation: Simulation) -> None:
    scenario = Scenario("bcast", 6, 3, 1 << 20)
    baseline = simulation.baseline(scenario)
    assert baseline in simulation.legal(scenario)
    source = simulation.source(1)
    ((_, samples),) = source.measure([Point(scenario, (DEFAULT, baseline))], Effort(fewest=1))
    assert samples[0].times_s == samples[1].times_s
    assert source.now_s > sum(sample.time_s for sample in samples)


def test_an_algorithm_that_the_program_does_not_have_has_no_time(simulation: Simulation) -> None:
    found = simulation.simulator.time(SimulatedCall("bcast", "telepathy"), 4, 2, 8)
    assert isinstance(found, str)
    assert "no such algorithm" in found
    # And the simulator goes on.
    assert not isinstance(simulation.simulator.time(SimulatedCall("bcast", "knomial"), 4, 2, 8), str)


def test_an_algorithm_that_is_wrong_is_found(simulation: Simulation, tmp_path: Path) -> None:
    """A broadcast that ends before all have all, and an exchange of neighbours of whom one has none."""
    broadcast = SimulatedCall("bcast", "scatter_ring")
    assert simulation.simulator.verdict(broadcast, 6, 3).right
    assert not simulation.simulator.verdict(SimulatedCall("allgather", "neighbor_exchange"), 5, 3).right
    sources, line = tmp_path / "native", "    ct_allgather_ring(call, call.out, call.bytes, 1, 0);\n"
    shutil.copytree(NATIVE, sources)
    text = (sources / "bcast.cpp").read_text()
    assert line in text
    (sources / "bcast.cpp").write_text(text.replace(line, ""))
    grid = simulation.simulator._simgrid
    made = replace(grid, program=build_cpp(grid.smpirun.with_name("smpicxx"), sources, tmp_path))
    with closing(Simulator(made, parse_cluster("dragonfly:6x3"))) as faulty:
        assert "ranks had a wrong result" in faulty.verdict(broadcast, 6, 3).seen


def test_what_is_wrong_is_no_candidate(simulation: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Scenario("bcast", 6, 3, 6660)  # of which nobody has asked yet

    def verdict(_self: Simulator, algorithm: SimulatedCall, *_shape: int) -> AlgorithmCheck:
        return AlgorithmCheck(algorithm.name != "two_level", "wrong")

    monkeypatch.setattr(Simulator, "verdict", verdict)
    left_out = set(simulation.catalogue.legal(scenario)) - set(simulation.legal(scenario))
    assert {choice.algorithm for choice in left_out} == {"two_level"}


def test_a_simulation_that_takes_too_long_is_given_up(simulation: Simulation) -> None:
    with closing(Simulator(simulation.simulator._simgrid, parse_cluster("fattree:64x4"), limit_s=0.01)) as hasty:
        found = hasty.time(SimulatedCall("alltoall", "pairwise"), 64, 4, 1 << 10)
    assert isinstance(found, str)
    assert "within 0" in found


def test_steps_that_are_left_out_are_reckoned_with(simulation: Simulation) -> None:
    """Of 63 steps of a ring 16 are simulated: the time is that of all of them within 3%."""
    times = []
    for steps in (0, 16):
        with closing(Simulator(simulation.simulator._simgrid, parse_cluster("fattree:16x4"), steps=steps)) as simulator:
            times.append(simulator.time(SimulatedCall("allgather", "ring"), 16, 4, 4096))
    whole, part = times
    assert (whole.sampled, part.sampled) == (False, True)
    assert part.time_s == pytest.approx(whole.time_s, rel=0.03)


def test_a_call_whose_buffers_cannot_be_counted_has_no_candidates(simulation: Simulation) -> None:
    assert simulation.legal(Scenario("alltoall", 6, 3, 1 << 28)) == ()
    assert all(s.nodes > 1 for s in simulation.space("bcast", 1, 64).scenarios)


def test_samples_cost_what_a_machine_would_have_spent(simulation: Simulation) -> None:
    source = simulation.source(1)
    scenario = Scenario("reduce", 4, 2, 1024)
    ((_, (sample,)),) = source.measure([Point(scenario, (Choice("knomial", (("k", 2),)),))], Effort(fewest=10))
    assert sample.status is Status.OK
    assert sample.cost_s == pytest.approx(1e-3 + 13 * sample.time_s)


def test_points_that_run_at_once_take_the_machine_as_long_as_the_longest(simulation: Simulation) -> None:
    scenarios = [Scenario("bcast", 2, 1, size) for size in (64, 1 << 20)]
    short, long = (Point(scenario, simulation.legal(scenario)[1:3]) for scenario in scenarios)
    alone = [simulation.source(1), simulation.source(1)]
    for source, point in zip(alone, (short, long), strict=True):
        assert [len(samples) for _, samples in source.measure([point], Effort())] == [2]
    together = simulation.source(1)
    tickets = [together.begin(long, Effort(), (0, 1)), together.begin(short, Effort(), (2, 3))]
    answers = [together.next_answer(), together.next_answer()]
    assert [answer.ticket for answer in answers] == tickets[::-1]
    assert [answer.point for answer in answers] == [short, long]
    assert together.now_s == pytest.approx(max(source.now_s for source in alone))
    serial = simulation.source(1)
    assert len(list(serial.measure([long, short], Effort()))) == 2
    assert serial.now_s == pytest.approx(sum(source.now_s for source in alone))
