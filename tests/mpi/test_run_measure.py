"""`colltune run --measure` on an MPI in which a known delay is put before default or tuned broadcasts."""

import contextlib
import json
import os
import re
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from slow_default import colltune, start
from switchback_loop import broadcasts, delay, fits, loop_on
from test_switchback import Measured

from colltune import run as run_program
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT
from colltune.deploy.live_selector import with_live
from colltune.emit.live_rules import live_basis
from colltune.mpi.application import application_of
from colltune.mpi.installation import Installation
from colltune.profile.profile_files import load_profile
from colltune.session.application_gain import gain_of
from colltune.session.gain_text import gain_line
from colltune.store.applications import RunRecord, application_runs, begin_run, read_experiments
from colltune.store.earlier import GAIN, GAIN_PAGE, HISTORY
from colltune.store.tuning import Tuning, load_tuning, save_tuning
from commands import comes_true
from compiled import program


@pytest.fixture
def loop(either: Installation, tmp_path: Path) -> Measured:
    return loop_in(either, tmp_path)


def loop_in(installation: Installation, tmp_path: Path) -> Measured:
    """A program of broadcasts, and a tuning with a rule for them in its directory."""
    made, choice = loop_on(installation, tmp_path)
    bench = made.mpi.bench
    rules = RuleSet.always("bcast", live_basis(bench.catalogue, "bcast"), choice)
    tuning = Tuning(bench.environment, {"bcast": RuleSet.always("bcast", rules.basis)}, {}, {})
    save_tuning(tmp_path, with_live(bench, tuning, {"bcast": rules}))
    return made


def run(
    made: Measured,
    monkeypatch: pytest.MonkeyPatch,
    calls: int,
    *flags: str,
    slow: str = "",
    slow_us: int = 1000,
    code: int = 0,
) -> str:
    """Standard error of the command, with ``slow`` calls ("default" or "tuned") delayed by ``slow_us``."""
    delay(made, monkeypatch, slow, slow_us)
    command = broadcasts(made, calls, code)
    done = colltune("run", "--measure=50%", *flags, str(made.out.parent), "--", *command, code=code)
    assert done.stdout.splitlines()[0] == "done"
    return done.stderr


def gain(made: Measured) -> dict[str, Any]:
    place = max((made.out.parent / HISTORY).iterdir())
    assert (place / GAIN_PAGE).read_text().startswith(("this run took ", "after "))
    return dict(json.loads((place / GAIN).read_text()))


