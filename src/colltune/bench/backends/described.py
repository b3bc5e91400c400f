"""An MPI that its user describes, which takes algorithms from variables when a job starts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from colltune.bench.backends.contract import Backend
from colltune.catalog import Catalogue, load
from colltune.core.errors import InputError
from colltune.core.rules import RuleSet
from colltune.core.sample import Scenario
from colltune.emit.described import DescribedEmitter
from colltune.machine.described_file import described_mpi
from colltune.machine.described_mpi import LIBRARY, VARIABLE, VARIABLES_FILE, Description, parse_variables


@dataclass
class DescribedBackend(Backend):
    steered: ClassVar[bool] = False
    catalogue: Catalogue
    description: Description

    @classmethod
    def of(cls, version: str) -> "DescribedBackend":
        """Raises InputError where COLLTUNE_MPI does not describe the MPI of ``version``."""
        if (description := described_mpi()) is None:
            raise InputError("this MPI is known by its description alone", f"Set {VARIABLE} to the file that has it")
        return cls(load(LIBRARY, version), description)

    @property
    def emitter(self) -> DescribedEmitter:
        return DescribedEmitter(self.description)

    def clean(self, environ: Mapping[str, str]) -> dict[str, str]:
        own = {form.variable for form in self.description.forms.values()}
        return {name: value for name, value in environ.items() if name not in own}

    def expressible(self, rule_set: RuleSet, shapes: Sequence[tuple[int, int]]) -> RuleSet:
        return self.emitter.expressible(rule_set, shapes)

    def tells_ranks(self, collective: str) -> bool:
        return self.description.forms[collective].tells_ranks

    def describe(self, files: Mapping[str, bytes], scenario: Scenario, thread_level: str) -> str:  # noqa: ARG002
        variables = parse_variables(files.get(VARIABLES_FILE, b""))
        name = self.description.forms[scenario.collective].variable
        return f"{name}={variables[name]}" if name in variables else f"{self.description.title}'s own decision"

    def describe_default(self, scenario: Scenario, thread_level: str) -> str:
        return self.describe({}, scenario, thread_level)
