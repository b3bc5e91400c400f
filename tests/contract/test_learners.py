"""Every learner, packer and source of samples keeps the laws of its contract."""

from pathlib import Path

import numpy as np
import pytest

from colltune.bench.replay import ReplaySource
from colltune.core.sample import DEFAULT, Environment, Status
from colltune.core.space import Point, Space
from colltune.core.topology import Topology
from colltune.learn.contract import Learner
from colltune.learn.decision import DecisionLearner
from colltune.measure.contract import Source
from colltune.schedule.filling import FillingPacker
from colltune.store.grid import Grid
from colltune_study.research.learners.acclaim import AcclaimLearner
from colltune_study.research.learners.fact import FactLearner
from colltune_study.research.learners.published import PublishedSettings, RandomLearner
from colltune_study.research.learners.scaling import Scaling
from colltune_study.research.learners.tuned_parameters import TunedFactLearner
from colltune_study.simulated.drawn import Noise, SimulatedSource
from colltune_study.testing import HALVING, RING, TREE, LearnerContract, small_space, true_time_s
from launched_cluster import Cluster
from packer_laws import PackerContract
from packing import GreedyBatchPacker
from source_laws import SourceContract


class TestDecisionLearner(LearnerContract):
    def make(self, space: Space, seed: int) -> Learner:
        return DecisionLearner(space, seed)


class TestRandomLearner(LearnerContract):
    def make(self, space: Space, seed: int) -> Learner:
        return RandomLearner(space, seed, PublishedSettings(trees=5, scaling=Scaling.NONE))


class TestFactLearner(LearnerContract):
    def make(self, space: Space, seed: int) -> Learner:
        return FactLearner(space, seed, PublishedSettings(trees=3))


class TestTunedFactLearner(LearnerContract):
    def make(self, space: Space, seed: int) -> Learner:
        return TunedFactLearner(space, seed, PublishedSettings(trees=2), trials=2)


class TestAcclaimLearner(LearnerContract):
    def make(self, space: Space, seed: int) -> Learner:
        return AcclaimLearner(space, seed, PublishedSettings(trees=5))


class TestGreedyBatchPacker(PackerContract):
    def make(self, topology: Topology) -> GreedyBatchPacker:
        return GreedyBatchPacker(topology)


class TestFillingPacker(PackerContract):
    def make(self, topology: Topology) -> FillingPacker:
        return FillingPacker(topology)


class TestDrawnParts(PackerContract):
    def make(self, topology: Topology) -> FillingPacker:
        return FillingPacker(topology, seed=3)


ENVIRONMENT = Environment("mpich", "5.0.2", "0" * 64, "simulated", 3, 4, "single")


class OnTheSmallSpace(SourceContract):
    def points(self) -> list[Point]:
        return [Point(scenario, (DEFAULT, TREE, RING, HALVING)) for scenario in small_space().scenarios[:4]]


class TestSimulatedSource(OnTheSmallSpace):
    def make(self) -> Source:
        return SimulatedSource(
            ENVIRONMENT, lambda s, c: Status.WRONG if c == HALVING else true_time_s(s, c), seed=1, noise=Noise()
        )


class TestReplaySource(OnTheSmallSpace):
    """Halving was not recorded."""

    def make(self) -> Source:
        scenarios, choices = small_space().scenarios, (DEFAULT, TREE, RING)
        times_s = np.array([[true_time_s(scenario, choice) for choice in choices] for scenario in scenarios])
        grid = Grid("small/bcast", "bcast", scenarios, choices, times_s, times_s[:, 0])
        return ReplaySource([grid], ENVIRONMENT, seed=1, launch=2, launch_sd=0.05)


class TestLaunchedSource(OnTheSmallSpace):
    ahead = 10_000

    def make(self) -> Source:
        return Cluster(ends=lambda _scenario, _choice: False).source()


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
