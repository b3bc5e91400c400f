"""Applications that are slower, or fail, as soon as a tuning is in force, and what `tune --check` makes of that."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from one_rule import RULES, bench_of

from colltune.bench.workbench import Workbench
from colltune.core.errors import InputError
from colltune.core.proven import Decision, Summary, Verdict
from colltune.core.rules import RuleSet
from colltune.core.sample import Choice, Scenario, SizeBasis
from colltune.core.stop import StopRequest
from colltune.deploy.live_selector import with_live
from colltune.mpi.installation import Installation
from colltune.profile.application_profile import Profile
from colltune.prove.in_run.application_trial import Trial, require_command, without
from colltune.search.campaign import Outcome
from colltune.session.tuning.options import Listener, TuneOptions, TuneResult
from colltune.session.tuning.tune_here import check_with_application
from colltune.store.applications import application_runs
from colltune.store.tuning import Tuning, load_tuning
from commands import colltune

# Under a tuning MPICH is told of a selection file: so the script knows, whatever the machine's speed.
_SLOW = 'test -z "$MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE" || sleep 0.4'
_FAST = 'test -n "$MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE" || sleep 0.4'
_FAILS = 'test -z "$MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"'


@pytest.fixture(scope="module")
def bench(mpi: Installation) -> Workbench:
    return bench_of(mpi)


@pytest.fixture(scope="module")
def tuning(bench: Workbench) -> Tuning:
    return with_live(bench, bench.tuning({"allreduce": RULES}), {"allreduce": RULES})


def checked(bench: Workbench, tuning: Tuning, place: Path, *command: str) -> tuple[set[str], str]:
    said: list[str] = []
    trial = Trial(bench, tuning, command, place, place / "application.log", 1.0, 1, said.append)
    return set(trial.check().withdrawn), "\n".join(said)


def test_an_application_that_is_slower_under_the_rules_loses_them(
    bench: Workbench, tuning: Tuning, tmp_path: Path
) -> None:
    withdrawn, said = checked(bench, tuning, tmp_path, "sh", "-c", f"sleep 0.4; {_SLOW}; echo done")
    assert withdrawn == {"allreduce"}
    ratio = re.search(r"with all rules the application is slower: ([0-9.]+) times as fast", said)
    assert float(ratio[1]) < 0.9, said
    assert (tmp_path / "application.log").read_text().count("done") == 1 + 2 * 3


def test_an_application_that_fails_under_the_rules_loses_them(bench: Workbench, tuning: Tuning, tmp_path: Path) -> None:
    assert checked(bench, tuning, tmp_path, "sh", "-c", _FAILS)[0] == {"allreduce"}


def test_a_tuning_without_a_collective_leaves_it_to_the_library(bench: Workbench, tuning: Tuning) -> None:
    left = without(bench, tuning, {"allreduce"}, {"allreduce"})
    assert left.rule_sets["allreduce"] == RuleSet.always("allreduce", SizeBasis.MESSAGE)
    assert b"recursive_doubling" in tuning.files["live/colltune-live.rules"]
    assert b"recursive_doubling" not in left.files["live/colltune-live.rules"]
    # The live selector knows the program, so it keeps what was only slower in one.
    assert b"recursive_doubling" in without(bench, tuning, {"allreduce"}).files["live/colltune-live.rules"]
    same = without(bench, tuning, set())
    assert (same.files, same.variables) == (tuning.files, tuning.variables)
    # Variables may only name files that are there: MPICH ends a job that it cannot read one in.
    named = {Path(value).name for value in left.variables.values()}
    assert named == {Path(name).name for name in left.files if name.startswith(bench.emitter.name)}


def result_of(tuning: Tuning) -> TuneResult:
    gate = [Decision(Scenario("allreduce", 1, 2, 4096), Choice("recursive_doubling"), Verdict.KEPT, (1.2,) * 8, "")]
    outcome = Outcome((), {}, 1.0, False)
    summary = Summary(seed=1, decisions=tuple(gate), total_s=3.0)
    return TuneResult(replace(tuning, summary=summary), outcome, gate, {})


@pytest.mark.parametrize(("script", "left"), [(_SLOW, set()), (_FAST, {"allreduce"})])
def test_tune_withdraws_and_says_so(
    bench: Workbench, tuning: Tuning, tmp_path: Path, script: str, left: set[str]
) -> None:
    command = ("sh", "-c", f"sleep 0.4; {script}")
    profile = Profile((), (), ranks=2, nodes=1, elapsed_s=0.4, reporting=2, command=command)
    said: list[str] = []
    listener = Listener(note=said.append)
    options = TuneOptions(["allreduce"], budget_s=1.0)
    found = check_with_application(bench, result_of(tuning), profile, options, tmp_path, listener, StopRequest())
    tuned = load_tuning(tmp_path)
    assert {name for name, rules in tuned.rule_sets.items() if len(rules.rules) > 1} == left
    assert [one.verdict for one in found.decisions] == [Verdict.KEPT if left else Verdict.REFUSED]
    assert (tuned.summary.speedup is not None) == bool(left)
    assert ("withdrawn for it: the rules of allreduce" in said[-1]) != bool(left)
    assert said[-1].startswith(f"with the rules the application is {'faster' if left else 'slower'}: ")
    assert "99% interval of 3 runs each)" in said[-1]
    assert tuned.live  # for other programs
    (run,) = application_runs(tmp_path)
    assert run.record.application.command == command
    assert {name: not reason for name, reason in run.record.checked.items()} == {"allreduce": bool(left)}
    (one,) = tuned.summary.application
    assert len(one.default_s) == len(one.tuned_s) == 3
    assert tuned.summary.total_s > 3.0 + sum(one.default_s) + sum(one.tuned_s)


def test_an_application_that_fails_by_itself_is_not_compared(bench: Workbench, tuning: Tuning, tmp_path: Path) -> None:
    profile = Profile((), (), ranks=2, nodes=1, elapsed_s=0.4, reporting=2, command=("sh", "-c", "exit 3"))
    said: list[str] = []
    before = result_of(tuning)
    listener = Listener(note=said.append)
    assert (
        check_with_application(bench, before, profile, TuneOptions(["allreduce"]), tmp_path, listener, StopRequest())
        is before
    )
    assert "exit code 3" in said[-1]


@pytest.mark.parametrize("command", [(), ("/no/such/program",)])
def test_a_command_that_cannot_run_is_found_before_the_tuning(command: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="profile"):
        require_command(command, Path(), os.environ)


def test_a_check_needs_a_profile(tmp_path: Path) -> None:
    done = colltune("tune", "bcast", "--check", "--out", str(tmp_path / "tuned"))
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1)
    assert "--profile" in done.stderr
