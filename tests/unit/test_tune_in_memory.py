"""`session.tune` from end to end without MPI: with a library that loads files, and where there is none."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from memory_bench import MemoryBench, MemoryLibrary, decided_by

from bench_laws import BenchContract
from colltune.core.errors import InputError
from colltune.core.proven import THRESHOLD, Decision, StopReason, Verdict
from colltune.core.sample import DEFAULT, Choice, Scenario, Status
from colltune.core.stop import StopRequest
from colltune.emit.live_rules import LIVE_FILE, parse_live
from colltune.emit.mpich.outcome import trees_of
from colltune.judge.evidence import FEWEST_LAUNCHES
from colltune.search.campaign import Progress
from colltune.session.tuning.options import Listener, TuneOptions, TuneResult
from colltune.session.tuning.tune import tune
from colltune.store.journal import read_journal
from colltune.store.tuning import CONFIRMATION, JOURNAL, load_tuning
from colltune_study.simulated.drawn import Noise

RING = Choice("scatter_ring_allgather")
NOISY = Noise(spread=0.05, tail_share=0.02, drift=0.02, unevenness=0.01, launch_mode=1.2, own_mode=1.02, own_share=0.5)
BENCHES = [MemoryBench, MemoryLibrary]
SIZES = 256, 1 << 18
# A bench of a kind with noise, what tuning it returned, and where that was written.
Tuned = Callable[[type[MemoryBench]], tuple[MemoryBench, TuneResult, Path]]


def truth(scenario: Scenario, choice: Choice) -> float:
    """The ring is slow to start and sends twice as fast; nb is slower than the default everywhere."""
    sending_s = scenario.ranks * scenario.size_bytes * 1e-9
    return {"default": 4e-6 + sending_s, "nb": 6e-6 + sending_s, RING.algorithm: 8e-6 + sending_s / 2}[choice.algorithm]


def options(**more: Any) -> TuneOptions:
    return TuneOptions(["bcast"], *SIZES, **more)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Tuned:
    @cache
    def made(kind: type[MemoryBench]) -> tuple[MemoryBench, TuneResult, Path]:
        bench, out = kind(truth, NOISY), tmp_path_factory.mktemp("tuned")
        return bench, tune(bench, options(), out), out

    return made


@pytest.mark.parametrize("kind", BENCHES)
def test_the_better_algorithm_is_found_proven_and_written(kind: type[MemoryBench], tuned: Tuned) -> None:
    bench, result, out = tuned(kind)
    rules = load_tuning(out).rule_sets["bcast"]
    scenarios = bench.space("bcast", *SIZES).scenarios
    times = {s: (truth(s, DEFAULT), truth(s, rules.evaluate(s))) for s in scenarios}
    assert all(ours_s <= default_s for default_s, ours_s in times.values())
    worth_it = [ours_s < default_s for s, (default_s, ours_s) in times.items() if default_s > 1.2 * truth(s, RING)]
    assert sum(worth_it) > 0.9 * len(worth_it) > 0
    kept = [one for one in result.decisions if one.verdict is Verdict.KEPT]
    assert min(one.speedup.low for one in kept) > THRESHOLD
    assert result.outcome.reasons == {"bcast": StopReason.WHOLE}
    assert read_journal(out / JOURNAL).samples == result.outcome.samples
    proof = read_journal(out / CONFIRMATION).samples
    assert {sample.scenario for sample in proof} <= {one.scenario for one in result.decisions}
    assert len({sample.launch for sample in proof}) >= FEWEST_LAUNCHES
    summary = load_tuning(out).summary
    assert summary.total_s == pytest.approx(bench.now_s())
    assert summary.total_s <= 300.0


def test_the_files_say_what_the_rules_say_and_the_live_selector_too(tuned: Tuned) -> None:
    bench, result, out = tuned(MemoryLibrary)
    tuning = result.tuning
    files = {Path(name).name: (out / name).read_bytes() for name in tuning.files}
    for scenario in bench.space("bcast", *SIZES).scenarios:
        written = decided_by(trees_of(files), scenario, bench.catalogue)
        assert written == tuning.rule_sets["bcast"].evaluate(scenario)
    assert b"scatter_ring_allgather" in files[LIVE_FILE]
    assert parse_live(files[LIVE_FILE].decode("ascii")) == tuning.live == load_tuning(out).live


def test_where_no_library_loads_files_none_are_compared(tmp_path: Path) -> None:
    stages: list[str] = []
    bench = MemoryBench(truth)
    result = tune(bench, options(), tmp_path, Listener(stage=stages.append))
    assert stages[:2] == ["beginning", "measuring"]
    assert not [text for text in stages if re.search("file|replay", text)]
    assert len(bench.launches) >= 1 + FEWEST_LAUNCHES
    assert result.tuning.variables == {}
    assert result.tuning.files == {}
    with pytest.raises(InputError, match="--reproducible"):  # equal bits are about a real library
        tune(MemoryBench(truth), options(reproducible=True), tmp_path)


def test_a_file_whose_search_costs_more_than_it_brings_is_not_written(tmp_path: Path) -> None:
    def close(scenario: Scenario, choice: Choice) -> float:
        return 1e-5 / (1.2 if choice == RING else 1.0)

    free = tune(MemoryLibrary(close), options(), tmp_path / "free")
    assert free.tuning.rule_sets["bcast"].departs
    dear = tune(MemoryLibrary(close, search_s=5e-6), options(), tmp_path / "dear")
    assert not dear.tuning.rule_sets["bcast"].departs
    assert any("in force" in one.reason for one in dear.decisions if one.verdict is Verdict.REFUSED)


def test_a_collective_that_is_wrong_under_its_file_keeps_the_default(tmp_path: Path) -> None:
    notes: list[str] = []
    result = tune(MemoryLibrary(truth, fault="bcast"), options(), tmp_path, Listener(note=notes.append))
    assert not load_tuning(tmp_path).rule_sets["bcast"].departs
    assert "bcast keep the default" in " ".join(notes)
    reasons = {one.reason for one in result.decisions if one.choice == RING and one.ratios}
    assert "the conformance check found a wrong result under its file" in reasons


def test_what_was_not_checked_in_time_is_not_called_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("colltune.prove.replay.on_workbench._SHORT_LIMIT_S", 3.0)
    notes: list[str] = []
    result = tune(MemoryLibrary(truth, fault="slow"), options(), tmp_path, Listener(note=notes.append))
    assert not load_tuning(tmp_path).rule_sets["bcast"].departs
    assert any("the check did not end within" in text for text in notes)
    proven = {one.reason for one in result.decisions if one.verdict is Verdict.PROVISIONAL}
    assert proven == {"the results under the files were not checked: the check did not end in its time"}


def test_nothing_is_written_where_nothing_is_faster(tmp_path: Path) -> None:
    result = tune(MemoryLibrary(lambda scenario, _choice: 1e-6 * (1 + scenario.size_bytes), NOISY), options(), tmp_path)
    assert not result.tuning.rule_sets["bcast"].departs
    assert not [one for one in result.decisions if one.verdict is Verdict.KEPT]


def test_choices_that_fail_are_left_out(tmp_path: Path) -> None:
    def broken(scenario: Scenario, choice: Choice) -> float | Status:
        return Status.WRONG if choice == RING else truth(scenario, choice)

    result = tune(MemoryLibrary(broken), options(), tmp_path)
    assert sum(sample.choice == RING for sample in result.outcome.samples) == 1
    assert not result.tuning.rule_sets["bcast"].departs


@pytest.mark.parametrize("kind", BENCHES)
def test_what_is_cut_off_in_the_measuring_is_provisional_and_goes_on(kind: type[MemoryBench], tmp_path: Path) -> None:
    stop, heard = StopRequest(), list[Progress]()

    def progress(step: Progress) -> None:
        heard.append(step)
        if len(heard) == 40:
            stop.make()

    bench = kind(truth)
    cut_off = tune(bench, options(), tmp_path, Listener(progress), stop)
    assert cut_off.outcome.interrupted
    assert bench.launches[0].closed
    assert {one.verdict for one in cut_off.decisions} <= {Verdict.PROVISIONAL, Verdict.REFUSED}
    assert not load_tuning(tmp_path).rule_sets["bcast"].departs
    before = read_journal(tmp_path / JOURNAL).samples
    whole = tune(kind(truth), options(resume=True), tmp_path)
    assert not whole.outcome.interrupted
    assert load_tuning(tmp_path).rule_sets["bcast"].departs
    after = read_journal(tmp_path / JOURNAL).samples
    assert after[: len(before)] == before
    # Nothing is measured anew in the launch of the campaign; what competes is looked at again in later ones.
    pairs = [(sample.scenario, sample.choice) for sample in after if sample.launch == 1]
    assert len(pairs) == len(set(pairs)) > len(after) // 3


@pytest.mark.parametrize("kind", BENCHES)
def test_what_is_cut_off_in_the_proof_is_provisional(kind: type[MemoryBench], tmp_path: Path) -> None:
    stop = StopRequest()

    def proof(results: Sequence[Decision]) -> None:
        if any(one.verdict is Verdict.KEPT for one in results):
            stop.make()

    result = tune(kind(truth), options(), tmp_path, Listener(proof=proof), stop)
    assert result.outcome.interrupted
    assert Verdict.KEPT not in {one.verdict for one in result.decisions}
    later = load_tuning(tmp_path).provisional
    assert later.rule_sets["bcast"].departs


def test_what_was_measured_before_is_used_again_and_what_was_proven_stays(tmp_path: Path) -> None:
    """In a budget that is too short, and so extended."""
    notes: list[str] = []
    first = tune(MemoryLibrary(truth), options(), tmp_path)
    tune(MemoryLibrary(truth, launch_s=2.0), options(budget_s=5.0), tmp_path, Listener(note=notes.append))
    assert any("extended" in text for text in notes)
    assert load_tuning(tmp_path).summary.budget.fixed_cost_s > 5.0
    assert any("still hold and are used again" in text for text in notes)
    kept = first.tuning.summary.having(Verdict.KEPT)
    rules = load_tuning(tmp_path).rule_sets["bcast"]
    assert kept
    assert [rules.evaluate(one.scenario) for one in kept] == [one.choice for one in kept]


def test_sizes_that_are_named_are_tuned_and_no_rule_spans_a_cliff_that_was_looked_at(tmp_path: Path) -> None:
    """The ring is twice as fast from 16 KiB on, but for calls of 46,340 B, in which it is ten times as slow."""

    def with_cliff(scenario: Scenario, choice: Choice) -> float:
        time_s = truth(scenario, choice)
        return 10.0 * time_s if choice == RING and scenario.size_bytes == 46340 else time_s

    named = TuneOptions.of(["bcast"], {"sizes": "16KiB,32KiB,46340,64KiB,128KiB"})
    assert named.sizes == (16384, 32768, 46340, 65536, 131072)
    bench = MemoryBench(with_cliff, NOISY)
    result = tune(bench, replace(named, budget_s=300.0), tmp_path)
    assert {sample.scenario.size_bytes for sample in result.outcome.samples} == set(named.sizes)
    rules = load_tuning(tmp_path).rule_sets["bcast"]
    whole = [rules.evaluate(Scenario("bcast", bench.nodes, bench.ppn, size)) for size in named.sizes]
    assert whole == [RING, RING, DEFAULT, RING, RING]
    assert rules.evaluate(Scenario("bcast", bench.nodes, bench.ppn, 46339)) == DEFAULT


class TestMemoryBench(BenchContract):
    """What is tuned in memory says something of real benches."""

    def make(self) -> MemoryBench:
        return MemoryBench(truth)


class TestMemoryLibrary(BenchContract):
    def make(self) -> MemoryLibrary:
        return MemoryLibrary(truth)
