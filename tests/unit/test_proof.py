"""The proof and the comparison of the files, on simulated launches whose true times are known."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import pytest
from memory_bench import ENVIRONMENT, MemoryLibrary

from colltune.core.inner_calls import SharedCall, shared_calls
from colltune.core.proven import Decision, Verdict
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, SizeBasis, Status, parse_choice
from colltune.core.space import Space, weights_in_job
from colltune.core.stop import StopRequest
from colltune.distill.decide import Decided
from colltune.judge.evidence import FEWEST_LAUNCHES
from colltune.measure.contract import Effort
from colltune.prove.compare.in_force import FilesComparison
from colltune.prove.compare.two_sides import verify
from colltune.prove.proof import Proof, judge_one_launch, proven_rules
from colltune.session.tuning.options import Listener
from colltune.store.journal import read_journal
from colltune.store.tuning import CONFIRMATION, Tuning
from colltune_study.simulated.drawn import SimulatedSource

HERE = replace(ENVIRONMENT, nodes=4, ppn=4)
FAST, RING, TREE = Choice("nb"), Choice("ring"), parse_choice("alpha+tree(k=3)")
# How many times as slow a scenario is under rules of bcast as the choice that they make there.
Slowdown = Callable[[RuleSet, Scenario], float]


@dataclass
class Bench(MemoryLibrary):
    """Its files stand for ``in_force``, under which calls are ``slowed``; every default is a composition."""

    launch_s: float = 0.0
    nodes: int = 4
    ppn: int = 4
    environment: Environment = HERE
    slowed: Slowdown = lambda _rules, _scenario: 1.0
    in_force: Mapping[str, RuleSet] = field(default_factory=dict)

    def touched_by_default(self, scenario: Scenario) -> Mapping[SharedCall, Choice]:
        return shared_calls(self.inner_calls, scenario, Choice("alpha"))

    def launch(self, seed: int, variables: Mapping[str, str] | None = None, **_more: object) -> SimulatedSource:
        def under_files(scenario: Scenario, _choice: Choice) -> float | Status:
            time_s = self.truth(scenario, self.in_force[scenario.collective].evaluate(scenario))
            return time_s if isinstance(time_s, Status) else time_s * self.slowed(self.in_force["bcast"], scenario)

        return self._launched(seed, under_files if variables else self.truth)

    def emit(self, rule_sets: Mapping[str, RuleSet]) -> Tuning:
        self.in_force = dict(rule_sets)
        return Tuning(self.environment, rule_sets, {"rules": b"written"}, {"TUNED": "{directory}/rules"})


def rules_of(gate: Sequence[Decision]) -> dict[str, RuleSet]:
    """A rule for each kept scenario of one size, as distillation makes them; the default elsewhere."""
    spaces = {name: Space(name, tuple(GRID[name]), lambda _s: (DEFAULT, FAST, RING, TREE)) for name in GRID}
    decided = {name: dict.fromkeys(GRID[name], DEFAULT) for name in GRID}
    for result in gate:
        decided[result.scenario.collective][result.scenario] = result.choice
    return proven_rules(Bench(usual), spaces, decided, gate)


GRID = {
    name: [Scenario(name, 4, ppn, size) for ppn in (2, 4) for size in (8, 64, 512, 4096)]
    for name in ("bcast", "allreduce")
}
MINE = Scenario("bcast", 4, 2, 64)
BESIDE = Scenario("bcast", 4, 4, 64)  # has the same leaders


def usual(_scenario: Scenario, choice: Choice) -> float:
    return {DEFAULT: 2e-5, FAST: 1e-5, RING: 2e-5, TREE: 1e-5}[choice]


def kept(scenario: Scenario, choice: Choice) -> Decision:
    return Decision(scenario, choice, Verdict.KEPT, (2.0,) * 8, "twice as fast in fresh launches")


def keep_what_pays(
    bench: Bench,
    place: Path,
    *results: Decision,
    left_s: float = math.inf,
    grace_s: float = math.inf,
    time_s: Callable[[Scenario], float] = lambda _scenario: 2e-5,
) -> dict[Scenario, str]:
    """The verdict on each scenario, with the reason of a refusal."""
    in_force = FilesComparison(
        bench=bench,
        rules_of=rules_of,
        emit=bench.emit,
        workplace=place,
        grid=[scenario for grid in GRID.values() for scenario in grid],
        seed=1,
        launch_s=1.0,
        time_s=time_s,
        deadline_s=bench.now_s() + left_s,
        grace_s=grace_s,
    )
    found = in_force.keep_what_pays(list(results))
    return {r.scenario: "kept" if r.verdict is Verdict.KEPT else r.reason for r in found}


@pytest.mark.parametrize(("left_s", "of_each_kind"), [(math.inf, 5), (0.0, 3)])
def test_what_is_as_fast_in_force_as_it_was_proven_stays_where_time_is_short_by_fewer_launches(
    left_s: float, of_each_kind: int, tmp_path: Path
) -> None:
    bench = Bench(usual)
    assert keep_what_pays(bench, tmp_path, kept(MINE, FAST), left_s=left_s) == {MINE: "kept"}
    assert (tmp_path / "rules").read_bytes() == b"written"
    assert len(bench.launches) == 2 * of_each_kind


LONG, SUM = Scenario("bcast", 4, 2, 4096), Scenario("allreduce", 4, 2, 64)


@pytest.mark.parametrize(
    ("choice", "slowed", "reason", "other"),
    [
        (FAST, lambda rules, one: 2.2 if one == MINE and rules.evaluate(MINE) == FAST else 1.0, "only 0.9", LONG),
        # All rules of a collective go where what has none is slower.
        (FAST, lambda rules, one: 1.5 if one.collective == "bcast" and one.ppn == 4 else 1.0, "slows", SUM),
        # The leaders of 4 x 2 are those of 4 x 4, which has no rule, but runs a composition by default.
        (TREE, lambda rules, one: 1.5 if one == BESIDE and rules.evaluate(MINE) == TREE else 1.0, "slows 4 x 4", LONG),
    ],
)
def test_what_is_not_faster_in_force_or_slows_others_goes_alone(
    choice: Choice, slowed: Slowdown, reason: str, other: Scenario, tmp_path: Path
) -> None:
    found = keep_what_pays(Bench(usual, slowed=slowed), tmp_path, kept(MINE, choice), kept(other, FAST))
    assert reason in found[MINE]
    assert found[other] == "kept"
    assert keep_what_pays(Bench(usual), tmp_path, kept(MINE, choice)) == {MINE: "kept"}


def test_files_for_which_there_is_no_time_at_all_are_not_tried_and_not_refused(tmp_path: Path) -> None:
    bench = Bench(usual)
    found = keep_what_pays(bench, tmp_path, kept(MINE, FAST), left_s=0.0, grace_s=0.0)
    assert found == {MINE: "the budget ended before the files were compared in force"}
    assert not bench.launches


def test_a_launch_that_is_cut_off_takes_nothing_from_those_before_it(tmp_path: Path) -> None:
    """The sixth launch answers on its first scenario only: the two before are compared, as many of each kind."""

    class CutOff(Bench):
        def launch(self, seed: int, variables: Mapping[str, str] | None = None) -> SimulatedSource:
            source = super().launch(seed, variables)
            if len(self.launches) >= 6:
                measure = source.measure
                source.measure = lambda points, effort: islice(measure(points, effort), 1)  # type: ignore[method-assign]
            return source

    bench = CutOff(usual)
    assert keep_what_pays(bench, tmp_path, kept(MINE, FAST), left_s=0.0) == {MINE: "kept"}
    assert len(bench.launches) == 6


def test_long_calls_without_a_rule_are_left_out_where_time_is_short(tmp_path: Path) -> None:
    """The default of 4 KiB takes a minute: what the search of the file costs, the short calls feel most."""
    seen: set[Scenario] = set()

    def slow(scenario: Scenario, choice: Choice) -> float:
        seen.add(scenario)
        return usual(scenario, choice)

    times = {s: 60.0 if s.size_bytes == 4096 else 2e-5 for s in GRID["bcast"]}
    found = keep_what_pays(Bench(slow), tmp_path, kept(MINE, FAST), left_s=60.0, time_s=times.__getitem__)
    assert found == {MINE: "kept"}
    assert 4096 not in {s.size_bytes for s in seen}
    assert seen > {MINE}


def prove(bench: Bench, out: Path, candidates: Mapping[Scenario, Choice], left_s: float = 60.0) -> Proof:
    samples = [
        Sample(s, choice, Status.OK, (time_s,) * 10, cost_s=Effort().expected_cost_s(time_s))
        for s, other in candidates.items()
        for choice in (DEFAULT, other)
        for time_s in (bench.truth(s, choice),)
    ]
    return Proof(
        bench=bench,
        out=out,
        seed=1,
        threshold=1.03,
        deadline_s=bench.now_s() + left_s,
        grace_s=math.inf,
        launch_s=0.01,
        samples=samples,
        effort=Effort(),
        grid=[scenario for grid in GRID.values() for scenario in grid],
        listener=Listener(),
        stop=StopRequest(),
        weight=weights_in_job(4, 4),
    )


CANDIDATES = {MINE: FAST, Scenario("bcast", 4, 4, 512): RING}


def decided(bench: Bench, candidates: Mapping[Scenario, Choice], gain: float = 0.3) -> dict[str, Decided]:
    """What a campaign would have decided, of one collective; the default everywhere else."""
    choices = dict.fromkeys(GRID["bcast"], DEFAULT) | dict(candidates)
    gains = {scenario: gain if choice != DEFAULT else 0.0 for scenario, choice in choices.items()}
    default_s = {scenario: float(bench.truth(scenario, DEFAULT)) for scenario in choices}
    return {"bcast": Decided(choices, gains, default_s)}


def test_the_proof_keeps_what_is_faster_and_writes_down_what_it_measured(tmp_path: Path) -> None:
    bench = Bench(usual)
    gate = prove(bench, tmp_path, CANDIDATES).judge(decided(bench, CANDIDATES), rules_of, bench.emit).decisions
    assert {r.choice: r.verdict for r in gate} == {FAST: Verdict.KEPT, RING: Verdict.REFUSED}
    assert not [path for path in tmp_path.iterdir() if path.name != CONFIRMATION], "the trial files are gone"
    launches = {s.launch for s in read_journal(tmp_path / CONFIRMATION).samples if s.choice == FAST}
    assert len(launches) >= FEWEST_LAUNCHES


def test_a_time_that_the_campaign_measured_shows_that_the_default_moved_and_one_of_a_model_does_not(
    tmp_path: Path,
) -> None:
    bench = Bench(usual)
    of_model = decided(bench, {MINE: FAST})
    of_model["bcast"].default_s[MINE] /= 3.0  # between two sizes the default may change its algorithm
    proof = prove(bench, tmp_path / "model", {BESIDE: FAST})
    [found] = proof.judge(of_model, rules_of, bench.emit).decisions
    assert found.verdict is Verdict.KEPT, found.reason
    proof = prove(bench, tmp_path / "measured", {MINE: FAST}, left_s=2.0)
    proof = replace(
        proof,
        samples=[
            replace(one, times_s=(one.times_s[0] / (3.0 if one.choice == DEFAULT else 1.0),) * 10)
            for one in proof.samples
        ],
    )
    [found] = proof.judge(of_model, rules_of, bench.emit).decisions
    assert found.verdict is Verdict.NOT_TRIED
    assert "it took 3.0" in found.reason


def test_without_time_or_candidates_nothing_is_proven_and_nothing_is_launched_for_it(tmp_path: Path) -> None:
    bench = Bench(usual)
    proof = prove(bench, tmp_path, CANDIDATES, left_s=-1.0)
    gate = proof.judge(decided(bench, CANDIDATES), rules_of, bench.emit).decisions
    assert [r.verdict for r in gate] == [Verdict.NOT_TRIED] * 2
    assert not prove(bench, tmp_path, {MINE: FAST}).judge(decided(bench, {}), rules_of, bench.emit).decisions
    assert not bench.launches


def samples_of(scenario: Scenario, ratio: float) -> list[Sample]:
    return [Sample(scenario, DEFAULT, Status.OK, (ratio * 1e-5,) * 16), Sample(scenario, FAST, Status.OK, (1e-5,) * 16)]


@pytest.mark.parametrize(("ratio", "verdict"), [(10.0, Verdict.PROVISIONAL), (1.05, Verdict.REFUSED)])
def test_one_launch_proves_nothing_however_fast(ratio: float, verdict: Verdict) -> None:
    bench = Bench(usual)
    result = judge_one_launch(MINE, FAST, samples_of(MINE, ratio), bench.baseline, 1.03)
    assert result.verdict is verdict
    assert "before the proof" in result.reason
    assert "fresh" not in result.reason
    assert not rules_of([result])["bcast"].departs


@pytest.mark.parametrize("stage", ["proving", "comparing"])
def test_what_is_cut_off_before_the_files_are_compared_is_provisional(tmp_path: Path, stage: str) -> None:
    bench, stop = Bench(usual), StopRequest()

    def progress(results: Sequence[Decision]) -> None:
        if stage == "proving" and any(result.verdict is Verdict.KEPT for result in results):
            stop.make()

    def begin(text: str) -> None:
        if text.startswith(stage) and stage == "comparing":
            stop.make()

    listener = Listener(proof=progress, stage=begin)
    cut = replace(prove(bench, tmp_path, {MINE: FAST}), stop=stop, listener=listener)
    (result,) = cut.judge(decided(bench, {MINE: FAST}), rules_of, bench.emit).decisions
    assert result.verdict is Verdict.PROVISIONAL
    assert "not compared" in result.reason
    # Another run, which is not cut off, proves it.
    (again,) = prove(bench, tmp_path, {MINE: FAST}).judge(decided(bench, {MINE: FAST}), rules_of, bench.emit).decisions
    assert again.verdict is Verdict.KEPT


def test_a_verification_goes_on_without_what_the_agent_refuses_and_names_it() -> None:
    def partly(scenario: Scenario, choice: Choice) -> float | Status:
        return Status.UNMEASURED if scenario == MINE else usual(scenario, choice)

    bench = Bench(partly)
    tuning = bench.emit({"bcast": RuleSet.always("bcast", SizeBasis.TOTAL, FAST)})
    notes: list[str] = []
    found = verify(bench, tuning, Path("nowhere"), [MINE, BESIDE], 3, 1, note=notes.append)
    assert [comparison.scenario for comparison in found] == [BESIDE]
    assert len(notes) == 1
    assert str(MINE) in notes[0]
    assert "was not measured" in notes[0]
