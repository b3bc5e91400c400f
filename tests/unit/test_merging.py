"""What a directory holds stays beside a new campaign, and another environment's directory is refused."""

from collections.abc import Mapping
from dataclasses import astuple, replace
from pathlib import Path

import pytest

from colltune.core.errors import InputError
from colltune.core.proven import Decision, Summary, Verdict
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, SizeBasis, Status
from colltune.core.space import Space
from colltune.distill.overlay import Layers
from colltune.search.reuse import begin_journal
from colltune.session.tuning.merging import Held, hold, keep_apart
from colltune.store.earlier import measurements, tuned_sizes
from colltune.store.journal import Journal, read_journal
from colltune.store.tuning import CONFIRMATION, JOURNAL, Provisional, Tuning, load_tuning, save_tuning

HERE = Environment("mpich", "5.0.2", "a" * 64, "a machine", 1, 2, "single")
RING, TREE = Choice("ring"), Choice("binomial")
SUMMARY = Summary(seed=1, reasons={"bcast": "measured"})


def silent(_text: str) -> None:
    """Nobody listens."""


def decision(name: str, size: int, verdict: Verdict, choice: Choice = RING) -> Decision:
    return Decision(Scenario(name, 1, 2, size), choice, verdict, (2.0,) * 8, verdict.value)


def tuning_of(**more: object) -> Tuning:
    rules = {"bcast": RuleSet.always("bcast", SizeBasis.MESSAGE, RING)}
    files = {"mpich/general.json": b"{}", "mpich/shm.json": b"{}"}
    return replace(Tuning(HERE, rules, files, {}, SUMMARY), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"mpi": "openmpi", "mpi_version": "5.0.11"}, "MPI version 5.0.2 there, 5.0.11 here"),
        ({"mpi_build": "b" * 64}, "build aaaaaaaaaaaa there, bbbbbbbbbbbb here"),
        ({"thread_level": "multiple"}, "thread level single there, multiple here"),
        ({"machine": "another"}, "machine a machine there, another here"),
    ],
)
@pytest.mark.parametrize("there", ["tuning", "journal"])
def test_a_directory_of_another_environment_is_refused(
    tmp_path: Path, changed: Mapping[str, str], words: str, there: str
) -> None:
    if there == "tuning":
        save_tuning(tmp_path, tuning_of())
    else:
        Journal.create(tmp_path / JOURNAL, HERE).close()
    with pytest.raises(InputError, match=words) as found:
        hold(tmp_path, replace(HERE, **changed), silent, gated=True)
    assert "--out" in str(found.value)


def test_another_shape_and_an_older_file_are_held(tmp_path: Path) -> None:
    assert hold(tmp_path, HERE, silent, gated=True).layers == Layers()
    save_tuning(tmp_path, tuning_of())
    held = hold(tmp_path, replace(HERE, nodes=4, ppn=8), silent, gated=True)
    assert held.layers.proven.file == tuning_of().rule_sets
    assert held.jobs == ((1, 2),)


def test_the_live_rules_of_before_are_held_as_rules(tmp_path: Path) -> None:
    live = {"bcast": RuleSet.always("bcast", SizeBasis.MESSAGE, TREE)}
    later = {"bcast": RuleSet.always("bcast", SizeBasis.TOTAL, RING)}
    waiting = replace(Provisional.of(tuning_of()), live=later)
    save_tuning(tmp_path, tuning_of(live=live, provisional=waiting))
    held = hold(tmp_path, HERE, silent, gated=True)
    assert held.layers.proven.live == live
    assert held.layers.provisional.live == later
    # A release that did not keep them: what the file says was proven as well.
    save_tuning(tmp_path, tuning_of())
    assert hold(tmp_path, HERE, silent, gated=True).layers.proven.live == tuning_of().rule_sets


def test_unproven_rules_do_not_mix_with_proven_ones(tmp_path: Path) -> None:
    save_tuning(tmp_path, tuning_of())
    with pytest.raises(InputError, match="--gate off proves none"):
        hold(tmp_path, HERE, silent, gated=False)
    save_tuning(tmp_path, tuning_of(summary=replace(SUMMARY, gated=False)))
    assert hold(tmp_path, HERE, silent, gated=True).tuning is None


def verdicts(older: Decision, *newer: Decision, stays: bool = True, unsafe: str = "") -> list[tuple[Choice, Verdict]]:
    held = Held(tuning_of(summary=replace(SUMMARY, decisions=(older,))))
    found = held.decisions(newer, lambda _held: stays, {unsafe: "wrong"} if unsafe else {})
    assert {one.scenario for one in found} == {older.scenario}
    return [(one.choice, one.verdict) for one in found]


