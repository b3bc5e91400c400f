"""A collective that is added as docs/how-to/add-a-collective.md says is measured, with results that are right."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from colltune.core.sample import Status
from colltune.mpi.installation import Installation
from colltune.store.journal import read_journal
from commands import run_to_end

ROOT = Path(__file__).parents[2]
PATCH = ROOT / "docs" / "how-to" / "gatherv.patch"


def patched(place: Path) -> None:
    """Copies the package and its C sources to ``place``, and applies the patch there."""
    for name in ("src", "native"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    run_to_end(["git", "apply", str(PATCH)], cwd=place, check=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git to apply a patch")
def test_the_patch_of_the_page_fits_the_code(tmp_path: Path) -> None:
    patched(tmp_path)


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git to apply a patch")
def test_three_files_measure_a_new_collective(mpi: Installation, tmp_path: Path) -> None:
    patched(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src"), "COLLTUNE_BUSY": "accept"}
    environment |= {"COLLTUNE_CACHE": str(tmp_path / "cache"), "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}
    what = ["study", "collect", "gatherv", "--ppn", "3", "--ppn-counts", "3", "--max-size", "64", "--between", "0"]
    command = [sys.executable, "-m", "colltune", *what, "--budget", "30s", "--out", "gatherv.csv"]
    run_to_end([*command, "--mpiexec", str(mpi.mpiexec)], cwd=tmp_path, env=environment, check=True)
    samples = read_journal(tmp_path / "gatherv.csv.journal.jsonl").samples
    assert {str(sample.choice) for sample in samples} >= {"default", "linear", "nb"}
    assert {sample.status for sample in samples} == {Status.OK}
