"""An environment with packages that no extra of colltune needs, for the time of a test module."""

import subprocess
import sys
import venv
from pathlib import Path

import pytest

# For some small packages from the index; ReFrame takes 10 s beside a load of 8.
PATIENCE_S = 240


def environment_with(place: Path, *requirements: str) -> Path:
    """The folder of programs of a new environment at ``place`` with ``requirements`` (words for pip) and no others.

    Skips the test where pip cannot install them, or not within ``PATIENCE_S``.
    """
    venv.create(place, with_pip=False)
    programs = place / "bin"
    command = [
        *(sys.executable, "-m", "pip", "--python", str(programs / "python"), "install", "--quiet", "--no-compile"),
        *("--disable-pip-version-check", "--no-deps", *requirements),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        pytest.skip(f"pip did not install {' '.join(requirements)} within {PATIENCE_S} s")
    if done.returncode != 0:
        pytest.skip(f"pip cannot install {' '.join(requirements)} here: {done.stderr.strip().splitlines()[-1]}")
    return programs
