"""The notebooks of the documentation run from top to bottom, and are kept without outputs of some machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from colltune.mpi.installation import Installation

nbformat = pytest.importorskip("nbformat", reason="notebooks need nbclient and ipykernel")
nbclient = pytest.importorskip("nbclient", reason="notebooks need nbclient and ipykernel")
pytest.importorskip("ipykernel", reason="notebooks need nbclient and ipykernel")
pytest.importorskip("pandas", reason="the notebook shows frames")
pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(900)]

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs(mpi: Installation, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = nbformat.read(path, 4)
    codes = [cell for cell in kept.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in codes)
    monkeypatch.setenv("PATH", f"{mpi.mpiexec.parent}:/usr/bin:/bin")
    monkeypatch.setenv("MPIR_CVAR_ENABLE_HEAVY_YIELD", "1")
    # Raises where a cell fails.
    done = nbclient.NotebookClient(
        kept, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    found = [one["data"] for cell in done.cells for one in cell.get("outputs", ()) if "data" in one]
    shown = next(data["text/html"] for data in found if "text/html" in data)
    assert "<b>" in shown
    assert "<svg" in shown
    assert (tmp_path / "allreduce.png").is_file()
