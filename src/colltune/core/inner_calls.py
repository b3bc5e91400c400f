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
    nodes, ppn, size = scenario.nodes, scenario.ppn, scenario.size_bytes
    calls = inner(scenario.collective, choice) if ppn > 1 else ()
    return {
        SharedCall(call.where, call.collective, nodes if call.across else ppn, size): call.choice
        for call in calls
        if nodes > 1 or not call.across
    }
