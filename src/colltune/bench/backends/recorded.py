"""Recorded times: no MPI, and a library's own choice that nobody wrote down; its time was."""

from collections.abc import Mapping

from colltune.catalog import Catalogue
from colltune.core.sample import Choice, Scenario


class RecordedBackend:
    """What `explain` and the like ask; nothing can be run with it."""

    catalogue = Catalogue("recorded", "1", None, "", {}, {})

    def twin(self, scenario: Scenario, thread_level: str) -> Choice | None:
        del scenario, thread_level
        return None

    def describe(self, files: Mapping[str, bytes], scenario: Scenario, thread_level: str) -> str:
        del files
        return self.describe_default(scenario, thread_level)

    def describe_default(self, scenario: Scenario, thread_level: str) -> str:
        del scenario, thread_level
        return "the library's own, as recorded"
