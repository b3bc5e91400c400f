"""Makes the HTML page of a tuning. What `colltune report`, the end of `colltune tune` and the Python API do."""

from __future__ import annotations

import os
from pathlib import Path

from colltune.machine.compile import cache_directory
from colltune.report.html import PAGE, write_page
from colltune.session.explain import load_findings


def make_page(directory: Path, out: Path | None = None) -> Path:
    """Writes the page of the tuning in ``directory``, by default into it, and returns where it is.

    Raises InputError where there is no tuning, the page cannot be written, or what makes it is not installed.
    """
    return write_page(load_findings(directory), out or directory / PAGE, cache_directory(os.environ))
