"""The whole way on the real MPICH: tune, run, check, verify; a disk that fills; the profile of a program."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs import colltune, legal_calls
from one_rule import bench_of

import colltune as colltune_api
from colltune.bench.workbench import MachineOptions, open_workbench
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, Scenario, SizeBasis, Status
from colltune.mpi.installation import Installation
from colltune.mpi.job import Job, Node, Scheduler
from colltune.profile.profile_files import load_profile
from colltune.session.tuning.options import Listener, TuneOptions
from colltune.session.tuning.payoff import for_application, machine_like
from colltune.store.earlier import latest_profile
from colltune.store.journal import read_journal
from colltune.store.tuning import JOURNAL, load_tuning, save_tuning
from compiled import program


def tune(mpi: Installation, out: Path, *more: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    return colltune("tune", *more, "--mpiexec", mpi.mpiexec, "--out", out, "--budget", "150s", code=code)


@pytest.fixture(scope="module")
def tuned(mpi: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tune") / "tuned"
    done = tune(mpi, directory, "bcast", "allgather", "exscan", "--max-size", "4KiB", "--ppn", "2")
    assert "exscan: MPICH has recursive doubling only" in done.stdout
    assert "outside the collectives" in " ".join(done.stdout.split())
    assert f"Look at it: {directory / 'report.html'}" in done.stdout
    return directory


@pytest.fixture
def again(tuned: Path, tmp_path: Path) -> Path:
    """A copy to go on with."""
    return Path(shutil.copytree(tuned, tmp_path / "again"))


def test_the_whole_small_grid_is_measured_and_each_choice_is_ok(tuned: Path) -> None:
    samples = read_journal(tuned / JOURNAL).samples
    scenarios = {sample.scenario for sample in samples}
    powers = {Scenario(c, 1, 2, 1 << power) for c in ("bcast", "allgather") for power in range(13)}
    assert powers <= scenarios
    # Beside the grid stand a few sizes within it, to see whether the rules hold between its points.
    assert all(1 < scenario.size_bytes < 4096 for scenario in scenarios - powers)
    assert all(sample.status is Status.OK for sample in samples)
    for scenario in scenarios:
        assert DEFAULT in {sample.choice for sample in samples if sample.scenario == scenario}


def test_settings_of_the_users_own_are_told_before_anything_is_measured(
    mpi: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
    monkeypatch.setenv("MPIR_CVAR_BCAST_INTRA_ALGORITHM", "binomial")
    monkeypatch.setenv(file, str(tmp_path / "own.json"))
    options = ("--min-size", "64", "--max-size", "64", "--ppn", "2", "--gate", "off")
    done = tune(mpi, tmp_path / "tuned", "bcast", *options)
    told = " ".join((done.stdout + done.stderr).split())
    assert "warning: your own MPIR_CVAR_BCAST_INTRA_ALGORITHM=binomial goes before" in told
    assert f"your own {file} is left out while this measures" in told
    assert told.index("your own") < told.index("measuring")


def test_a_tuning_begins_with_what_was_measured_before(mpi: Installation, again: Path) -> None:
    before = (again / JOURNAL).read_bytes()
    earlier = read_journal(again / JOURNAL).samples
    done = tune(mpi, again, "bcast", "--max-size", "4KiB", "--ppn", "2")
    (kept,) = (again / "history").iterdir()
    assert (kept / JOURNAL).read_bytes() == before
    assert json.loads((kept / "tuning.json").read_text())["rules"].keys() == {"bcast", "allgather"}
    assert load_tuning(again).rule_sets.keys() == {"bcast", "allgather"}  # what was not named stays
    # Whether they hold is for the machine to say; what is done about it is not.
    samples = read_journal(again / JOURNAL).samples
    of_before = [sample for sample in samples if sample in earlier]
    if "still hold and are used again" in done.stdout:
        assert {s for s in earlier if s.scenario.collective == "bcast"} == set(of_before)
        assert len(samples) - len(of_before) < len(of_before)  # sentinels, and what was left open
    else:
        assert f"bcast: measurements of {kept.name} are not used: " in done.stdout
        assert not of_before


def test_measurements_of_another_shape_are_kept_and_not_used(mpi: Installation, again: Path) -> None:
    done = tune(mpi, again, "bcast", "--max-size", "16", "--ppn", "3")
    assert "not used" in done.stdout
    assert "ranks per node is 2 there and 3 here" in " ".join(done.stdout.split())
    assert len(list((again / "history").iterdir())) == 1


def test_a_tuning_of_a_minute_ago_holds(mpi: Installation, tuned: Path) -> None:
    done = colltune("verify", "--quick", str(tuned), "--budget", "60s", code=0)
    assert "does not hold" not in done.stdout
    rules = load_tuning(tuned).rule_sets.values()
    assert ("there is no rule that could be lost" in done.stdout) == (not any(rule.departs for rule in rules))


@pytest.mark.slow
def test_drift_finds_rules_made_slower_whatever_their_proof_says(again: Path) -> None:
    """On two ranks a broadcast in two steps takes two to three times as long; the ratios of a proof stay beside it."""
    manifest = json.loads((again / "tuning.json").read_text())
    for name, rules in manifest["rules"].items():
        choice = "scatter_ring_allgather" if name == "bcast" else "default"
        rules["max_ppn max_ranks max_size choice"] = [[None, None, None, choice]]
    proof = {"choice": "fast", "verdict": "kept", "ratios": [1.5] * 8, "low": 1.5, "reason": ""}
    manifest["summary"]["gate"] = [{"scenario": ["bcast", 1, 2, 1 << power], **proof} for power in range(13)]
    (again / "tuning.json").write_text(json.dumps(manifest))
    done = colltune("verify", "--quick", str(again), "--budget", "110s", code=1)
    words = " ".join(done.stdout.split())
    assert "bcast: does not hold: scatter_ring_allgather at 1 x 2" in words
    assert "it was proven to be at least 1.50 times as fast" in words
    assert "--nodes 1 --ppn 2 --out" in words.partition("Tune again: colltune tune bcast ")[2]


def test_drift_after_an_upgrade_says_what_is_new(mpi: Installation, again: Path) -> None:
    manifest = json.loads((again / "tuning.json").read_text())
    manifest["environment"] |= {"mpi_version": "4.3.2", "mpi_build": "0" * 64}
    (again / "tuning.json").write_text(json.dumps(manifest))
    done = colltune("verify", "--quick", str(again), "--budget", "60s")
    assert done.returncode in (0, 1), done.stderr
    assert f"MPI version was 4.3.2 and is {mpi.version}" in done.stdout
    assert "MPI build was 0000" in done.stdout


def test_a_run_leaves_its_profile_for_the_next_tuning(mpi: Installation, again: Path) -> None:
    made = program(mpi.mpicc, "known_calls.c")
    for flags in (["--profile"], ["--profile", "--prove"], ["--profile", "--via", "live"]):
        done = colltune("run", *flags, str(again), "--", str(mpi.mpiexec), "-n", "4", made)
        assert done.returncode in (0, 3), done.stderr
        assert "the profile of this run is" in done.stderr
        found = load_profile(latest_profile(again))
        allreduce = [one for one in found.calls if one.collective == "allreduce" and one.communicator.size == 4]
        assert sum(one.rank_calls for one in allreduce if one.form == "blocking") == 4 * 8
        assert found.command == (str(mpi.mpiexec), "-n", "4", made)
    assert len(list((again / "history").iterdir())) == 3
    # So little might be saved that a tuning says so, which shows that it read the profile.
    done = tune(mpi, again, "--profile", str(again), "--runtime", "1s", code=2)
    assert "tuning cannot pay" in done.stderr


def test_a_run_that_leaves_no_profile_leaves_no_folder(again: Path) -> None:
    done = colltune("run", "--profile", str(again), "--", "sh", "-c", "exit 5", code=5)
    assert "left no profile" in done.stderr
    assert not list((again / "history").iterdir())


def test_check_and_verify_pass_on_what_was_tuned(tuned: Path) -> None:
    checked = colltune("verify", "--results", str(tuned), "--short", code=0)
    assert "gave the right result" in checked.stdout
    verified = colltune("verify", str(tuned), "--launches", "2")
    # What two launches say of speed is the machine's noise; what is promised of it is measured, not tested.
    slower = "0 slower" not in verified.stdout
    assert verified.returncode == (1 if slower else 0), verified.stdout + verified.stderr
    assert "Speed-up, geometric mean" in verified.stdout


def departing_tuning(mpi: Installation, directory: Path) -> None:
    """A tuning in which every shape of one node departs from the default, for three collectives."""
    rule_sets = {
        "bcast": RuleSet(
            "bcast",
            SizeBasis.MESSAGE,
            (Rule(None, None, 100, Choice("scatter_ring_allgather")), Rule(None, None, None, Choice("binomial"))),
        ),
        "allgather": RuleSet.always("allgather", SizeBasis.TOTAL, Choice("recursive_doubling")),
        "allreduce": RuleSet.always("allreduce", SizeBasis.MESSAGE, Choice("reduce_scatter_allgather")),
    }
    save_tuning(directory, bench_of(mpi).tuning(rule_sets))


@pytest.mark.parametrize("ranks", [2, 3, *(pytest.param(ranks, marks=pytest.mark.slow) for ranks in range(4, 9))])
def test_an_application_runs_under_a_file_that_departs_everywhere(
    ranks: int, mpi: Installation, tmp_path: Path
) -> None:
    departing_tuning(mpi, tmp_path / "tuned")
    job = [str(mpi.mpiexec), "-n", str(ranks), *legal_calls(mpi.mpicc, ranks, 36_000)]
    done = colltune("run", str(tmp_path / "tuned"), "--", *job, code=0)
    assert "failures=0" in done.stdout


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", str(place)], check=False)
    if mounted.returncode != 0:
        pytest.skip("a small disk of one's own needs root (mount)")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_ends_in_one_line_and_what_was_measured_is_kept(mpi: Installation, small_disk: Path) -> None:
    done = tune(mpi, small_disk / "tuned", "bcast", "allreduce", "--max-size", "64KiB", "--ppn", "2", code=2)
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "No space left" in done.stderr
    assert len(read_journal(small_disk / "tuned" / JOURNAL).samples) > 10
    assert not (small_disk / "tuned" / "tuning.json").exists()


def test_the_manifest_tells_how_each_decision_was_come_by(tuned: Path) -> None:
    summary = json.loads((tuned / "tuning.json").read_text())["summary"]
    assert summary["share"]["launches"] == 1
    for decision in summary["gate"]:
        assert decision["verdict"] in ("kept", "refused", "not tried")
        assert decision["verdict"] == "refused" or min(decision["ratios"]) > 0


def test_the_python_interface_tunes_and_looks_again_as_the_commands_do(mpi: Installation, tmp_path: Path) -> None:
    stages: list[str] = []
    tuned = colltune_api.tune(
        ["alltoall"],
        tmp_path / "tuned",
        budget="20s",
        max_size="64",
        ppn=2,
        mpiexec=str(mpi.mpiexec),
        listener=Listener(stage=stages.append),
    )
    assert "measuring" in stages
    assert {sample.scenario.size_bytes for sample in tuned.measured} == {1, 2, 4, 5, 8, 16, 32, 64}
    assert "alltoall of 32 B on 1 node x 2 ranks" in tuned.explain("alltoall", "32")
    assert tuned.choose("alltoall", "32") == load_tuning(tmp_path / "tuned").rule_sets["alltoall"].evaluate(
        Scenario("alltoall", 1, 2, 32)
    )
    assert tuned.check(short=True).passed
    verified = tuned.verify(launches=2)
    assert {one.scenario.collective for one in verified.comparisons} == {"alltoall"}
    assert sum(verified.counts.values()) == len(verified.comparisons)
    report = tuned.drift(budget=20)
    assert set(report.found.verdicts) <= {"alltoall"}
    assert (report.here.mpi_build, report.same_place) == (mpi.build, True)
    assert not report.lost
    assert tuned.diff(tmp_path / "tuned").same


SOURCE = r"""
#include <mpi.h>
static char data[2048];
int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    for (int step = 0; step < 60; step++)
        MPI_Bcast(data, 2048, MPI_CHAR, 0, MPI_COMM_WORLD);
    return MPI_Finalize();
}
"""


def run(mpi: Installation, *arguments: str, code: int | None = None) -> subprocess.CompletedProcess[str]:
    path = f"{mpi.mpiexec.parent}:{os.environ['PATH']}"
    return colltune(*arguments, code=code, PATH=path, PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe")


@pytest.fixture(scope="module")
def kit(either: Installation, tmp_path_factory: pytest.TempPathFactory) -> tuple[Installation, Path]:
    """An MPI, and the profile of a program on 1 x 4 ranks with MPI_THREAD_MULTIPLE."""
    place = tmp_path_factory.mktemp("profile")
    (place / "app.c").write_text(SOURCE)
    job = [str(either.mpiexec), "-n", "4", program(either.mpicc, place / "app.c")]
    run(either, "profile", "--out", str(place / "app.json"), "--", *job, code=0)
    return either, place / "app.json"


def tune_by_profile(kit: tuple[Installation, Path], out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    mpi, profile = kit
    of_it = ("--profile", str(profile), "--runtime", "1000h", "--out", str(out))
    return run(mpi, "tune", *of_it, "--mpiexec", str(mpi.mpiexec), *more)


def test_the_job_is_that_of_the_profile(kit: tuple[Installation, Path], tmp_path: Path) -> None:
    mpi, path = kit
    profile = load_profile(path)
    job = Job(Scheduler.NONE, (Node("localhost", 2),))
    machine = machine_like(profile, MachineOptions(mpiexec=str(mpi.mpiexec)), "", job)
    bench = open_workbench(machine, os.environ)
    assert (bench.nodes, bench.ppn, bench.thread_level) == (1, 4, "multiple")
    options = for_application(TuneOptions([]), profile, 1e7, bench.catalogue, (bench.nodes, bench.ppn))
    assert options.collectives == ["bcast"]
    assert {(one.nodes, one.ppn, one.size_bytes) for one in options.expected_gain.share} == {(1, 4, 2048)}
    for more, told in (
        (("--thread-level", "single"), "MPI_THREAD_MULTIPLE, and --thread-level is single"),
        (("--ppn", "2"), "this job of 1 x 2 ranks cannot form calls of the application that need 1 x 4"),
    ):
        refused = tune_by_profile(kit, tmp_path / "tuned", *more)
        assert (refused.returncode, len(refused.stderr.strip().splitlines())) == (2, 1), refused.stderr
        assert told in refused.stderr


@pytest.mark.slow
def test_a_profile_is_tuned_for_its_ranks_and_threads(kit: tuple[Installation, Path], tmp_path: Path) -> None:
    out = tmp_path / "tuned"
    done = tune_by_profile(kit, out, "--budget", "4s", "--gate", "off")
    assert done.returncode == 0, done.stderr + done.stdout
    made = load_tuning(out).environment
    assert (made.nodes, made.ppn, made.thread_level) == (1, 4, "multiple")
    measured = {(s.scenario.collective, s.scenario.ppn) for s in read_journal(out / JOURNAL).samples}
    assert measured == {("bcast", 4)}
    assert "1 of its 1 kinds of calls (collective, shape and size) were measured" in " ".join(done.stdout.split())
