"""`colltune predict --calibrate` on a real MPI: what it measures, and what it hands over."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from colltune.bench.workbench import MachineOptions, Workbench, open_workbench
from colltune.cli.app import app
from colltune.core.choice import DEFAULT
from colltune.mpi.installation import Installation
from colltune.predict.calibration import MOST_PROBABLE
from colltune.predict.guesses import gain_texts
from colltune.predict.model import load_model
from colltune.session.calibrate import MOST_PAIRS, calibrate, decided
from colltune.store.tuning import load_tuning


@pytest.fixture(scope="module")
def bench(mpi: Installation) -> Workbench:
    return open_workbench(MachineOptions(str(mpi.mpiexec), ppn=2), os.environ)


def test_a_few_pairs_are_measured_and_rules_are_sure_enough(bench: Workbench):
    spaces = {name: bench.space(name, 64, 65536) for name in ("allreduce", "alltoall")}
    done = calibrate(bench, load_model(), spaces, pairs=12, budget_s=60.0)
    told = {name: known.told for name, known in done.known.items()}
    assert 2 <= sum(len(own) for own in told.values()) <= 12
    for own in told.values():
        for (scenario, choice), time_s in own.items():
            assert choice in bench.legal(scenario)
            assert 0.0 < time_s < 10.0
    for space in spaces.values():
        guesses = decided(bench, done, space)
        assert [guess.scenario for guess in guesses] == list(space.scenarios)
        for guess in guesses:
            if guess.choice != DEFAULT:
                assert guess.sureness >= 1.0 - MOST_PROBABLE
                assert guess.gain > 1.0
                assert guess.choice in bench.legal(guess.scenario)
        assert gain_texts(guesses)[0].startswith(f"{space.collective}: ")


def test_the_command_writes_a_tuning_that_the_library_reads(mpi: Installation, tmp_path: Path):
    out = tmp_path / "tuned"
    command = [
        "predict",
        "allreduce",
        "--calibrate",
        "--ppn",
        "2",
        "--mpiexec",
        str(mpi.mpiexec),
        "--out",
        str(out),
    ]
    done = CliRunner().invoke(app, [*command, "--max-size", "16KiB"])
    assert done.exit_code == 0, done.output
    assert "calls were measured in" in done.output
    summary = load_tuning(out).summary
    assert 2 <= summary.samples <= MOST_PAIRS
    assert summary.prediction is not None
    assert not summary.gated
