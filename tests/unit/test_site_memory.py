"""Jobs that share a store: each begins with what the others measured and proved, and adds to it."""

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from memory_bench import ENVIRONMENT, MemoryBench, MemoryLibrary
from test_tune_in_memory import RING, truth

from colltune.core.proven import Decision, Summary, Verdict, Why
from colltune.core.sample import DEFAULT, Choice, Environment, Scenario
from colltune.prove.proof import Judged
from colltune.session.site.state import PENDING
from colltune.session.tuning.options import Listener, TuneOptions, TuneResult
from colltune.session.tuning.site_memory import SiteMemory
from colltune.session.tuning.tune import tune
from colltune.site.entry import Identity
from colltune.site.index import Index, open_index
from colltune.site.knowledge import Knowledge
from colltune.site.store import INBOX, SiteStore
from colltune.store.tuning import Tuning, load_tuning
from colltune_study.simulated.drawn import Noise

NOISY = Noise(spread=0.05, tail_share=0.02, drift=0.02, unevenness=0.01, own_mode=1.02, own_share=0.5)


def small(kind: type[MemoryBench], launch_s: float = 0.5, nodes: int = 2, **changes: object) -> MemoryBench:
    """A bench of ``nodes`` x 2 on which a tuning takes a second. ``changes``: of its environment."""
    environment = replace(ENVIRONMENT, nodes=nodes, ppn=2, **changes)  # type: ignore[arg-type]
    return kind(truth, NOISY, launch_s=launch_s, nodes=nodes, ppn=2, environment=environment)


def job(
    bench: MemoryBench, store: SiteStore, out: Path, said: list[str] | None = None, budget_s: float = 300.0
) -> TuneResult:
    seed = len(list((store.directory / INBOX).iterdir()))
    options = TuneOptions(["bcast"], 1 << 12, 1 << 20, budget_s, seed=seed, store=store.directory)
    return tune(bench, options, out, Listener(note=[].append if said is None else said.append))


class _Slower(MemoryBench):
    """Its first launch is quick, so that the plan has time for fewer than it thinks."""

    def now_s(self) -> float:
        return super().now_s() + sum(launch.launches for launch in self.launches[1:])


def index_of(store: SiteStore, bench: MemoryBench) -> Index:
    return open_index(store, Identity.of(bench.environment).key)


def kept(result: TuneResult) -> set[tuple[Scenario, Choice]]:
    return {(one.scenario, one.choice) for one in result.decisions if one.verdict is Verdict.KEPT}


@pytest.mark.parametrize("kind", [MemoryBench, MemoryLibrary])
def test_the_next_job_hands_over_the_same_without_measuring_it_again(
    kind: type[MemoryBench], store: SiteStore, tmp_path: Path
) -> None:
    first, second = small(kind), small(kind)
    before = job(first, store, tmp_path / "one")
    said: list[str] = []
    after = job(second, store, tmp_path / "two", said)
    assert kept(after) >= kept(before) != set()
    assert second.now_s() < 0.2 * first.now_s()
    assert load_tuning(tmp_path / "two").files == load_tuning(tmp_path / "one").files
    entries = index_of(store, second).entries
    assert any(one.confirms for one in entries)
    assert sum(bool(one.tuned) for one in entries) == 1
    if kind is MemoryLibrary:
        assert any("an earlier job of this shape compared and checked" in text for text in said)
    progress = r"job 2 of this shape: \d+% of the gain that was found is proven, \d+ calls? open"
    assert any(re.match(progress, text) for text in said)


def test_a_smaller_job_begins_with_what_a_larger_one_measured_of_its_shape(store: SiteStore, tmp_path: Path) -> None:
    large, tested, alone = small(MemoryBench, nodes=3), small(MemoryBench), small(MemoryBench)
    job(large, store, tmp_path / "large")
    tuned = job(tested, store, tmp_path / "small")
    job(alone, SiteStore.made(tmp_path / "other"), tmp_path / "alone")
    assert {(one.scenario.nodes, one.scenario.ppn) for one in tuned.outcome.samples} == {(1, 2), (2, 1), (2, 2)}
    assert tested.now_s() < 0.7 * alone.now_s()
    own = [one for one in index_of(store, tested).entries if (one.nodes, one.ppn) == (2, 2)]
    assert 0 < sum(one.samples for one in own) <= 12  # sentinels, and nothing else


def test_evidence_adds_up_where_no_job_could_prove_anything_by_itself(store: SiteStore, tmp_path: Path) -> None:
    """Budgets in which two launches fit: no job has the three that a proof takes at least."""
    proven = []
    for number in range(8):
        result = job(small(_Slower, launch_s=0.0), store, tmp_path / f"job{number}", budget_s=1.0)
        proven.append(len(kept(result)))
    assert proven[0] == 0
    assert max(proven) > 5
    times = [(truth(s, DEFAULT), truth(s, c)) for s, c in kept(result)]
    assert all(ours_s < default_s for default_s, ours_s in times)


def test_what_a_cut_of_a_region_left_over_is_not_settled() -> None:
    """Else the part that some comparisons chose would be the region of the next claim, and they its evidence."""
    at = [Scenario("bcast", 2, 2, 1 << size) for size in range(4)]
    verdicts = [(Verdict.KEPT, Why.MEASURED), (Verdict.REFUSED, Why.MEASURED), (Verdict.REFUSED, Why.CUT_APART)]
    decisions = [Decision(one, RING, said, (), "", why=why) for one, (said, why) in zip(at, verdicts, strict=False)]
    open_part = Decision(at[3], RING, Verdict.NOT_TRIED, (), "the budget ended after 2 launches")
    environment = Environment("mpich", "5.0.2", "0" * 64, "in memory", 2, 2, "single")
    tuning = Tuning(environment, {}, {}, {}, Summary(decisions=(*decisions, open_part)))
    assert set(Knowledge(tuning=tuning).settled) == set(at[:2])


