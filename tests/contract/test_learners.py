"""Every learner keeps the laws of its contract."""

from __future__ import annotations

from colltune.core.space import Space
from colltune.learn.contract import Learner
from colltune.learn.decision import DecisionLearner
from colltune.learn.forest import ForestLearner
from colltune.testing.learner import LearnerContract


class TestForestLearner(LearnerContract):
    def make(self, space: Space, seed: int) -> Learner:
        return ForestLearner(space, seed)


class TestDecisionLearner(LearnerContract):
    def make(self, space: Space, seed: int) -> Learner:
        return DecisionLearner(space, seed)
