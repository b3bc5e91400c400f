"""What the next run of a program does, by what earlier runs measured."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import InputError
from colltune.core.interval import Interval
from colltune.core.rules import RuleSet
from colltune.core.sample import Environment
from colltune.core.scenario import Scenario, SizeBasis
from colltune.core.steps import Span
from colltune.core.summary import Summary
from colltune.core.switchback import Standing
from colltune.deploy.explored import CallKind, Candidates, default_at, load_candidates, save_candidates, tables
from colltune.mpi.application import Application, application_of
from colltune.prove.in_run.next_run import next_run
from colltune.session.application.auto_run import FirstRun, ready_auto
from colltune.session.application.run_application import RunOptions, unheard
from colltune.store.tuning import Tuning, save_tuning

RING, TREE, CHAIN = Choice("ring"), Choice("tree"), Choice("chain")
KIND = CallKind("bcast", SizeBasis.MESSAGE, 4, 2, Span(64, 127), 0.3, (RING, TREE, CHAIN))


def said(choice: Choice, estimate: float, low: float, high: float, runs: int = 3, off: int = 0) -> Standing:
    faster = Interval(estimate, low, high)
    launches = tuple((f"2026-11-0{number + 1}", math.log(estimate)) for number in range(runs))
    return Standing("bcast", choice, 4, 2, 64, 100, SizeBasis.MESSAGE, 9000, 30, off, faster, faster, launches, "")


def plan(*standings: Standing, proven: Choice = DEFAULT) -> tuple[Choice | None, Choice | None]:
    """What is in force, and what is tried."""
    found = next_run([KIND], lambda _kind: proven, standings)
    return found.in_force.get(KIND), found.tried.get(KIND)


def test_choices_are_tried_in_their_order_until_one_is_surely_faster() -> None:
    assert plan() == (None, RING)
    assert plan(said(RING, 0.9, 0.7, 1.02)) == (None, TREE)  # at most 2% faster
    assert plan(said(RING, 1.2, 0.9, 1.5)) == (None, RING)  # looks faster: until that is sure
    assert plan(said(RING, 1.01, 0.9, 1.5)) == (None, TREE)  # may be faster: after those that nobody looked at
    assert plan(said(RING, 1.2, 0.9, 1.5, runs=4)) == (None, TREE)  # not for ever
    assert plan(said(RING, 1.2, 1.1, 1.3)) == (RING, None)
    every = [said(choice, 0.8, 0.7, 0.9) for choice in KIND.choices]
    assert plan(*every) == (None, None)


def test_the_fastest_of_those_that_are_surely_faster_is_in_force() -> None:
    assert plan(said(RING, 1.2, 1.1, 1.3), said(TREE, 1.4, 1.2, 1.6)) == (TREE, None)


def test_one_run_says_nothing_surely_whatever_its_pairs_say() -> None:
    assert plan(said(RING, 1.2, 1.1, 1.3, runs=1)) == (None, RING)


def test_what_a_run_switched_off_leaves_and_does_not_come_back() -> None:
    assert plan(said(RING, 1.2, 1.1, 1.3, off=1)) == (None, TREE)
    assert plan(proven=RING) == (RING, None)
    assert plan(said(RING, 1.2, 1.1, 1.3, off=1), proven=RING) == (DEFAULT, TREE)


def test_what_whole_blocks_say_is_slower_is_not_used_though_its_calls_are_faster() -> None:
    moved = replace(said(RING, 1.2, 1.1, 1.3), faster=Interval(0.8, 0.7, 0.9))
    assert plan(moved) == (None, TREE)


def test_calls_of_another_size_or_shape_say_nothing() -> None:
    faster = said(RING, 1.2, 1.1, 1.3)
    assert plan(replace(faster, size_most=128)) == (None, RING)
    assert plan(replace(faster, nodes=2)) == (None, RING)


def test_rules_reach_the_calls_of_a_kind_and_no_others() -> None:
    base = {"bcast": RuleSet.always("bcast", SizeBasis.MESSAGE, TREE)}
    rules = tables(base, {KIND: RING})["bcast"]
    for nodes, ppn, size, choice in [
        (4, 2, 64, RING), (4, 2, 127, RING), (4, 2, 63, TREE), (4, 2, 128, TREE), (2, 2, 64, TREE), (8, 1, 64, TREE)
    ]:  # fmt: skip
        assert rules.evaluate(Scenario("bcast", nodes, ppn, size)) == choice
    assert default_at({"bcast": rules}, KIND) == RING
    assert tables(base, {KIND: DEFAULT})["bcast"].evaluate(Scenario("bcast", 4, 2, 100)) == DEFAULT
    assert tables({}, {KIND: RING})["bcast"].departs


TEXT = """colltune-rules 2
choice 0 - X=1 # bcast ring
choice 1 - X=2 # bcast tree
choice 2 - X=3 # bcast chain
"""


def test_candidates_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert load_candidates(tmp_path) is None
    found = Candidates(Application(("mpiexec", "./app"), "app", "1234"), "build", (KIND,), TEXT)
    save_candidates(tmp_path, found)
    assert load_candidates(tmp_path) == found


@pytest.mark.parametrize(
    ("old", "new"),
    [('"schema":2', '"schema":9'), ('"ring"', '"other"'), ('"nodes":4', '"nodes":0'), ("[64,127]", "[128,127]")],
)
def test_damaged_candidates_are_one_line_with_what_to_do(tmp_path: Path, old: str, new: str) -> None:
    save_candidates(tmp_path, Candidates(Application(("./app",)), "build", (KIND,), TEXT))
    record = tmp_path / "candidates" / "candidates.json"
    assert old in record.read_text()
    record.write_text(record.read_text().replace(old, new))
    with pytest.raises(InputError, match="cannot be read") as caught:
        load_candidates(tmp_path)
    assert "the next run makes it anew" in caught.value.next_step


def test_what_gave_right_results_in_another_build_of_the_mpi_is_recorded_anew(tmp_path: Path) -> None:
    environment = Environment("mpich", "5.0.2", "new", "a machine", 4, 2, "single")
    save_tuning(tmp_path, Tuning(environment, {}, {}, {}, Summary(seed=1)))
    command, options = ["/bin/true"], RunOptions(auto=True)
    save_candidates(tmp_path, Candidates(application_of(command, {}), "old", (KIND,), TEXT))
    assert isinstance(ready_auto(tmp_path, command, options, {}, unheard), FirstRun)
    save_candidates(tmp_path, Candidates(application_of(command, {}), "new", (KIND,), TEXT))
    with pytest.raises(InputError, match="no rules for the live selector"):  # it would be used, if there were any
        ready_auto(tmp_path, command, options, {}, unheard)
