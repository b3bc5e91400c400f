"""What doctor and verify say first on a terminal of 80 x 24, and to other programs, with a real MPI."""

from pathlib import Path

import pytest

from colltune.mpi.installation import Installation
from commands import colltune
from documented_json import check_document
from terminals import bare, on_terminal

pytestmark = pytest.mark.timeout(600)


def test_doctor_fits_a_screen_and_ends_with_what_to_type_or_what_is_missing(
    either: Installation, tmp_path: Path
) -> None:
    text = bare(on_terminal(["doctor", "--mpiexec", either.mpiexec], place=tmp_path)).rstrip()
    lines = text.split("\n")
    assert len(lines) <= 23
    last = next(line for line in reversed(lines) if not line.startswith(" "))
    # Other programs may use this machine while the test runs.
    assert last.startswith("afterwards " if "\nnot ready " in text else "ready ")
    assert f"tune bcast allreduce --mpiexec {either.mpiexec}" in last


def test_doctor_is_one_document(either: Installation) -> None:
    done = colltune("doctor", "--mpiexec", str(either.mpiexec), "--json", code=0)
    document = check_document(done.stdout, "doctor")
    assert "bcast" in document["choices"]


def test_tune_plan_and_verify_are_one_document_each(either: Installation, tmp_path: Path) -> None:
    place, where = tmp_path / "tuned", ["--mpiexec", str(either.mpiexec), "--ppn", "2"]
    sizes = ["--min-size", "1KiB", "--max-size", "2KiB"]
    done = colltune("tune", "bcast", *sizes, *where, "--budget", "20s", "--out", str(place), "--json", code=0)
    assert check_document(done.stdout, "tune")["directory"] == str(place)
    done = colltune("plan", "bcast", "--from", str(place), "--nodes", "4", "--ppn", "2", "--json")
    assert check_document(done.stdout, "plan")["nodes"] == 4
    done = colltune("verify", str(place), *where, "--launches", "2", "--json")
    assert done.returncode in (0, 1, 4), done.stderr
    assert check_document(done.stdout, "verify")["launches"] == 2
