"""What runs of the application say, and who reads it: tune, the audit, report, explain, drift, watch.

Which rules an application is better without.
"""

import json
import math
import os
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from application_history import leave_run
from memory_bench import ENVIRONMENT, MemoryBench, MemoryLibrary
from test_tune_in_memory import RING, options, truth
from typer.testing import CliRunner

from colltune.cli.app import app
from colltune.core.errors import LaunchError
from colltune.core.interval import SpeedVerdict
from colltune.core.proven import Verdict
from colltune.core.sample import OtherViews, Scenario
from colltune.judge.evidence import Reference
from colltune.prove.audit.case import Case
from colltune.prove.audit.claims import Claim
from colltune.prove.in_run.application_trial import (
    DEFAULT_SIDE,
    Checked,
    Side,
    check_application,
    finding_of,
    runs_text,
)
from colltune.prove.in_run.in_application import said_of, standings
from colltune.session.application_gain import gain_of
from colltune.session.drift import answer_of, runs_since
from colltune.session.explain import explain_call, load_findings
from colltune.session.gain_text import gain_line
from colltune.session.tuning.options import Listener
from colltune.session.tuning.tune import tune
from colltune.store.applications import RUN, application_runs
from colltune.store.tuning import MANIFEST

LARGE = 1 << 18  # the largest size that is tuned


@pytest.mark.parametrize(
    ("ratio", "off", "finding"),
    [
        (1.3, 0, SpeedVerdict.FASTER),
        (0.8, 0, SpeedVerdict.SLOWER),
        (1.0, 0, SpeedVerdict.OPEN),
        # What one communicator switched off is not slower where all pairs say faster.
        (1.3, 1, SpeedVerdict.OPEN),
        (1.0, 1, SpeedVerdict.SLOWER),
    ],
)
def test_a_standing_says_what_the_pairs_say(tmp_path: Path, ratio: float, off: int, finding: SpeedVerdict) -> None:
    for when_s in (1e9, 1e9 + 100):
        leave_run(tmp_path, ENVIRONMENT, RING, ratio, size=4096, when_s=when_s, off=off)
    (one,) = standings(application_runs(tmp_path))
    assert one.verdict is finding
    assert (one.pairs, len(one.launches)) == (80, 2)
    assert one.faster_in_calls.estimate == pytest.approx(ratio, rel=0.03)
    assert one.launches[0][1] == pytest.approx(math.log(ratio), abs=0.03)
    assert one.covers(Scenario("bcast", 2, 4, 5000))
    assert not one.covers(Scenario("bcast", 2, 4, 8192))
    assert not one.covers(Scenario("bcast", 1, 4, 4096))


def test_what_differs_between_runs_is_in_the_intervals(tmp_path: Path) -> None:
    """Each run has a ratio of its own about 1.2, so that the interval of one run alone seldom holds 1.2."""
    random, cases = np.random.default_rng(4), 30
    held = {"over 4 runs": 0, "of this run alone": 0, "standing": 0}
    for case in range(cases):
        place = tmp_path / str(case)
        for number in range(4):
            ratio = 1.2 * math.exp(random.normal(0.0, 0.1))
            leave_run(place, ENVIRONMENT, RING, ratio, when_s=1e9 + 100 * case + number)
        runs = application_runs(place)
        (gain, alone) = (gain_of(runs[0].jobs[0], runs[0].record.choices, runs=some) for some in (runs, ()))
        (standing,) = standings(runs)
        held["standing"] += standing.faster.low < 1.2 < standing.faster.high
        for text, one in (("over 4 runs", gain), ("of this run alone", alone)):
            assert text in gain_line(one)
            held[text] += one.cells[0].faster.low < 1.2 < one.cells[0].faster.high
    assert held["of this run alone"] < 0.6 * cases
    assert min(held["over 4 runs"], held["standing"]) >= 0.9 * cases


def test_runs_of_another_mpi_say_nothing_here_and_damage_is_told(tmp_path: Path) -> None:
    leave_run(tmp_path, replace(ENVIRONMENT, mpi_build="1" * 64), RING, 1.3)
    notes: list[str] = []
    assert said_of(tmp_path, ENVIRONMENT, notes.append) == []
    place = leave_run(tmp_path, replace(ENVIRONMENT, nodes=1), RING, 1.3, when_s=1e9 + 5)
    assert len(said_of(tmp_path, ENVIRONMENT, notes.append)) == 1
    assert notes == []
    (place / RUN).write_text(json.dumps({"schema": 1, "share": "much"}))
    assert said_of(tmp_path, ENVIRONMENT, notes.append) == []
    assert len(notes) == 1


