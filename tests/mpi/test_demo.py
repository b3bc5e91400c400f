"""`colltune demo` from end to end: the recorded cluster without any MPI, then this machine."""

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from colltune.core.proven import Verdict
from colltune.mpi.installation import Installation
from colltune.session.explain import explain_call
from colltune.store.grid import unpack_grids
from colltune.store.tuning import load_tuning
from colltune_study.recorded.dataset import load_grids
from commands import run_to_end

ROOT = Path(__file__).resolve().parents[2]
PACKED = ROOT / "src" / "colltune" / "bench" / "lumi.npz"
PATIENCE_S = 240


def demo(place: Path, mpiexec: object) -> subprocess.CompletedProcess[str]:
    """Under a locale and a terminal's width that a new user may have."""
    command = [sys.executable, "-m", "colltune", "demo", "--mpiexec", str(mpiexec), "--out", str(place / "demo")]
    environment = {**os.environ, "COLUMNS": "80", "OMP_NUM_THREADS": "1"}
    return run_to_end(command, cwd=place, env=environment, timeout=PATIENCE_S)


def test_the_packed_cluster_is_the_recorded_one() -> None:
    recorded, packed = load_grids([ROOT / "benchmarks" / "data" / "pico_lumi.csv.gz"]), unpack_grids(PACKED)
    assert [(g.name, g.scenarios, g.choices) for g in packed] == [(g.name, g.scenarios, g.choices) for g in recorded]
    for one, other in zip(packed, recorded, strict=True):
        np.testing.assert_array_equal(one.time_s, other.time_s)
        np.testing.assert_array_equal(one.default_s, other.default_s)


def test_a_machine_without_an_mpi_sees_the_recorded_cluster_and_what_is_missing(tmp_path: Path) -> None:
    done = demo(tmp_path, "/nowhere/mpiexec")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "this machine was not tuned" in done.stderr
    assert "/nowhere/mpiexec" in done.stderr
    assert "of what the fastest choice of each" in done.stdout
    tuned = load_tuning(tmp_path / "demo" / "lumi")
    kept = tuned.summary.having(Verdict.KEPT)
    assert kept
    # It may be shown to be harmless by the record itself.
    grids = {grid.collective: grid for grid in unpack_grids(PACKED)}
    for decision in kept:
        grid = grids[decision.scenario.collective]
        default_s = float(grid.default_s[grid.rows[decision.scenario]])
        assert math.log(default_s / grid.time(decision.scenario, decision.choice)) > -0.03
    assert "LUMI" in (tmp_path / "demo" / "lumi" / "report.html").read_text(encoding="utf-8")
    one = kept[0].scenario
    told = explain_call(tmp_path / "demo" / "lumi", one.collective, one.size_bytes, one.nodes, one.ppn)
    assert f"runs      {kept[0].choice}" in told


def test_both_halves_end_with_a_command_that_runs_as_printed(either: Installation, tmp_path: Path) -> None:
    (tmp_path / "tuned").mkdir()  # a user's own
    done = demo(tmp_path, either.mpiexec)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo", "tuned"]
    here = done.stdout.partition("2 of 2")[2]
    lines = [line.removeprefix("use it").strip() for line in here.splitlines() if line.startswith("use it ")]
    if not lines:  # nothing was proven on this machine
        assert re.search(r"^next +", here, re.MULTILINE)
        return
    # In the shell that the demo was typed in, whichever MPI comes first there.
    command = ["bash", "-c", f"{lines[0]}; env; command -v mpiexec"]
    ran = run_to_end(command, cwd="/", env=dict(os.environ), check=True)
    assert str(tmp_path / "demo" / "here") in ran.stdout
    assert Path(ran.stdout.splitlines()[-1]).resolve() == either.mpiexec.resolve()
