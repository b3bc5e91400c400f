"""The notebooks of the documentation run from top to bottom, also after the install that they name, with outputs."""

import re
import sys
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest

from colltune.mpi.installation import Installation
from commands import run_to_end

# Imported where they are used: it takes long.
_MISSING = [name for name in ("nbformat", "nbclient", "ipykernel", "pandas") if find_spec(name) is None]
_NEEDED = pytest.mark.skipif(bool(_MISSING), reason=f"notebooks need {', '.join(_MISSING)}")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), _NEEDED]

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_keeps_the_outputs_of_a_run_and_nothing_private(path: Path) -> None:
    import nbformat

    kept = nbformat.read(path, 4)
    codes = [cell for cell in kept.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in codes] == list(range(1, len(codes) + 1))
    assert all(cell.outputs for cell in codes)
    assert not any(output.output_type == "error" for cell in codes for output in cell.outputs)
    assert not re.search(rf"{re.escape(str(ROOT))}|/root/|/tmp/|{re.escape(sys.prefix)}", path.read_text("utf-8"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs_after_the_install_that_it_names(path: Path, tmp_path: Path) -> None:
    """In a new environment, with all requirements from the index; Jupyter's kernel stands for its pages."""
    import nbformat

    text = "".join(cell.source for cell in nbformat.read(path, 4).cells)
    (packages,) = re.findall(r"^pip install (.*)$", text, re.MULTILINE)
    words = packages.replace("'", "").replace("/path/to/colltune", str(ROOT)).replace("notebook", "ipykernel nbclient")
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words.split()]
    done = run_to_end(command, timeout=600)
    if done.returncode != 0:
        pytest.skip(f"pip cannot install {words} here: {done.stderr.strip().splitlines()[-1]}")
    run = (
        "import nbformat, nbclient, sys; kept = nbformat.read(sys.argv[1], 4);"
        "nbclient.NotebookClient(kept, timeout=600, kernel_name='python3').execute()"
    )
    done = run_to_end([python, "-c", run, path], cwd=tmp_path, timeout=600, check=True)
    assert (tmp_path / "alltoall.png").is_file()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs(mpi: Installation, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbclient
    import nbformat

    kept = nbformat.read(path, 4)
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
    assert (tmp_path / "alltoall.png").is_file()
