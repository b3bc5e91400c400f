"""`colltune run --explore`: an application tries what the proof left open, in few calls, and says what it saw."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from slow_default import colltune
from switchback_loop import BYTES, broadcasts, delay, loop_on
from test_switchback import Measured

from colltune.core.proven import Decision, Verdict
from colltune.core.rules import RuleSet
from colltune.core.scenario import Scenario
from colltune.core.summary import Summary
from colltune.core.switchback import Cell
from colltune.deploy.live_selector import with_live
from colltune.emit.live_rules import live_basis
from colltune.mpi.installation import Installation
from colltune.prove.in_run.in_application import said_of
from colltune.store.applications import application_runs
from colltune.store.earlier import GAIN_PAGE, HISTORY
from colltune.store.tuning import Tuning, load_tuning, save_tuning

pytestmark = pytest.mark.mpi


@pytest.fixture(params=["mpich", "openmpi"])
def loop(request: pytest.FixtureRequest, tmp_path: Path) -> Measured:
    return loop_in(request.getfixturevalue("mpi" if request.param == "mpich" else "openmpi"), tmp_path)


def loop_in(installation: Installation, tmp_path: Path) -> Measured:
    """A program of broadcasts, and a tuning that could not decide one choice for them."""
    made, choice = loop_on(installation, tmp_path)
    bench = made.mpi.bench
    default = RuleSet.always("bcast", live_basis(bench.catalogue, "bcast"))
    left_open = Decision(
        Scenario("bcast", 1, 2, BYTES), choice, Verdict.NOT_TRIED, (1.2, 0.9, 1.3), "the budget ended after 3 launches"
    )
    tuning = Tuning(bench.environment, {"bcast": default}, {}, {}, Summary(decisions=(left_open,)))
    save_tuning(tmp_path, with_live(bench, tuning, {}))
    return made


def check(made: Measured) -> str:
    mpiexec = str(made.mpi.bench.installation.mpiexec)
    return colltune(
        "verify", "--results", "--candidates", str(made.out.parent), "--ppn", "2", "--mpiexec", mpiexec
    ).stdout


def explore(
    made: Measured, monkeypatch: pytest.MonkeyPatch, calls: int, slow: str, slow_us: int, *flags: str
) -> tuple[str, Cell]:
    """Standard error of the command, and what it left of the broadcasts; ``slow`` calls take ``slow_us`` longer."""
    delay(made, monkeypatch, slow, slow_us)
    command = broadcasts(made, calls, code=7)
    done = colltune("run", "--explore", *flags, str(made.out.parent), "--", *command, code=7)
    assert done.stdout.splitlines()[0] == "done"
    (run,) = application_runs(made.out.parent)
    ((cell,),) = [job.cells for job in run.jobs]
    assert run.record.is_candidate(cell)
    return done.stderr, cell


def test_a_candidate_that_is_faster_is_found_and_counts_as_evidence(
    loop: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "right results: 1 choice of bcast" in check(loop)
    said, cell = explore(loop, monkeypatch, 3000, "default", 5000, "--risk", "10%")
    assert "times as fast as the default" in said
    assert "without the tuning it would have taken" not in said  # no proven choice was compared
    assert len(cell.pairs) >= 3
    # One block of twenty at most; the last round is not whole.
    assert 0 < cell.tuned_calls <= 0.1 * cell.default_calls
    page = (max((loop.out.parent / HISTORY).iterdir()) / GAIN_PAGE).read_text()
    assert "not proven: tried" in page
    tuning = load_tuning(loop.out.parent)
    (standing,) = said_of(loop.out.parent, tuning.environment, print)
    assert standing.faster.estimate > 1.0
    # What was tried is no rule: nothing is said of the tuning itself.
    (run,) = application_runs(loop.out.parent)
    assert [job.cells for job in run.proven_alone.jobs] == [()]


def test_a_candidate_that_is_much_slower_is_hardly_tried(
    mpi: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On MPICH, where tuned calls pass the spy as well."""
    loop = loop_in(mpi, tmp_path)
    check(loop)
    said, cell = explore(loop, monkeypatch, 8000, "tuned", 3000, "--risk", "10%")
    # A block of four calls costs more than thousands of calls by default take.
    assert cell.tuned_calls <= 40
    assert cell.tuned_calls + cell.default_calls == 8000
    assert "times as fast as the default" not in said


def test_nothing_is_tried_that_was_not_replayed_for_this_tuning(loop: Measured) -> None:
    directory = str(loop.out.parent)
    refused = colltune("run", "--explore", directory, "--", "true", code=2).stderr
    assert "colltune verify --results --candidates" in refused
    check(loop)
    tuning = load_tuning(loop.out.parent)
    save_tuning(loop.out.parent, replace(tuning, summary=replace(tuning.summary, total_s=tuning.summary.total_s + 1.0)))
    assert "for another tuning" in colltune("run", "--explore", directory, "--", "true", code=2).stderr
    save_tuning(loop.out.parent, replace(tuning, summary=replace(tuning.summary, decisions=())))
    assert (
        "left nothing open" in colltune("verify", "--results", "--candidates", directory, "--ppn", "2", code=2).stderr
    )
    assert "is no percentage" in colltune("run", "--explore", "--risk", "50%", directory, "--", "true", code=2).stderr


def test_a_plain_run_tries_nothing(loop: Measured, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even beside candidates that passed the replay."""
    check(loop)
    delay(loop, monkeypatch)
    colltune("run", "--via", "live", str(loop.out.parent), "--", *broadcasts(loop, 200))
    assert not (loop.out.parent / HISTORY).exists()
