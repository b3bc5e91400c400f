"""What `explain` and `report` ask of the algorithms of a simulated cluster."""

from collections.abc import Mapping

from colltune.bench.backends.contract import Recalled
from colltune.core.sample import Choice, Scenario
from colltune_study.simulated.simulated_catalogue import SimulatedCatalogue, load_simulated


class SimulatedBackend(Recalled):
    """The default is one of the other choices, and no file decides."""

    def __init__(self) -> None:
        self.catalogue: SimulatedCatalogue = load_simulated()

    def default_equivalent(self, scenario: Scenario, thread_level: str) -> Choice | None:
        del thread_level
        return self.catalogue.default(scenario)

    def describe(self, files: Mapping[str, bytes], scenario: Scenario, thread_level: str) -> str:
        del files
        return self.describe_default(scenario, thread_level)

    def describe_default(self, scenario: Scenario, thread_level: str) -> str:
        del thread_level
        return str(self.catalogue.default(scenario))
