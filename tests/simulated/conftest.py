"""One cache for all simulated tests: the program is compiled once."""

import os
import shutil
from collections.abc import Iterator

import pytest

from colltune_study.simulated.simulated_cluster import Simulation, open_simulation


@pytest.fixture(scope="session", name="simulated_environ")
def _simulated_environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which SimGrid is found, with a cache of its own."""
    if shutil.which("smpirun") is None or shutil.which("smpicxx") is None:
        pytest.skip("SimGrid's SMPI is not installed (apt-get install libsimgrid-dev)")
    return {**os.environ, "COLLTUNE_CACHE": str(tmp_path_factory.mktemp("simulated"))}


@pytest.fixture(scope="session", name="simulation")
def _simulation(simulated_environ: dict[str, str]) -> Iterator[Simulation]:
    opened = open_simulation("dragonfly:6x3", simulated_environ)
    yield opened
    opened.close()