def test_a_machine_that_changed_is_measured_anew(store: SiteStore, tmp_path: Path) -> None:
    job(small(MemoryBench), store, tmp_path / "before")

    def changed(scenario: Scenario, choice: Choice) -> float:
        return 3.0 * truth(scenario, choice) if choice == RING else truth(scenario, choice)

    said: list[str] = []
    result = job(replace(small(MemoryBench), truth=changed), store, tmp_path / "after", said)
    at = [(one, RING) for one in small(MemoryBench).space("bcast", 1 << 12, 1 << 20).scenarios]
    assert {one.launch.split("/")[0] for one in index_of(store, small(MemoryBench)).compared(at)} <= {
        one.name for one in index_of(store, small(MemoryBench)).entries[:2]
    }
    assert any("are not used" in text for text in said)
    assert not [choice for _, choice in kept(result) if choice == RING]
    bench = replace(small(MemoryBench), truth=changed)
    again = job(bench, store, tmp_path / "again")  # and what is newer is what the next one begins with
    assert not [choice for _, choice in kept(again) if choice == RING]


def test_a_job_without_the_gate_takes_no_proven_rules_over_and_confirms_none(store: SiteStore, tmp_path: Path) -> None:
    job(small(MemoryBench), store, tmp_path / "one")
    bench = small(MemoryBench)
    options = TuneOptions(["bcast"], 1 << 12, 1 << 20, 300.0, gate=False, store=store.directory)
    result = tune(bench, options, tmp_path / "two", Listener())
    assert not result.tuning.summary.decisions
    assert not any(one.confirms for one in index_of(store, bench).entries)


def test_a_job_of_fewer_collectives_leaves_the_last_tuning_what_it_is(store: SiteStore, tmp_path: Path) -> None:
    bench = small(MemoryBench)
    tuned = job(bench, store, tmp_path / "one")
    wider = {**tuned.tuning.rule_sets, "reduce": replace(tuned.tuning.rule_sets["bcast"], collective="reduce")}
    memory = SiteMemory.of(store.directory, bench, {"reduce": bench.space("bcast", 1, 4)}, tmp_path, lambda _text: None)
    memory.add_proven(Judged((), 0.0), replace(tuned.tuning, rule_sets=wider))
    assert sum(bool(one.tuned or one.confirms) for one in index_of(store, bench).entries) == 1


def test_other_builds_levels_and_fabrics_are_other_machines(store: SiteStore, tmp_path: Path) -> None:
    job(small(MemoryBench), store, tmp_path / "first")
    for name, value in (("mpi_build", "1" * 64), ("thread_level", "multiple"), ("facts", {"fabric": "x"})):
        said: list[str] = []
        job(small(MemoryBench, **{name: value}), store, tmp_path / name, said)
        assert "the store is new here" in said


def test_a_full_store_costs_no_tuning_and_is_added_to_later(
    store: SiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object, **_named: object) -> None:
        raise OSError(28, os.strerror(28))

    said: list[str] = []
    with monkeypatch.context() as context:
        context.setattr("colltune.site.store.files.write_atomically", full)
        result = job(small(MemoryBench), store, tmp_path / "out", said)
    assert kept(result)
    assert len([text for text in said if "no space is left in the store" in text and "site add" in text]) == 2
    assert not list((store.directory / INBOX).iterdir())
    assert len(list((tmp_path / "out" / PENDING).iterdir())) == 2
    again = small(MemoryBench)
    job(again, store, tmp_path / "out")
    assert not list((tmp_path / "out" / PENDING).iterdir())
    assert len(index_of(store, again).entries) >= 3


def test_what_was_measured_is_in_the_store_before_the_proof_begins(
    store: SiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_arguments: object) -> Sequence[object]:
        raise KeyboardInterrupt

    bench = small(MemoryBench)
    with monkeypatch.context() as context:
        context.setattr("colltune.session.tuning.tune._judged", killed)
        with pytest.raises(KeyboardInterrupt):
            job(bench, store, tmp_path / "out")
    (entry,) = index_of(store, bench).entries
    assert entry.samples > 50
    assert entry.tuned == ()


def test_a_job_whose_site_knows_much_leaves_what_gains_little(store: SiteStore, tmp_path: Path) -> None:
    """Five jobs of one shape: each has the time of the first, and something that is open."""

    def little(scenario: Scenario, choice: Choice) -> float:
        time_s = truth(scenario, choice)
        return time_s if scenario.size_bytes >= 1 << 16 or choice != RING else 0.95 * truth(scenario, DEFAULT)

    benches = [replace(small(MemoryBench, launch_s=2.0), truth=little) for _ in range(5)]
    results = [job(bench, store, tmp_path / f"job{number}", budget_s=14.0) for number, bench in enumerate(benches)]
    left = [one for one in results[-1].decisions if one.verdict is Verdict.NOT_TRIED]
    assert left
    assert {one.why for one in left} == {Why.NOT_WORTH}
    assert kept(results[-1]) >= kept(results[0]) != set()
    assert benches[-1].now_s() < 0.4 * benches[0].now_s()
