"""Every learner keeps the laws of its contract."""

from __future__ import annotations

from colltune.core.space import Space
from colltune.learn.contract import Learner
from colltune.learn.decision import DecisionLearner
from colltune.learn.forest import ForestLearner
from colltune.learn.published import AcclaimLearner, FactLearner, PublishedSettings, RandomLearner
from colltune.learn.scaling import Scaling
from colltune.testing.learner import LearnerContract


class TestForestLearner(LearnerContract):
    def make(self, space: Space, seed: int) -> Learner:
        return ForestLearner(space, seed)


class TestDecisionLearner(LearnerContract):
    def make(self, space: Space, seed: int) -> Learner:
        return DecisionLearner(space, seed)


class TestRandomLearner(LearnerContract):
    def make(self, space: Space, seed: int) -> Learner:
        return RandomLearner(space, seed, PublishedSettings(trees=5, scaling=Scaling.NONE))


class TestFactLearner(LearnerContract):
    def make(self, space: Space, seed: int) -> Learner:
        return FactLearner(space, seed, PublishedSettings(trees=3))


class TestAcclaimLearner(LearnerContract):
    def make(self, space: Space, seed: int) -> Learner:
        return AcclaimLearner(space, seed, PublishedSettings(trees=5))