def test_verdicts_go_with_their_rules() -> None:
    kept, new = decision("bcast", 64, Verdict.KEPT), decision("bcast", 64, Verdict.KEPT, TREE)
    assert verdicts(kept, new, stays=False) == [(TREE, Verdict.KEPT)]
    # Where the rule of before stays, its verdict does.
    for verdict in (Verdict.NOT_TRIED, Verdict.REFUSED, Verdict.PROVISIONAL):
        assert verdicts(kept, decision("bcast", 64, verdict)) == [(RING, Verdict.KEPT)]
    both = verdicts(kept, decision("bcast", 64, Verdict.PROVISIONAL, TREE))
    assert both == [(RING, Verdict.KEPT), (TREE, Verdict.PROVISIONAL)]
    waiting = decision("bcast", 64, Verdict.PROVISIONAL)
    assert verdicts(waiting, decision("bcast", 64, Verdict.NOT_TRIED)) == [(RING, Verdict.PROVISIONAL)]
    assert verdicts(decision("bcast", 64, Verdict.REFUSED), new) == [(TREE, Verdict.KEPT)]
    assert verdicts(kept, unsafe="bcast") == [(RING, Verdict.REFUSED)]


def test_the_figures_are_of_all_that_is_kept() -> None:
    kept = decision("bcast", 64, Verdict.KEPT)
    held = Held(tuning_of(summary=replace(SUMMARY, reproducible=("reduce",), decisions=(kept,))))
    newer = Summary(reasons={"allreduce": "budget"}, decisions=(kept,), samples=9)
    summary = held.summary(newer, ["allreduce"])
    assert summary.speedup is not None
    assert astuple(summary.speedup) == pytest.approx((2.0, 2.0, 2.0))
    assert summary.reasons == {"bcast": "measured", "allreduce": "budget"}
    assert (summary.reproducible, summary.added_to, summary.samples) == (("reduce",), True, 9)
    assert Held(None).summary(newer, ["allreduce"]) == newer


def test_what_was_made_of_other_rules_is_removed(tmp_path: Path) -> None:
    held = tuning_of()
    save_tuning(tmp_path, replace(held, provisional=Provisional.of(held)))
    (tmp_path / "report.html").write_text("old")
    (tmp_path / "export" / "cvars").mkdir(parents=True)
    (tmp_path / "mine.txt").write_text("mine")
    other = {"bcast": RuleSet.always("bcast", SizeBasis.MESSAGE, TREE)}
    files = {"mpich/general.json": b"[]"}
    now = tuning_of(rule_sets=other, files=files, by_shape=other, live={}, jobs=((1, 2), (2, 2)))
    save_tuning(tmp_path, now)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"tuning.json", "mpich/general.json", "mine.txt"}
    assert not (tmp_path / "export").exists()
    assert not (tmp_path / "provisional").exists()
    assert load_tuning(tmp_path) == now
    save_tuning(tmp_path, now)
    assert load_tuning(tmp_path) == now


def campaign(directory: Path, ppn: int, size: int, resume: bool = False) -> None:
    with begin_journal(directory / JOURNAL, replace(HERE, ppn=ppn), resume, silent) as journal:
        journal.append([Sample(Scenario("bcast", 1, ppn, size), DEFAULT, Status.OK, (1e-6,))])


def test_resuming_goes_on_with_the_last_campaign_of_the_same_shape(tmp_path: Path) -> None:
    campaign(tmp_path, 2, 8)
    campaign(tmp_path, 2, 16)
    Journal.create(tmp_path / CONFIRMATION, HERE).close()
    campaign(tmp_path, 3, 8)
    campaign(tmp_path, 2, 32, resume=True)
    found = read_journal(tmp_path / JOURNAL)
    assert (found.environment.ppn, [s.scenario.size_bytes for s in found.samples]) == (2, [16, 32])
    assert (tmp_path / CONFIRMATION).exists()
    campaign(tmp_path, 4, 8, resume=True)  # none of this shape: a new one
    assert len(read_journal(tmp_path / JOURNAL).samples) == 1
    kept = {(s.scenario.ppn, s.scenario.size_bytes) for s in measurements(tmp_path)}
    assert kept == {(2, 8), (2, 16), (2, 32), (3, 8), (4, 8)}
    assert tuned_sizes(tmp_path) == {"bcast": [8, 16, 32]}


def test_what_a_blocking_rule_hands_to_the_nonblocking_call_is_not_tuned_behind_it() -> None:
    """MPICH's ``nb`` of allgather is MPI_Iallgather, whose rules would change what was measured as ``nb``."""
    nb = Choice("nb")
    spaces = {name: Space(name, (), lambda _scenario: (DEFAULT, RING, nb)) for name in ("allgather", "iallgather")}
    there = {"allgather": RuleSet.always("allgather", SizeBasis.TOTAL, nb)}
    alone = keep_apart({"allgather": spaces["allgather"]}, Held(None))
    assert nb in alone["allgather"].legal(Scenario("allgather", 1, 2, 8))
    both = keep_apart(spaces, Held(None))
    assert both["allgather"].legal(Scenario("allgather", 1, 2, 8)) == (DEFAULT, RING)
    assert nb in both["iallgather"].legal(Scenario("iallgather", 1, 2, 8))
    with pytest.raises(InputError, match="makes the non-blocking call, which rules of iallgather would change"):
        keep_apart({"iallgather": spaces["iallgather"]}, Held(tuning_of(rule_sets=there)))
    ruled = {"iallgather": RuleSet.always("iallgather", SizeBasis.TOTAL, RING)}
    later = keep_apart({"allgather": spaces["allgather"]}, Held(tuning_of(rule_sets=ruled)))
    assert nb not in later["allgather"].legal(Scenario("allgather", 1, 2, 8))
