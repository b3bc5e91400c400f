"""The calls that a choice makes below itself, and that choices of other scenarios make too."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from colltune.core.sample import Choice, Scenario


class InnerCall(NamedTuple):
    """A call of ``collective`` with the size of the outer one, which runs ``choice``; ``where``: a word for its kind.

    ``across``: one rank of each node makes it, where there are several nodes; else all ranks of a node, where there are
    several.
    """

    where: str
    collective: str
    across: bool
    choice: Choice

    def ranks_in(self, scenario: Scenario) -> int:
        """How many ranks make it; 0 where nobody does."""
        if scenario.ppn < 2 or (self.across and scenario.nodes < 2):
            return 0
        return scenario.nodes if self.across else scenario.ppn


class SharedCall(NamedTuple):
    """An inner call by all that a file can compare: what runs there is the same below every rule."""

    where: str
    collective: str
    ranks: int
    size_bytes: int


# The inner calls of a choice of a collective, the same in every scenario. Most choices make none.
Inner = Callable[[str, Choice], Sequence[InnerCall]]


def shared_calls(inner: Inner, scenario: Scenario, choice: Choice) -> dict[SharedCall, Choice]:
    """What runs in each inner call of ``choice`` in ``scenario``: scenarios with one in common have to agree on it."""
    return {
        SharedCall(call.where, call.collective, ranks, scenario.size_bytes): call.choice
        for call in inner(scenario.collective, choice)
        if (ranks := call.ranks_in(scenario))
    }
