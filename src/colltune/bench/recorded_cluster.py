"""A machine that exists only as tables of recorded times: what a tuning would have done there, without an MPI."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

from colltune.bench.contract import Event, WithoutMpi, unheard
from colltune.bench.replay import Effects, ReplaySource, TimeDrift
from colltune.catalog import Algorithm, Catalogue, CollectiveEntry, Kind
from colltune.core.errors import InputError
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, SizeBasis
from colltune.core.space import Point, Space
from colltune.core.topology import Topology
from colltune.measure.answers import Answered
from colltune.measure.contract import Effort
from colltune.schedule.topology_files import load_topology
from colltune.store.grid import Grid
from colltune.store.tuning import Tuning

_NONE = Algorithm("none", Kind.COMPOSITION, "", candidate=False, why_not="the table has no compositions")


@dataclass(frozen=True)
class RecordedBench(WithoutMpi):
    """A Bench over ``grids``, one for each collective; all its time is on the clock of its launches.

    A launch takes ``launch_s`` to start. In each one, a choice at a scenario is slower or faster throughout by a
    lognormal factor of its own, with the standard deviation ``launch_sd`` of its logarithm, and all times follow
    ``drift`` and ``effects``. Scenarios of which the library's default was not recorded cannot be tuned. ``machine``:
    its name; else the names of its tables. Raises InputError where nothing can be tuned.
    """

    start_text: ClassVar[str] = "replaying recorded times"
    launch_type: ClassVar[type["RecordedLaunch"]]
    grids: Sequence[Grid]
    launch_s: float = 5.0
    launch_sd: float = 0.0
    drift: TimeDrift = field(default_factory=TimeDrift)
    machine: str = ""
    effects: Effects | None = None
    _launches: list[ReplaySource] = field(default_factory=list)

    def __post_init__(self) -> None:
        names = [grid.collective for grid in self.grids]
        if len(set(names)) < len(names):
            raise InputError(f"two tables of {max(names, key=names.count)}", "Give one table for each collective")
        if not any(self._tunable(grid) for grid in self._tables.values()):
            raise InputError("the tables do not hold the library's default", "Give tables that do")

    @cached_property
    def _tables(self) -> dict[str, Grid]:
        return {grid.collective: grid.with_default() for grid in self.grids}

    @cached_property
    def environment(self) -> Environment:
        name = self.machine or " ".join(sorted(grid.name for grid in self.grids))
        nodes, ppn = (max(getattr(grid.environment, of) for grid in self.grids) for of in ("nodes", "ppn"))
        return replace(self.grids[0].environment, machine=name, nodes=nodes, ppn=ppn)

    @property
    def nodes(self) -> int:
        return self.environment.nodes

    @property
    def ppn(self) -> int:
        return self.environment.ppn

    @cached_property
    def catalogue(self) -> Catalogue:
        """Of the collectives, whose rules go by the size of the message. Which choices there are, ``legal`` says."""
        entries = {name: CollectiveEntry(name, SizeBasis.MESSAGE, (), _NONE) for name in self._tables}
        return Catalogue("recorded", "1", None, "", entries, {})

    @property
    def headline(self) -> str:
        return f"recorded times: {self.environment.machine}"

    def legal(self, scenario: Scenario) -> tuple[Choice, ...]:
        return self._tables[scenario.collective].space.choices(scenario)

    def baseline(self, scenario: Scenario) -> Choice:  # noqa: ARG002
        return DEFAULT

    def space(self, collective: str, smallest: int, largest: int) -> Space:
        """The recorded scenarios between two sizes in bytes of which the default is known."""
        fitting = [s for s in self._tunable(self._tables[collective]) if smallest <= s.size_bytes <= largest]
        return Space(collective, tuple(fitting), self.legal)

    def _tunable(self, grid: Grid) -> list[Scenario]:
        return [scenario for scenario in grid.scenarios if DEFAULT in grid.space.choices(scenario)]

    def topology(self, named: str | None, note: Callable[[str], None]) -> Topology:
        del note
        hosts = [f"n{number}" for number in range(self.nodes)]
        return Topology.serial(hosts) if named is None else load_topology(named, hosts)

    def now_s(self) -> float:
        """Seconds since the first launch was asked for: launches and measurements."""
        return sum(launch.now_s for launch in self._launches)

    def launch(self, seed: int, *, on_event: Event = unheard) -> ReplaySource:
        """The next launch, numbered from 0."""
        number = len(self._launches)
        launch = self.launch_type(
            [*self._tables.values()],
            self.environment,
            seed,
            None,
            number,
            self.launch_sd,
            self.launch_s,
            self.now_s,
            self.drift,
            self.effects,
        )
        on_event("launch", {"number": number})
        self._launches.append(launch)
        return launch

    def tuning(self, rule_sets: Mapping[str, RuleSet]) -> Tuning:
        """``rule_sets`` alone: no file, for nothing would load it."""
        return Tuning(self.environment, rule_sets, {}, {})


class RecordedLaunch(ReplaySource):
    """One that is as patient as the agent."""

    def _measured(self, point: Point, effort: Effort) -> list[Sample]:
        times_s = (self._time_s(point.scenario, choice) for choice in point.choices)
        self._best_s = min((time_s for time_s in times_s if time_s is not None), default=math.inf)
        return super()._measured(point, effort)

    def _answer(self, scenario: Scenario, choice: Choice, repetitions: int, effort: Effort) -> Answered:
        if (time_s := self._time_s(scenario, choice)) is not None:
            patience = effort.limited(repetitions).patience(time_s, self._best_s)
            repetitions = min(repetitions or self._cost.repetitions, patience)
        return super()._answer(scenario, choice, repetitions, effort)

    def _time_s(self, scenario: Scenario, choice: Choice) -> float | None:
        try:
            return self._grids[scenario.collective].time(scenario, choice)
        except KeyError:
            return None


RecordedBench.launch_type = RecordedLaunch
