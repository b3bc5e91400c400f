"""Intel MPI: a table around the one that the library has for the job, read when a job starts and not after."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from colltune.bench.backends.contract import Backend
from colltune.catalog import Catalogue, load
from colltune.core.decision_table import DecisionTable
from colltune.core.errors import InputError, on_os_error
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Scenario
from colltune.emit.intelmpi import DUMP, IntelMpiEmitter, Presets, asked
from colltune.machine.compile import scratch_directory
from colltune.machine.files import read_file

_OWN = "Intel MPI's own decision"
_ADJUST, _TUNING = "I_MPI_ADJUST_", "I_MPI_TUNING"


@dataclass
class IntelMpiBackend(Backend):
    """``presets``: what the library of a job says; None outside of one."""

    steered: ClassVar[bool] = False
    catalogue: Catalogue
    presets: Presets | None = None

    @classmethod
    def of(cls, version: str) -> "IntelMpiBackend":
        return cls(load("intelmpi", version))

    def in_job(self, output_under: Callable[[Mapping[str, str]], str], place: Path) -> "IntelMpiBackend":
        """Two launches: the library writes the table that it uses in this job, and what its presets stand for."""
        variables, bounds = asked(self.catalogue)
        made = scratch_directory(place, "tables")
        own, named = made / "own", made / "named"
        try:
            output_under({DUMP: str(own)})
            output_under({DUMP: str(named), **variables})
            with on_os_error("Intel MPI did not write the table that it uses", "Use Intel MPI 2021 or later"):
                return IntelMpiBackend(self.catalogue, Presets.of(read_file(own), read_file(named), bounds))
        finally:
            shutil.rmtree(made, ignore_errors=True)

    @property
    def emitter(self) -> IntelMpiEmitter:
        if self.presets is None:
            raise InputError("what Intel MPI runs by itself is known in a job alone", "Ask where it was tuned")
        return IntelMpiEmitter(self.catalogue, self.presets)

    def clean(self, environ: Mapping[str, str]) -> dict[str, str]:
        return {name: value for name, value in environ.items() if not name.startswith((_ADJUST, _TUNING))}

    def expressible(self, rule_set: RuleSet, shapes: Sequence[tuple[int, int]]) -> RuleSet:  # noqa: ARG002
        """A table asks for ppn, ranks and size; what the library does not know keeps the default."""
        name, emitter = rule_set.collective, self.emitter
        known = DecisionTable.of(rule_set).map(lambda c: c if c == DEFAULT or emitter.has(name, c) else DEFAULT)
        return known.rule_set()

    def default_equivalent(self, scenario: Scenario, thread_level: str) -> Choice | None:  # noqa: ARG002
        if self.presets is None or scenario.collective not in self.presets.numbers:
            return None
        emitter, entry = self.emitter, self.catalogue.collective(scenario.collective)
        by_ranks = emitter.own(scenario.collective).at(scenario.ppn)
        return emitter.choice_of(scenario.collective, by_ranks.at(scenario.ranks).at(scenario.basis_bytes(entry.basis)))

    def describe(self, files: Mapping[str, bytes], scenario: Scenario, thread_level: str) -> str:
        if self.presets is None:
            return "as the table of the tuning says"
        choice = self.emitter.parse(files, scenario.collective).evaluate(scenario)
        if choice == DEFAULT:
            return self.describe_default(scenario, thread_level)
        return f"preset {self.catalogue.algorithm(scenario.collective, choice).number}: {choice}"

    def describe_default(self, scenario: Scenario, thread_level: str) -> str:
        same = self.default_equivalent(scenario, thread_level)
        return _OWN if same is None else f"{_OWN}, {same}"


def find_obstacles(environ: Mapping[str, str], command: Sequence[str] = ()) -> list[str]:  # noqa: ARG001
    """What in ``environ`` the library puts in the place of what a table says; a sentence each."""
    given = sorted(name for name in environ if name.startswith(_ADJUST) or name == f"{_TUNING}_MODE")
    return [f"{name} is set, which Intel MPI puts in the place of what its table says: unset it" for name in given]
