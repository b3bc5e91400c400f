"""Runs the notebooks of the documentation and keeps their outputs: ``python benchmarks/run_notebook.py``.

The MPI is the one beside this Python. What names this machine (paths, its host) is left out of what is kept.
"""

from __future__ import annotations

import socket
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]


def run(path: Path) -> None:
    notebook = nbformat.read(path, 4)
    with tempfile.TemporaryDirectory() as place:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": place}}).execute()
        notebook.metadata = {"kernelspec": notebook.metadata.kernelspec, "language_info": {"name": "python"}}
        for cell in notebook.cells:
            cell.metadata = {}
        text = nbformat.writes(notebook)
        for private, public in (
            (place, "/home/you"),
            (str(Path(sys.prefix)), "/home/you/env"),
            (str(ROOT), "/home/you/colltune"),
            (socket.gethostname(), "laptop"),
        ):
            text = text.replace(private, public)
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    for one in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        run(one)
        print(one)
