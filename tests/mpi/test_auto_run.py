"""`colltune run --auto`: a program whose runs tune it, and undo it."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from slow_default import colltune
from switchback_loop import broadcasts, delay, loop_on
from test_switchback import Measured

from colltune.core.proven import PredictedSizes, Summary
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT
from colltune.deploy.explored import load_candidates, save_candidates
from colltune.emit.live_rules import live_basis, live_numbers
from colltune.mpi.installation import Installation
from colltune.store.applications import application_runs
from colltune.store.earlier import GAIN_PAGE, HISTORY
from colltune.store.tuning import load_tuning, save_tuning

# Calls as few as these are not tried, however much of the time they take.
FEW = r"nothing is tried: calls that can be tuned take [\d.]+% of its time, (most .* than 16 times|and no kind of call)"


@pytest.fixture
def loop(either: Installation, tmp_path: Path) -> Measured:
    return loop_on(either, tmp_path)[0]


def run(made: Measured, memory: Path, calls: int, code: int = 7, risk: str = "10%") -> str:
    """What the command says at its end; the program's own output and exit code stay."""
    done = colltune("run", "--auto", "--risk", risk, str(memory), "--", *broadcasts(made, calls, code), code=code)
    assert done.stdout.splitlines()[0] == "done"
    return done.stderr


def tried_in_last(memory: Path) -> int:
    """How many calls of the last run were made by a choice that is not in force."""
    latest = application_runs(memory)[0]
    cells = [cell for job in latest.jobs for cell in job.cells]
    return sum(cell.tuned_calls for cell in cells if latest.record.is_candidate(cell))


def keep_one_that_can_be_delayed(memory: Path) -> None:
    """The delay tells sides apart by one variable, which compositions do not set."""
    found = load_candidates(memory)
    assert found is not None
    (kind,) = found.kinds
    assert kind.collective == "bcast"
    assert DEFAULT not in kind.choices
    numbers = live_numbers(found.text)
    lines = [line for line in found.text.splitlines() if line.startswith("choice ")]
    flat = [one for one in kind.choices if "BCAST_INTRA_ALGORITHM=" in lines[numbers["bcast", one]]]
    save_candidates(memory, replace(found, kinds=(replace(kind, choices=tuple(flat[:1])),)))


def run_until_in_force(loop: Measured, memory: Path, calls: int, runs: int, each_says: str) -> None:
    """From the second run on, below number ``runs``, until the one that brings a choice into force."""
    for number in range(2, runs):
        said = run(loop, memory, calls, 0)
        assert f"run {number}: {each_says}" in said
        if "from the next run on: bcast" in said:
            return
    pytest.fail(f"no choice is faster than a default that takes 1 ms longer: {said}")


