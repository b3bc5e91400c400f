"""Every learner keeps the laws of its contract."""

from colltune.core.space import Space
from colltune.learn.contract import Learner
from colltune.learn.decision import DecisionLearner
from colltune_study.research.learners.fact import FactLearner
from colltune_study.research.learners.published import AcclaimLearner, PublishedSettings, RandomLearner
from colltune_study.research.learners.scaling import Scaling
from colltune_study.research.learners.tuned_parameters import TunedFactLearner
from colltune_study.testing import LearnerContract


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
        return TunedFactLearner(space, seed, PublishedSettings(trees=3), trials=3)


class TestAcclaimLearner(LearnerContract):
    def make(self, space: Space, seed: int) -> Learner:
        return AcclaimLearner(space, seed, PublishedSettings(trees=5))
