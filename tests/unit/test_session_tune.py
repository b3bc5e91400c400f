"""Tuning a simulated cluster from end to end, where its times are a formula: no MPI, no SimGrid, no wait."""

import math
from pathlib import Path
from typing import TypedDict, Unpack

import pytest

from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import InputError
from colltune.core.proven import THRESHOLD, Verdict
from colltune.core.sample import Environment, Status
from colltune.core.scenario import Scenario
from colltune.core.stop import StopRequest
from colltune.search.campaign import Progress
from colltune.session.tuning.options import Listener, TuneOptions
from colltune.session.tuning.tune import tune
from colltune.store.journal import read_journal
from colltune.store.tuning import JOURNAL, load_tuning
from colltune_study.simulated.simulated_catalogue import load_simulated
from colltune_study.simulated.simulated_cluster import Simulation
from colltune_study.simulated.smpi import AlgorithmCheck
from colltune_study.simulated.smpi_cluster import parse_cluster
from colltune_study.simulated.smpi_process import Simulated, SimulatedCall

SIZES = 256, 1 << 18


class Asked(TypedDict, total=False):
    resume: bool
    gate: bool
    reproducible: bool


class Formula:
    """Trees cost a message of all bytes in each of their rounds; everything else sends the bytes about once."""

    def __init__(self) -> None:
        self.wrong: set[str] = set()
        self.closed = False

    def time(self, algorithm: SimulatedCall, nodes: int, ppn: int, size_bytes: int) -> Simulated:
        ranks = nodes * ppn
        if algorithm.name == "knomial":
            rounds = math.ceil(math.log(ranks, max(algorithm.k, 2)))
            return Simulated(rounds * (1e-6 + (algorithm.k - 1) * (3e-7 + size_bytes * 1e-9)), sampled=False)
        return Simulated(ranks * 1.5e-6 + 1.5 * size_bytes * 1e-9, sampled=False)

    def verdict(self, algorithm: SimulatedCall, nodes: int, ppn: int) -> AlgorithmCheck:
        right = algorithm.name not in self.wrong
        return AlgorithmCheck(right, "" if right else f"wrong on {nodes} x {ppn}")

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def formula() -> Formula:
    return Formula()


@pytest.fixture
def simulation(formula: Formula) -> Simulation:
    cluster, catalogue = parse_cluster("fattree:8x2"), load_simulated()
    environment = Environment(
        "simulated", catalogue.version, "f" * 16, cluster.text, 8, 2, "single", {"simulator": "a formula"}
    )
    return Simulation(cluster, catalogue, formula, environment)


def time_s(formula: Formula, simulation: Simulation, scenario: Scenario, choice: Choice) -> float:
    return formula.time(
        simulation.algorithm(scenario, choice), scenario.nodes, scenario.ppn, scenario.size_bytes
    ).time_s


def options(**more: Unpack[Asked]) -> TuneOptions:
    return TuneOptions(["bcast"], *SIZES, budget_s=120.0, **more)


def test_what_is_proven_is_faster_and_what_is_not_stays(
    simulation: Simulation, formula: Formula, tmp_path: Path
) -> None:
    result = tune(simulation, options(), tmp_path)
    assert (result.outcome.interrupted, result.nothing_to_tune) == (False, {})
    rules = load_tuning(tmp_path).rule_sets["bcast"]
    assert rules == result.tuning.rule_sets["bcast"]
    space = simulation.space("bcast", *SIZES)
    gained = could_gain = 0
    for scenario in space.scenarios:
        baseline = simulation.baseline(scenario)
        chosen = rules.evaluate(scenario)
        ours = baseline if chosen == DEFAULT else chosen
        default_s = time_s(formula, simulation, scenario, baseline)
        assert time_s(formula, simulation, scenario, ours) <= default_s
        best_s = min(time_s(formula, simulation, scenario, one) for one in space.choices(scenario) if one != DEFAULT)
        if default_s > 1.2 * best_s:
            could_gain += 1
            gained += time_s(formula, simulation, scenario, ours) < 1.05 * best_s
    assert gained > 0.9 * could_gain > 0
    kept = [one for one in result.decisions if one.verdict is Verdict.KEPT]
    assert kept
    assert min(one.speedup.low for one in kept) >= THRESHOLD
    assert read_journal(tmp_path / JOURNAL).samples == tuple(result.outcome.samples)


def test_an_algorithm_that_is_wrong_is_never_measured(simulation: Simulation, formula: Formula, tmp_path: Path) -> None:
    formula.wrong.add("two_level")
    result = tune(simulation, options(), tmp_path)
    assert "two_level" not in {sample.choice.algorithm for sample in result.outcome.samples}
    assert {sample.status for sample in result.outcome.samples} == {Status.OK}


def test_a_campaign_that_is_cut_off_says_so_and_goes_on(simulation: Simulation, tmp_path: Path) -> None:
    stop = StopRequest()
    heard: list[Progress] = []

    def progress(step: Progress) -> None:
        heard.append(step)
        if len(heard) == 3:
            stop.make()

    cut_off = tune(simulation, options(), tmp_path, Listener(progress), stop)
    assert cut_off.outcome.interrupted
    before = read_journal(tmp_path / JOURNAL).samples
    whole = tune(simulation, options(resume=True), tmp_path)
    assert not whole.outcome.interrupted
    after = read_journal(tmp_path / JOURNAL).samples
    assert after[: len(before)] == before
    pairs = [(sample.scenario, sample.choice) for sample in after]
    assert len(pairs) == len(set(pairs))


def test_options_that_mean_nothing_here_are_refused(simulation: Simulation, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--reproducible"):
        tune(simulation, options(reproducible=True), tmp_path)
