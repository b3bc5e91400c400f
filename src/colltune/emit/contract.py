"""The interface of an emitter: rules to files of a library."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from colltune.core.rules import RuleSet
from colltune.machine.described_mpi import VARIABLES_FILE, parse_variables


class Emitter(Protocol):
    """Writes decisions in the format of one library version.

    Laws (tested on every implementation by ``tests/emitter_laws.py``): equal rule sets give
    equal bytes; the files decide every scenario as the rule sets do, at each bound and one beside it; a
    collective without a rule set keeps the library's own decisions.
    """

    @property
    def name(self) -> str:
        """The library's name, such as "mpich"."""
        ...

    def emit(self, rule_sets: Sequence[RuleSet]) -> dict[str, bytes]:
        """File names and contents. Raises InputError for a choice that the library version does not have."""
        ...

    def environment(self, directory: Path) -> dict[str, str]:
        """The variables that make the library read its files from ``directory``, for every file that it may hold."""
        ...


def variables_for(emitter: Emitter, directory: Path, files: Mapping[str, bytes]) -> dict[str, str]:
    """The environment variables that make the library read ``files``, as of ``emit``, from ``directory``.

    Those that ``files`` themselves have, where the library reads none.
    """
    if VARIABLES_FILE in files:
        return parse_variables(files[VARIABLES_FILE])
    named = emitter.environment(directory)
    return {
        variable: value
        for variable, value in named.items()
        if Path(value).parent != directory or Path(value).name in files
    }
