"""What the evaluation needs of a strategy: how it asks, how it is told, when it stops and what it then believes."""

from collections.abc import Callable, Sequence
from typing import Protocol

from colltune.core.sample import Sample
from colltune.core.space import Model, Point, Space


class Strategy(Protocol):
    """Every learner is one. Laws as for learners: nothing is asked for twice, equal seeds give equal answers."""

    def ask(self, count: int) -> list[Point]: ...

    def tell(self, samples: Sequence[Sample]) -> None: ...

    def should_stop(self) -> str | None: ...

    def model(self) -> Model:
        """Raises ValueError before the first sample with a time."""
        ...


# A new strategy for a space, with a seed.
MakeStrategy = Callable[[Space, int], Strategy]