def test_tune_does_not_propose_again_what_was_slower_in_the_application(tmp_path: Path) -> None:
    """The ring is faster in the benchmark from 128 KiB on, and slower in the application at 256 KiB."""
    before = tune(MemoryLibrary(truth), options(), tmp_path / "plain").tuning
    there, elsewhere = Scenario("bcast", 2, 4, LARGE), Scenario("bcast", 2, 4, LARGE // 2)
    assert [before.rule_sets["bcast"].evaluate(one) for one in (there, elsewhere)] == [RING, RING]
    leave_run(tmp_path, ENVIRONMENT, RING, 0.8, size=LARGE)
    notes: list[str] = []
    after = tune(MemoryLibrary(truth), options(), tmp_path, Listener(note=notes.append)).tuning
    assert [after.rule_sets["bcast"].evaluate(one) == RING for one in (there, elsewhere)] == [False, True]
    assert any("is not proposed again, for it was slower in the application" in text for text in notes)


def test_the_application_is_evidence_in_the_audit(tmp_path: Path) -> None:
    for number in range(3):
        leave_run(tmp_path, ENVIRONMENT, RING, 1.6, size=LARGE, when_s=1e9 + number)
    result = tune(MemoryBench(truth), options(), tmp_path)
    reasons = {d.explanation for d in result.decisions if d.verdict is Verdict.KEPT and d.choice == RING}
    assert any("and 3 runs of the application" in reason for reason in reasons), reasons


def test_report_and_explain_read_it(tmp_path: Path) -> None:
    tune(MemoryLibrary(truth), options(), tmp_path)
    leave_run(tmp_path, ENVIRONMENT, RING, 1.4, size=LARGE, end=False)
    text = explain_call(tmp_path, "bcast", LARGE)
    assert "in the application: speed-up of the calls 1." in " ".join(text.split())
    assert "in the application" not in explain_call(tmp_path, "bcast", 64)
    (said,) = load_findings(tmp_path).applications
    assert said.verdict is SpeedVerdict.FASTER
    done = CliRunner().invoke(app, ["report", str(tmp_path), "--text", "--all"])
    assert done.exit_code == 0, done.output
    assert "scatter_ring_allgather" in done.output
    (run,) = application_runs(tmp_path)
    (gain,) = (gain_of(job, run.record.choices) for job in run.jobs)
    assert "not ended by MPI_Finalize: by 40 pairs of blocks the tuning saved" in gain_line(gain)


def test_the_application_alone_decides_no_claim() -> None:
    """Three runs say enough; the claim waits for a fresh launch, which compares it back to back too."""
    there = Scenario("bcast", 2, 4, LARGE)
    case = Case(Claim(RING, (there,), (0.4,), (1.0,)), math.log(1.03), 1, [1e-3])
    for number in (-1, -2, -3, -4):
        case.applications.add(number)
        case.take(there, number, 0.4, OtherViews())
    assert case.judge(Reference()) is Verdict.OPEN
    case.take(there, 1, 0.4, OtherViews(0.3))
    assert case.judge(Reference()) is Verdict.KEPT


def test_drift_asks_runs_since_the_tuning_and_the_start_of_the_node(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text("{}")
    os.utime(tmp_path / MANIFEST, (1e9, 1e9))
    for when_s in (1e9 - 100, 1e9 + 100, 1e9 + 200):
        leave_run(tmp_path, ENVIRONMENT, RING, 1.3, when_s=when_s)
    assert [len(runs_since(tmp_path, booted_s)) for booted_s in (0.0, 1e9 + 150, 1e9 + 300)] == [2, 1, 0]


def test_calls_that_were_not_compared_leave_drift_without_an_answer(tmp_path: Path) -> None:
    leave_run(tmp_path, ENVIRONMENT, RING, 1.3)
    runs = application_runs(tmp_path)
    answer = answer_of(runs, ["bcast"])
    assert not [standing for standing in answer if standing.verdict is SpeedVerdict.SLOWER]
    assert answer_of(runs, ["bcast", "allreduce"]) is None
    (job,) = runs[0].jobs
    other = replace(job.cells[0], size_least=LARGE, size_most=LARGE, pairs=job.cells[0].pairs[:2])
    some = replace(runs[0], jobs=(replace(job, cells=(*job.cells, other)),))
    assert answer_of([some], ["bcast"]) is None


_RUNS = 7


def checked(*collectives: str, time_s: Callable[[Side], float], runs: int = _RUNS) -> Checked:
    """Times go up and down by 1%: less than any difference that a test is about."""
    noise = cycle((1.0, 1.01, 0.99))
    return check_application(collectives, lambda side: time_s(side) * next(noise), runs, 1, lambda _text: None)


def _product(**factors: float) -> Callable[[Side], float]:
    return lambda side: 2.0 * math.prod(factors[name] for name in side)


def test_rules_that_make_it_faster_stay() -> None:
    found = checked("alltoall", "bcast", time_s=_product(alltoall=0.8, bcast=1.0))
    assert not found.withdrawn
    assert found.text("app").startswith("with the rules app is faster: 1.25 times as fast (1.2")
    assert found.text("app").endswith("; withdrawn for it: nothing")
    (only,) = found.rounds
    assert only.rules == ("alltoall", "bcast")
    assert finding_of(only).speedup.low > 1.2


def test_only_what_slows_it_is_withdrawn() -> None:
    found = checked("alltoall", "bcast", "allreduce", time_s=_product(alltoall=1.5, bcast=0.9, allreduce=1.0))
    assert found.withdrawn.keys() == {"alltoall"}
    assert "0.67 times as fast" in runs_text(found.withdrawn["alltoall"])
    assert found.rounds[-1].rules == ("allreduce", "bcast")  # what is left was run together, too
    said = found.text("app")
    assert said.startswith("with the rules app is slower: 0.7")
    assert ", 99% interval of 7 runs each); withdrawn for it: the rules of alltoall; with the rules of" in said
    assert "of allreduce, bcast the application is faster: 1.1" in said


@pytest.mark.parametrize(
    ("names", "time_s", "runs", "withdrawn", "rounds"),
    [
        ("alltoall", _product(alltoall=1.2), _RUNS, "alltoall", 1),  # the only collective is not run twice
        ("alltoall bcast", lambda side: 1.3 if len(side) == 2 else 1.0, _RUNS, "alltoall bcast", 3),
        ("alltoall bcast reduce", lambda side: 1.5 if "bcast" in side else 1.2 if len(side) > 1 else 1.0, _RUNS,
         "alltoall bcast reduce", 5),
        ("alltoall", _product(alltoall=1.1), 3, "alltoall", 1),  # few runs that look slower are enough
        ("alltoall", _product(alltoall=1.5), 3, "alltoall", 1),
        ("alltoall", _product(alltoall=1.01), _RUNS, "", 1),  # a difference that nobody feels
    ],
)  # fmt: skip
def test_what_slows_it_alone_or_together_is_withdrawn(
    names: str, time_s: Callable[[Side], float], runs: int, withdrawn: str, rounds: int
) -> None:
    found = checked(*names.split(), time_s=time_s, runs=runs)
    assert found.withdrawn.keys() == {*withdrawn.split()}
    assert len(found.rounds) == rounds


def test_a_failure_under_the_rules_withdraws_them_and_one_without_rules_says_nothing_of_them() -> None:
    def failing(fails: Callable[[Side], bool]) -> Checked:
        def time_s(side: Side) -> float:
            if fails(side):
                raise LaunchError("ended with exit code 9")
            return 1.0

        return checked("alltoall", "bcast", time_s=time_s)

    found = failing(lambda side: "bcast" in side)
    assert found.withdrawn.keys() == {"bcast"}
    assert runs_text(found.withdrawn["bcast"]) == "the application ended with exit code 9"
    assert found.text("app").startswith("with the rules app ended with exit code 9; ")
    assert "withdrawn for it: the rules of bcast" in found.text("app")
    with pytest.raises(LaunchError):
        failing(lambda side: side == DEFAULT_SIDE)