def test_a_default_that_is_slow_is_found_and_the_seconds_are_right(
    loop: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = run(loop, monkeypatch, 2000, slow="default", code=7)
    assert "this run took" in said
    found = gain(loop)
    assert fits(said, found)
    (cell,) = found["cells"]
    delayed_s = cell["tuned_calls"] * 0.001
    assert (
        cell["default_calls"] > 300
    )  # of 2,000: half of those after the warm-up, which takes longer on a busy machine
    assert found["saved_s"]["estimate"] > 0.3 * delayed_s
    assert cell["by_default"]["call_s"] - cell["tuned"]["call_s"] > 0.0009


def test_drift_reads_what_the_application_said(
    mpi: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No launch: the broadcasts of the run were all faster, or all slower, than by default."""
    loop = loop_in(mpi, tmp_path)
    run(loop, monkeypatch, 2000, slow="default")
    monkeypatch.delenv("LD_PRELOAD")
    said = colltune("verify", "--quick", str(tmp_path), mpiexec=mpi.mpiexec).stdout
    assert "bcast: holds" in said
    assert "nothing was launched" in said
    time.sleep(1.1)  # runs are told apart from the tuning by the second
    save_tuning(tmp_path, load_tuning(tmp_path))
    os.utime(tmp_path / "tuning.json")
    run(loop, monkeypatch, 2000, slow="tuned", slow_us=3000)
    monkeypatch.delenv("LD_PRELOAD")
    said = colltune("verify", "--quick", str(tmp_path), mpiexec=mpi.mpiexec, code=1).stdout
    assert "bcast: does not hold: it is slower in the application" in said


def test_a_rule_that_is_slower_here_is_switched_off_on_all_ranks(
    mpi: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On MPICH, where tuned calls pass the spy as well. If the ranks did not agree, the program would hang."""
    loop = loop_in(mpi, tmp_path)
    calls = 2500
    said = run(loop, monkeypatch, calls, slow="tuned", slow_us=4000)
    (cell,) = gain(loop)["cells"]
    assert (cell["off"], cell["communicators"]) == (1, 1)
    # Of the first 200 calls of the rule half are by default; after them all are.
    assert cell["tuned_calls"] <= 110
    assert cell["default_calls"] == calls - cell["tuned_calls"]
    assert cell["saved_s"]["estimate"] < 0.0
    assert "this run took" in said
    assert "is left out" not in said


def test_a_slower_rule_stays_withdrawn_for_the_program_until_it_is_rebuilt(
    mpi: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its arguments; and so does what whole runs withdrew. The delay is longer than others may hold a core."""
    loop, bench = loop_in(mpi, tmp_path), load_tuning(tmp_path).environment
    said = run(loop, monkeypatch, 200, "--share", "25%", slow="tuned", slow_us=20_000)
    last = said.splitlines()[-1]
    assert "with the rules program is slower: 0." in last
    assert re.search(r"of 1 run\); withdrawn for it: \S+ at bcast 1 x 2, 64 B", last)
    said = run(loop, monkeypatch, 501, slow="tuned", slow_us=20_000)
    assert "at bcast 1 x 2, 64 B is left out: earlier runs of this program were slower with it" in said
    assert "no call met a rule" in said
    assert "withdrawn for it" in said.splitlines()[-1]
    shutil.copy(program(mpi.mpicc, "switchback_loop.c", "-O3"), loop.program)
    said = run(loop, monkeypatch, 10)  # too few to learn anything new
    assert "is left out" not in said
    assert "10 calls met a rule: too few to compare" in said
    checked = RunRecord(bench, (), {}, 0, application_of(broadcasts(loop, 1), os.environ), 0, {"bcast": "slower"})
    begin_run(tmp_path, checked, time.time())
    assert "every rule of bcast is left out" in run(loop, monkeypatch, 10)


def test_a_run_is_measured_profiled_and_proven_at_once(
    mpi: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = loop_in(mpi, tmp_path)
    said = run(loop, monkeypatch, 2000, "--prove", "--profile", slow="default")
    assert "the tuning was in force: the live selector counted" in said
    assert "the profile of this run is" in said
    assert fits(said, gain(loop))
    (profiled, measured) = sorted((tmp_path / HISTORY).iterdir())
    names = [path.name.partition(".")[0] for path in sorted(measured.iterdir())]
    assert names == ["application-run", "application", "application", "blocks"]
    assert [path.name for path in profiled.iterdir()] == ["profile.json"]


def test_the_function_returns_what_the_command_prints(
    mpi: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = loop_in(mpi, tmp_path)
    delay(loop, monkeypatch, "default", 1000)
    command = broadcasts(loop, 2000, code=7)
    told = list[str]()
    done = run_program(tmp_path, command, measure=True, share=50, prove=True, profile=True, listener=told.append)
    assert done.exit_code == 7
    assert done.proof.proven
    assert done.profile is not None
    assert load_profile(done.profile).ranks == 2
    (worth,) = done.gains
    assert gain_line(worth) in told
    assert done.page.read_text().startswith(gain_line(worth))


def test_a_run_that_is_killed_leaves_what_it_measured(loop: Measured, monkeypatch: pytest.MonkeyPatch) -> None:
    """All ranks get a SIGKILL, which no program hears, in the midst of their calls."""
    delay(loop, monkeypatch, "default", 1000)
    job = broadcasts(loop, 100_000_000)
    directory = loop.out.parent
    process = start("run", "--measure=50%", str(directory), "--", *job)
    try:
        blocks = (directory / HISTORY).glob
        assert comes_true(lambda: sum(path.read_text().count("pair ") for path in blocks("*/blocks.*")) >= 20)
        assert process.poll() is None
    finally:
        for rank in ranks_of(loop.program):
            with contextlib.suppress(ProcessLookupError):  # the launcher ends the others after the first
                os.kill(rank, signal.SIGKILL)
    said, errors = process.communicate(timeout=100)
    assert "not ended by MPI_Finalize: by" in errors, said + errors
    (run,) = application_runs(directory)
    (job_of_it,) = run.jobs
    assert not job_of_it.complete
    assert sum(len(cell.pairs) for cell in job_of_it.cells) >= 20
    assert list(run.record.application.command) == job
    found = gain(loop)
    assert found["saved_in_calls_s"]["low"] > 0.0


def ranks_of(program: Path) -> list[int]:
    """The processes that run ``program``."""
    found = []
    for place in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if (place / "exe").resolve() == program.resolve():
                found.append(int(place.name))
    return found


def test_equal_calls_are_no_difference(mpi: Installation, tmp_path: Path) -> None:
    """A rule that sets nothing: tuned and default calls are the same, whatever the machine does beside.

    An interval of 95% misses in one run of twenty, and a rule is switched off in one of a thousand, so that of three
    runs two may not.
    """
    made, _ = loop_on(mpi, tmp_path)
    rules = b"colltune-rules 2\nchoice 0 - -\nrules bcast message\nrule - - - 0\n"
    said = []
    for run in range(3):
        told = {"COLLTUNE_MEASURE": f"{made.out}-{run}", "COLLTUNE_MEASURE_SHARE": "50"}
        done = made.mpi.run(2, [str(made.program), "100000", "64"], rules, **told)
        assert done.returncode == 0, done.stderr
        (found,) = read_experiments(sorted(made.out.parent.glob(f"{made.out.name}-{run}.*")))
        worth = gain_of(found, [DEFAULT])
        (cell,) = worth.cells
        assert cell.pairs >= 10
        said.append(worth)
    assert sum(one.is_sure or one.cells[0].off > 0 for one in said) <= 1, [gain_line(one) for one in said]


def test_a_command_without_a_rule_runs_as_it_is(
    mpi: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = loop_in(mpi, tmp_path)
    tuning = replace(load_tuning(tmp_path), live=None, files={})
    bench = made.mpi.bench
    rules = RuleSet.always("bcast", live_basis(bench.catalogue, "bcast"))
    save_tuning(tmp_path, with_live(bench, tuning, {"bcast": rules}))
    assert "warning: nothing is measured: this tuning has no rule" in run(made, monkeypatch, 10, code=3)
    assert not (tmp_path / HISTORY).exists()
