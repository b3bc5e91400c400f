"""MPICH: two selection files around the trees of the user's own library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from colltune.bench.backends.contract import Backend
from colltune.catalog import Catalogue, load
from colltune.core.errors import InputError
from colltune.core.inner_calls import InnerCall
from colltune.core.rules import RuleSet
from colltune.core.sample import Choice, Environment, Scenario
from colltune.emit.mpich.below import agreeing, inner_calls, written_by_file
from colltune.emit.mpich.defaults import DefaultTrees, cut_default_trees
from colltune.emit.mpich.outcome import describe_outcome, equivalent_of_default, trees_of
from colltune.emit.mpich.selection_file import MpichEmitter
from colltune.emit.mpich.tree import Call
from colltune.machine.files import LARGEST_BYTES, read_file


class MpichBackend(Backend):
    """``defaults``: the library's own trees, or why they are not known."""

    def __init__(self, version: str, defaults: DefaultTrees | InputError) -> None:
        self.catalogue: Catalogue = load("mpich", version)
        self._defaults = defaults

    @classmethod
    def from_library(cls, libmpi: Path, version: str) -> MpichBackend:
        return cls(version, cut_default_trees(libmpi))

    @classmethod
    def recalled(cls, tuned: Environment) -> MpichBackend:
        """For a tuning whose library may be gone."""
        try:
            return cls(tuned.mpi_version, cut_default_trees(_library(tuned)))
        except InputError as error:
            return cls(tuned.mpi_version, error)

    @property
    def emitter(self) -> MpichEmitter:
        return MpichEmitter(self.catalogue, self._trees())

    def _trees(self) -> DefaultTrees:
        if isinstance(self._defaults, InputError):
            raise self._defaults
        return self._defaults

    def clean(self, environ: Mapping[str, str]) -> dict[str, str]:
        return {name: value for name, value in environ.items() if not name.endswith("_TUNING_JSON_FILE")}

    def expressible(self, rule_set: RuleSet, shapes: Sequence[tuple[int, int]]) -> RuleSet:  # noqa: ARG002
        """MPICH's trees ask for ppn, ranks and size; below a composition rules have to agree."""
        return agreeing(self.catalogue, written_by_file(self.catalogue, rule_set))

    def inner_calls(self, collective: str, choice: Choice) -> Sequence[InnerCall]:
        """The calls below a composition, which others make too."""
        return inner_calls(self.catalogue, collective, choice)

    def default_equivalent(self, scenario: Scenario, thread_level: str) -> Choice | None:
        return equivalent_of_default(self._trees(), Call.of(scenario, thread_level), self.catalogue)

    def describe(self, files: Mapping[str, bytes], scenario: Scenario, thread_level: str) -> str:
        own = None if isinstance(self._defaults, InputError) else self._defaults.posix
        return describe_outcome(trees_of(files, own), Call.of(scenario, thread_level), self.catalogue)

    def describe_default(self, scenario: Scenario, thread_level: str) -> str:
        try:
            return describe_outcome(self._trees(), Call.of(scenario, thread_level), self.catalogue)
        except InputError as error:
            return f"unknown: {error.what}"


def _library(environment: Environment) -> Path:
    """The libmpi that was tuned. Raises InputError where it is not here any more, or is another one now."""
    beside = Path(environment.mpiexec).parent.parent / "lib"
    named = [Path(environment.libmpi)] if environment.libmpi else [beside / "libmpi.so.12", beside / "libmpi.so"]
    for path in named:
        if path.is_file():
            if sha256(read_file(path, LARGEST_BYTES, link=True)).hexdigest() != environment.mpi_build:
                raise InputError(f"{path} is not the build that was tuned", "Tune this one")
            return path
    raise InputError(f"the library that was tuned is not at {named[0]}", "Ask on the machine that was tuned")
