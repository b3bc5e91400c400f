"""Clusters that SimGrid simulates: as sources and benches, and as a user tunes and collects on them."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from bench_laws import BenchContract
from colltune.bench.contract import Bench
from colltune.core.errors import InputError
from colltune.core.sample import DEFAULT, Choice, Scenario, Status
from colltune.core.space import Point
from colltune.measure.contract import Effort, Source
from colltune.store.tuning import load_deployable, load_tuning
from colltune_study.recorded.dataset import load_grids, read_table
from colltune_study.simulated.simulated_cluster import NATIVE, Simulation, build_cpp, find_simgrid, open_simulation
from colltune_study.simulated.smpi import STEADY, AlgorithmCheck, Simulator
from colltune_study.simulated.smpi_cluster import parse_cluster
from colltune_study.simulated.smpi_process import SimulatedCall
from commands import Done, colltune, ended_with, run_to_end
from source_laws import SourceContract

TUNE = ("study", "tune")


@pytest.fixture(scope="session", name="simulated_environ")
def _simulated_environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which SimGrid is found, with a cache of its own."""
    if shutil.which("smpirun") is None or shutil.which("smpicxx") is None:
        pytest.skip("SimGrid's SMPI is not installed (apt-get install libsimgrid-dev)")
    return {**os.environ, "COLLTUNE_CACHE": str(tmp_path_factory.mktemp("simulated"))}


@pytest.fixture(scope="session", name="simulation")
def _simulation(simulated_environ: dict[str, str]) -> Iterator[Simulation]:
    opened = open_simulation("dragonfly:6x3", simulated_environ)
    yield opened
    opened.close()


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


def run(environ: dict[str, str], *arguments: str, code: int = 0) -> Done:
    return ended_with(code, run_to_end([sys.executable, "-m", "colltune", *arguments], env=environ))


@pytest.fixture(scope="module", name="tuned")
def _tuned(simulated_environ: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tuned") / "out"
    sizes = ("--min-size", "1KiB", "--max-size", "16KiB")
    done = run(simulated_environ, *TUNE, "dragonfly:4x2", "bcast", *sizes, "--budget", "1m", "--out", str(out))
    assert "are read by no MPI" in " ".join(done.stdout.split())
    return out


def test_a_tuned_simulated_cluster_beats_its_default(tuned: Path) -> None:
    tuning = load_tuning(tuned)
    assert tuning.environment.machine == "dragonfly:4x2"
    summary = tuning.summary
    assert summary.speedup.estimate > 1.03
    assert 0.0 < summary.share.inside_collectives_s < summary.total_s
    rules = tuning.rule_sets["bcast"]
    # knomial with k = 2 is the default of small messages, and never what departs from it.
    chosen = {str(rules.evaluate(Scenario("bcast", 4, 2, 1 << power))) for power in range(10, 15)}
    assert chosen != {"default"}
    assert tuning.files == {}


def test_its_rules_can_be_explained_and_not_run(tuned: Path, simulated_environ: dict[str, str]) -> None:
    said = colltune("explain", str(tuned), "bcast", "--size", "4KiB", environ=simulated_environ, code=0)
    assert "comparisons" in said.stdout or "none was tried" in said.stdout
    for command in (("env", str(tuned)), ("run", str(tuned), "--", "true"), ("verify", str(tuned))):
        refused = colltune(*command, environ=simulated_environ, code=2)
        assert "simulated cluster dragonfly:4x2" in refused.stderr
    with pytest.raises(InputError, match="no MPI reads its rules"):
        load_deployable(tuned)


def test_the_whole_table_of_a_cluster(simulated_environ: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "table.csv.gz"
    words = ("study", "collect", "allreduce", "bcast", "--simulate", "fattree:4x2", "--out", str(out))
    run(simulated_environ, *words, "--min-size", "512", "--max-size", "8KiB", "--node-counts", "2,3,4")
    table = read_table(out)
    assert set(table.collective) == {"allreduce", "bcast"}
    assert set(zip(table.nodes, table.ppn, strict=True)) == {(n, p) for n in (2, 3, 4) for p in (1, 2)}
    assert any(size & (size - 1) for size in table.msg_bytes)
    assert (table.n_reps == 1).all()
    assert {grid.collective for grid in load_grids([out], fewest_scenarios=10)} == {"allreduce", "bcast"}
    assert table.is_default.sum() == len(table.groupby(["collective", "nodes", "ppn", "msg_bytes"]))


def test_what_was_measured_is_used_again(simulated_environ: dict[str, str], tmp_path: Path) -> None:
    arguments = (*TUNE, "fattree:3x1", "barrier", "gather", "--max-size", "64", "--out", str(tmp_path))
    run(simulated_environ, *arguments, "--gate", "off")
    journal = tmp_path / "journal.jsonl"
    measured = journal.read_text()
    run(simulated_environ, *arguments, "--resume")
    assert journal.read_text().startswith(measured)
    assert "still hold and are used again" in run(simulated_environ, *arguments).stdout
    other = run(simulated_environ, *TUNE, "fattree:2x1", "barrier", "--out", str(tmp_path), code=2)
    assert "is of another environment" in other.stderr


def test_what_does_not_go_together_is_refused(simulated_environ: dict[str, str], tmp_path: Path) -> None:
    for more, said in (
        (("dragonfly:4x2", "bcast", "--profile", "app.json"), "--profile is for a real machine"),
        (("dragonfly:4x2", "bcast", "--reproducible"), "--reproducible"),
        (("ring:4x2", "bcast"), "no simulated network 'ring'"),
    ):
        done = colltune(*TUNE, *more, "--out", str(tmp_path), environ=simulated_environ, code=2)
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_without_simgrid_it_is_said_what_to_install_and_a_broken_smpirun_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="apt-get install libsimgrid-dev"):
        find_simgrid({"PATH": str(tmp_path)})
    for name in ("smpirun", "smpicxx"):
        (tmp_path / name).write_text("#!/bin/sh\necho nothing of use\n")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(InputError, match="does not say its version"):
        find_simgrid({"PATH": str(tmp_path)})
