"""What tuning asks of the place where it measures: the MPI of a real job, or a cluster that is simulated."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from colltune.catalog import Catalogue
from colltune.core.inner_calls import InnerCall, SharedCall
from colltune.core.rules import RuleSet
from colltune.core.sample import Choice, Environment, Scenario
from colltune.core.space import Space
from colltune.core.topology import Topology
from colltune.measure.contract import Launch
from colltune.measure.request import Settings
from colltune.measure.watch import Watch
from colltune.mpi.installation import Installation
from colltune.store.tuning import Tuning

# Hears of a launch: what happened, and facts about it.
Event = Callable[[str, Mapping[str, object]], None]


def unheard(kind: str, facts: Mapping[str, object]) -> None:
    """An Event for which nobody listens."""
    del kind, facts


class Place(Protocol):
    """A job, or what stands for one, and its clock.

    Whatever takes time is on its clock: launches, measurements, and what we compute meanwhile.
    """

    @property
    def environment(self) -> Environment: ...

    @property
    def nodes(self) -> int: ...

    @property
    def ppn(self) -> int: ...

    @property
    def watch(self) -> Watch | None:
        """What judges whether other programs disturb the measurements; None where there are none."""
        ...

    def now_s(self) -> float:
        """The clock, in seconds from any beginning."""
        ...


class Bench(Place, Protocol):
    """A place to measure the collectives of a catalogue."""

    @property
    def catalogue(self) -> Catalogue: ...

    @property
    def headline(self) -> str:
        """What is measured, in one line for the user."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """What the user should know of it before anything is measured."""
        ...

    @property
    def start_text(self) -> str:
        """What the first launch begins with, for the user."""
        ...

    @property
    def by_launches(self) -> bool:
        """Whether its launches run a single choice of each call."""
        ...

    @property
    def parts_disturb(self) -> bool:
        """Whether measurements on disjoint nodes may disturb one another, so that this is to be checked."""
        ...

    @property
    def library(self) -> LibraryBench | None:
        """This bench with what only a real library can do; None where no library loads the files of a tuning.

        Then there are no files to compare, no conformance to replay and no live selector.
        """
        ...

    def legal(self, scenario: Scenario) -> tuple[Choice, ...]:
        """The choices that may be measured in ``scenario``."""
        ...

    def baseline(self, scenario: Scenario) -> Choice:
        """What a candidate is compared with: the default, in the form of the candidate that is the same, if one is."""
        ...

    def inner_calls(self, collective: str, choice: Choice) -> Sequence[InnerCall]:
        """The calls below ``choice``, in which it has to agree with those of other scenarios."""
        ...

    def space(self, collective: str, smallest: int, largest: int) -> Space:
        """The scenarios that can be formed here, for sizes between two bounds in bytes, and what to measure in each."""
        ...

    def topology(self, named: str | None, note: Callable[[str], None]) -> Topology:
        """Of the nodes: as the user ``named`` it, or as far as it is known. Raises InputError for one that misfits."""
        ...

    def launch(self, seed: int, *, on_event: Event = unheard) -> Launch:
        """A fresh launch of the job."""
        ...

    def expressible(self, rule_set: RuleSet, jobs: Collection[tuple[int, int]] = ()) -> RuleSet:
        """What the files can say of rules that were made from all shapes of this job, and of ``jobs``."""
        ...

    def tuning(self, rule_sets: Mapping[str, RuleSet]) -> Tuning:
        """``rule_sets`` in files, and the variables by which a library reads them, if one does."""
        ...


@dataclass(frozen=True, slots=True)
class Program:
    """How to start one of our C programs on the whole job."""

    argv: Sequence[str]
    environment: Mapping[str, str]


class WithoutMpi:
    """What every Bench has on which no MPI runs: nothing disturbs a measurement, and nothing loads files."""

    warnings: ClassVar[Sequence[str]] = ()
    watch: ClassVar[None] = None
    by_launches: ClassVar[bool] = False
    parts_disturb: ClassVar[bool] = False
    library: ClassVar[LibraryBench | None] = None

    def inner_calls(self, collective: str, choice: Choice) -> Sequence[InnerCall]:  # noqa: ARG002
        """None: every rule says the whole choice."""
        return ()

    def expressible(self, rule_set: RuleSet, jobs: Collection[tuple[int, int]] = ()) -> RuleSet:  # noqa: ARG002
        """All of it: no file of a library has to say it."""
        return rule_set


class LibraryBench(Bench, Protocol):
    """A bench whose MPI library loads the files of a tuning."""

    @property
    def installation(self) -> Installation:
        """The MPI."""
        ...

    def launch(self, seed: int, variables: Mapping[str, str] | None = None, *, on_event: Event = unheard) -> Launch:
        """A fresh launch of the job with ``variables`` set for every rank: by these the library loads files."""
        ...

    def program(self, name: str, arguments: Sequence[str], variables: Mapping[str, str] | None = None) -> Program:
        """The program ``name`` of native/, compiled for this MPI, to run under ``variables``."""
        ...

    def touched_by_default(self, scenario: Scenario) -> Mapping[SharedCall, Choice]:
        """What runs in the inner calls of the library's own choice in ``scenario``."""
        ...

    def settings(self, collective: str, choice: Choice) -> Settings | None:
        """The control variables of a choice with their integers; None where this library does not know them."""
        ...
