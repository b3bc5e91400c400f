"""Every source of samples keeps the laws of its contract."""

from pathlib import Path

import numpy as np
import pytest

from colltune.core.choice import DEFAULT
from colltune.core.sample import Environment, Status
from colltune.core.space import Point
from colltune.measure.contract import Source
from colltune.measure.replay import ReplaySource
from colltune.store.grid import Grid
from colltune_study.simulated.drawn import Noise, SimulatedSource
from colltune_study.testing import HALVING, RING, TREE, small_space, true_time_s
from source_laws import SourceContract

ENVIRONMENT = Environment("mpich", "5.0.2", "0" * 64, "simulated", 3, 4, "single")


class TestSimulatedSource(SourceContract):
    def make(self) -> Source:
        return SimulatedSource(
            ENVIRONMENT, lambda s, c: Status.WRONG if c == HALVING else true_time_s(s, c), seed=1, noise=Noise()
        )

    def points(self) -> list[Point]:
        return [Point(scenario, (DEFAULT, TREE, RING, HALVING)) for scenario in small_space().scenarios[:4]]


class TestReplaySource(SourceContract):
    def make(self) -> Source:
        return ReplaySource(grid(), ENVIRONMENT, seed=1, launch=2, launch_sd=0.05)

    def points(self) -> list[Point]:
        # Halving was not recorded.
        return [Point(scenario, (DEFAULT, TREE, RING, HALVING)) for scenario in grid().scenarios[:4]]


def grid() -> Grid:
    scenarios, choices = small_space().scenarios, (DEFAULT, TREE, RING)
    times_s = np.array([[true_time_s(scenario, choice) for choice in choices] for scenario in scenarios])
    return Grid("small/bcast", "bcast", scenarios, choices, times_s, times_s[:, 0])


@pytest.mark.mpi
class TestLiveSource(SourceContract):
    @pytest.fixture(autouse=True)
    def _jobs(self, mpi: object, agent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "mpi"))
        from jobs import Jobs

        self.jobs = Jobs(mpi, agent, tmp_path)

    def make(self) -> Source:
        return self.jobs.source(3)

    def points(self) -> list[Point]:
        from jobs import point

        return [
            point("bcast", 3, 64, "default", "binomial", "nb"),
            point("allgather", 3, 64, "default", "recursive_doubling"),
            point("allreduce", 2, 64, "default", "recursive_doubling"),
        ]
