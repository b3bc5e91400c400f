"""`.ci/without_mpi.py`, by which CI runs the README's commands as on a machine without an MPI."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from commands import run_to_end

_SCRIPT = Path(__file__).parents[2] / ".ci" / "without_mpi.py"
_NAMES = ("mpiexec", "mpicc.openmpi", "srun", "orterun")


@pytest.mark.parametrize("mounts", [True, False])
def test_the_mpi_of_the_system_is_hidden_named_and_there_again(mounts: bool, tmp_path: Path) -> None:
    """By a mount where root may, and by links on PATH where ``unshare`` is not there or the user is another."""
    place = tmp_path / "bin"
    place.mkdir()
    for name in (*_NAMES, "tool"):
        (place / name).write_text("#!/bin/sh\necho here\n")
        (place / name).chmod(0o755)
    (place / "mpirun").symlink_to("orterun")
    if mounts and (os.geteuid() or subprocess.run(["unshare", "-m", "true"], check=False).returncode):
        pytest.skip("only root may mount")
    if not mounts:
        (place / "unshare").write_text("#!/bin/sh\nexit 1\n")
        (place / "unshare").chmod(0o755)
    script = "tool; for name in mpirun {}; do command -v $name; $name; done 2>&1; exit 3".format(" ".join(_NAMES))
    command = [sys.executable, _SCRIPT, "sh", "-c", script]
    environment = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}"}
    done = run_to_end(command, env=environment)
    hidden, *lines = [
        line for line in done.stdout.splitlines() if not line.startswith("hidden in ") or str(place) in line
    ]
    assert hidden == f"hidden in {place}: {' '.join(sorted((*_NAMES, 'mpirun')))}"
    assert lines[0] == "here"
    assert len(lines[1:]) == len(_NAMES) + 1
    assert all("not found" in line or "denied" in line for line in lines[1:]), lines
    assert done.returncode == 3
    assert shutil.which("mpirun", path=str(place)) == str(place / "mpirun")
    assert (place / "orterun").stat().st_size
