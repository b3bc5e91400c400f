"""One directory for all collectives and all shapes of jobs of one MPI: what a campaign does not look at stays."""

import json
from pathlib import Path

import pytest
from slow_default import FAST, FILE, colltune, make_slow_mpi

from colltune.core.proven import Verdict
from colltune.core.sample import Scenario
from colltune.mpi.installation import Installation
from colltune.store.earlier import measurements
from colltune.store.tuning import load_tuning


@pytest.fixture(scope="module")
def mpiexec(mpi: Installation, agent: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_slow_mpi(mpi, agent, tmp_path_factory.mktemp("slow"))


@pytest.fixture(scope="module")
def out(mpiexec: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """bcast on 1 x 2, then allreduce there, then bcast on 1 x 3."""
    out = tmp_path_factory.mktemp("one") / "tuned"
    bcast = ["bcast", "--min-size", "256", "--max-size", "256"]
    common = ["--out", str(out), "--mpiexec", str(mpiexec), "--budget", "150s"]
    colltune("tune", *bcast, "--ppn", "2", *common)
    assert load_tuning(out).rule_sets["bcast"].departs
    (out / "export").mkdir()
    colltune("tune", "allreduce", "--min-size", "64", "--max-size", "64", "--ppn", "2", *common)
    assert not (out / "export").exists()
    assert load_tuning(out).rule_sets["bcast"].departs
    colltune("tune", *bcast, "--ppn", "3", *common)
    return out


def test_the_rules_of_every_collective_and_shape_are_in_force(out: Path, mpiexec: Path) -> None:
    tuning = load_tuning(out)
    assert set(tuning.rule_sets) == {"bcast", "allreduce"}
    assert tuning.tuned_in == ((1, 2), (1, 3))
    for ppn in (2, 3):
        assert str(tuning.rule_sets["bcast"].evaluate(Scenario("bcast", 1, ppn, 256))) == FAST
        said = colltune("explain", str(out), "bcast", "--ppn", str(ppn), "--size", "256").stdout
        assert f"{FAST} kept" in said
    kept = {one.scenario for one in tuning.summary.having(Verdict.KEPT)}
    assert {Scenario("bcast", 1, 2, 256), Scenario("bcast", 1, 3, 256)} <= kept
    assert set(tuning.summary.reasons) == {"bcast", "allreduce"}
    assert FILE in colltune("env", str(out), mpiexec=mpiexec).stdout


def test_nothing_that_was_measured_is_lost(out: Path) -> None:
    found = {(s.scenario.collective, s.scenario.ppn) for s in measurements(out)}
    assert {("bcast", 2), ("bcast", 3), ("allreduce", 2)} <= found


def test_the_commands_work_on_it(out: Path) -> None:
    report = " ".join(colltune("report", str(out), "--text").stdout.split())
    assert "1 node x 2 ranks; 1 node x 3 ranks" in report
    assert "stopped because" in report
    colltune("verify", "--results", str(out), "--short")
    colltune("report", str(out), "--diff", str(out))
    colltune("lint", *(str(path) for path in (out / "mpich").glob("*.json")))


def test_going_on_in_another_shape_goes_on_with_its_own_campaign(out: Path, mpiexec: Path) -> None:
    before = measurements(out)
    done = colltune(
        "tune", "allreduce", "--min-size", "64", "--max-size", "64", "--ppn", "2", "--out", str(out),
        "--mpiexec", str(mpiexec), "--budget", "60s", "--resume",
    )  # fmt: skip
    assert "going on with the last campaign in this shape of job" in " ".join(done.stdout.split())
    assert {s.scenario for s in before} <= {s.scenario for s in measurements(out)}
    assert load_tuning(out).rule_sets["bcast"].evaluate(Scenario("bcast", 1, 3, 256)) != "default"


def test_another_mpi_is_refused_in_one_line(out: Path, openmpi: Installation) -> None:
    before = json.loads((out / "tuning.json").read_text())
    done = colltune("tune", "bcast", "--ppn", "2", "--out", str(out), "--mpiexec", str(openmpi.mpiexec), code=2)
    assert len(done.stderr.strip().splitlines()) == 1
    assert "mpich 5.0.2 there, openmpi 5.0" in done.stderr
    assert "--out" in done.stderr
    done = colltune("tune", "bcast", "--ppn", "2", "--out", str(out), "--thread-level", "multiple", code=2)
    assert "thread level single there, multiple here" in done.stderr
    assert json.loads((out / "tuning.json").read_text()) == before