def test_runs_find_a_faster_choice_use_it_and_leave_it_where_it_turns_bad(
    mpi: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On MPICH, where the delay can be put before the calls of one side."""
    loop, memory = loop_on(mpi, tmp_path)[0], tmp_path / "memory"
    delay(loop, monkeypatch)
    assert "run 1: recorded what the program calls; 1 kind of its calls can be tuned" in run(loop, memory, 5000, 0)
    keep_one_that_can_be_delayed(memory)
    delay(loop, monkeypatch, "default", 1000)
    run_until_in_force(loop, memory, 2000, 6, "no rule in force yet; 1 choice tried")
    assert 0 < tried_in_last(memory) < 0.2 * 2000
    # The calls of both runs pay for comparing the rule with the default.
    assert "1 rule in force, not compared with the default in this run; nothing is left" in run(loop, memory, 6000, 0)
    said = run(loop, memory, 6000, 0)
    sure = r"saves \d+\.\d% of its time, surely \d+\.\d%"
    assert re.search(rf"({sure}|the rules in force do not surely save time yet); nothing is left to try", said), said
    assert (max((memory / HISTORY).iterdir()) / GAIN_PAGE).exists()
    # Now it is the other way round: what was faster is slower.
    delay(loop, monkeypatch, "tuned", 1000)
    assert "no longer used: bcast" in run(loop, memory, 6000, 0)
    assert "no choice that was tried is surely faster than the library's own" in run(loop, memory, 6000, 0)


def test_short_runs_find_what_none_of_them_could(
    mpi: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200 calls a run, of whose time a tenth may be lost: that is a pair of blocks in a run, or less."""
    loop, memory = loop_on(mpi, tmp_path)[0], tmp_path / "memory"
    delay(loop, monkeypatch)
    assert "1 kind of its calls can be tuned" in run(loop, memory, 200, 0)
    keep_one_that_can_be_delayed(memory)
    delay(loop, monkeypatch, "default", 1000)
    run_until_in_force(loop, memory, 200, 40, "no rule in force yet")
    pairs = [len(cell.pairs) for one in application_runs(memory) for job in one.jobs for cell in job.cells]
    assert len(pairs) >= 3
    assert max(pairs) <= 3
    assert "1 rule in force, not compared with the default in this run; nothing is left" in run(loop, memory, 200, 0)


def test_what_was_predicted_is_confirmed_where_it_is_fast_and_withdrawn_where_it_is_slow(
    mpi: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On MPICH, from a directory in which a prediction chose for all broadcasts, and no rule is in force at first."""
    (loop, choice), memory = loop_on(mpi, tmp_path), tmp_path / "memory"
    rules = {"bcast": RuleSet.always("bcast", live_basis(loop.mpi.bench.catalogue, "bcast"), choice)}
    summary = Summary(gated=False, prediction=PredictedSizes({"bcast": (64,)}, ()))
    save_tuning(memory, replace(loop.mpi.bench.tuning(rules), summary=summary))
    delay(loop, monkeypatch)
    assert f"what was predicted first (bcast 64 B to 127 B by {choice})" in run(loop, memory, 5000, 0)
    # What is slow is tried in so few calls that it takes many to tell that it is.
    for slow, calls, end in (("default", 2000, "predicted and confirmed"), ("tuned", 40000, "predicted and withdrawn")):
        own = tmp_path / slow
        shutil.copytree(memory, own)
        delay(loop, monkeypatch, slow, 1000)
        for number in range(2, 9):
            said = run(loop, own, calls, 0)
            assert number > 2 or "no rule in force yet" in said
            if end in said:
                break
        else:
            pytest.fail(f"not {end}: {said}")
        assert f"by {choice}" in said.partition(end)[2]
        # The file says what was predicted, whatever the runs of one program found.
        assert load_tuning(own).rule_sets == rules


def test_a_program_that_fails_is_recorded_anew(loop: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = tmp_path / "memory"
    delay(loop, monkeypatch)
    assert "nothing is tried yet, and the next run records its calls again: the program ended with exit code 7" in run(
        loop, memory, 15
    )
    assert load_candidates(memory) is None
    assert re.search(f"run 1: recorded what the program calls; {FEW}", run(loop, memory, 15, 0))


def test_a_program_that_is_another_one_is_recorded_anew(
    loop: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = tmp_path / "memory"
    delay(loop, monkeypatch)
    assert "recorded what the program calls" in run(loop, memory, 15, 0)
    # With other arguments it is the same program.
    said = run(loop, memory, 14, 0)
    assert re.search(f"colltune: {FEW}", said)
    assert "the proven rules" not in said
    assert "is damaged" not in run(loop, memory, 14, 0)
    record = memory / "candidates" / "candidates.json"
    record.write_text(record.read_text()[:-20])
    said = run(loop, memory, 15, 0)
    assert "cannot be read" in said
    assert "recorded what the program calls" in said
    with loop.program.open("ab") as binary:
        binary.write(b"\0")  # another version
    assert "recorded what the program calls" in run(loop, memory, 15, 0)


def test_bad_options_are_one_line(tmp_path: Path) -> None:
    refused = colltune("run", "--auto", "--risk", "50%", str(tmp_path / "memory"), "--", "true", code=2).stderr
    assert "is no percentage" in refused
    assert "there is no command to run" in colltune("run", "--auto", str(tmp_path / "memory"), code=2).stderr
    assert not (tmp_path / "memory").exists()
