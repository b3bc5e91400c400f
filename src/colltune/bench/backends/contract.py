"""What the workbench asks of a library; and of recorded times, which have no MPI: a default that nobody wrote down."""

import abc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

from colltune.catalog import Catalogue
from colltune.core.inner_calls import InnerCall
from colltune.core.rules import RuleSet
from colltune.core.sample import Choice, Scenario
from colltune.emit.contract import Emitter


class Recalled(abc.ABC):
    """What a tuning of one MPI library at one version means; the library need not be here."""

    catalogue: Catalogue

    def default_equivalent(self, scenario: Scenario, thread_level: str) -> Choice | None:  # noqa: ARG002
        """The candidate that is the same as the default, None where no candidate is known to be."""
        return None

    @abc.abstractmethod
    def describe(self, files: Mapping[str, bytes], scenario: Scenario, thread_level: str) -> str:
        """What runs in ``scenario`` with the selection files ``files`` (by name), in the library's own words."""

    @abc.abstractmethod
    def describe_default(self, scenario: Scenario, thread_level: str) -> str:
        """What runs without them."""


class Backend(Recalled):
    """One MPI library at one version. What is written out here holds unless its own back end says otherwise.

    ``steered``: whether algorithms can be chosen while a job runs. Where not, they are measured by launches.
    """

    steered: ClassVar[bool] = True

    def in_job(self, output_under: Callable[[Mapping[str, str]], str], place: Path) -> Self:  # noqa: ARG002
        """The same with what only launches of the job say (``components``); files of these go into ``place``."""
        return self

    @property
    @abc.abstractmethod
    def emitter(self) -> Emitter: ...

    @abc.abstractmethod
    def clean(self, environ: Mapping[str, str]) -> dict[str, str]:
        """``environ`` without what would be measured in the place of the library's own choice."""

    @property
    def agent_variables(self) -> Mapping[str, str]:
        """Of the environment: what the agent needs to choose algorithms; alone it changes no choice of the library."""
        return {}

    @abc.abstractmethod
    def expressible(self, rule_set: RuleSet, shapes: Sequence[tuple[int, int]]) -> RuleSet:
        """What the library's file can say of ``rule_set``; where it cannot, the default.

        ``shapes``: the (nodes, ppn) that were looked at.
        """

    def inner_calls(self, collective: str, choice: Choice) -> Sequence[InnerCall]:  # noqa: ARG002
        """The calls below ``choice``, which the library's file cannot decide for it alone."""
        return ()

    def tells_ranks(self, collective: str) -> bool:  # noqa: ARG002
        """Of a library that is measured by launches: whether its rules tell numbers of ranks apart."""
        return True

    def components(self, output_under: Callable[[Mapping[str, str]], str]) -> tuple[list[str], list[str]]:  # noqa: ARG002
        """Which part of the library takes which collective, a line each, and what keeps a file from deciding.

        ``output_under``: what a launch on the whole job writes under some variables. Both are empty where there is but
        one way for a call.
        """
        return [], []


class RecordedBackend(Recalled):
    """What `explain` and the like ask; nothing can be run with it."""

    catalogue = Catalogue("recorded", "1", None, "", {}, {})

    def describe(self, files: Mapping[str, bytes], scenario: Scenario, thread_level: str) -> str:
        del files
        return self.describe_default(scenario, thread_level)

    def describe_default(self, scenario: Scenario, thread_level: str) -> str:
        del scenario, thread_level
        return "the library's own, as recorded"
