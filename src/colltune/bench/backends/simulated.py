"""A simulated cluster: no MPI, and algorithms of our own."""

from collections.abc import Callable, Hashable, Mapping, Sequence

from colltune.catalog import Catalogue
from colltune.catalog.simulated_catalogue import SimulatedCatalogue, load_simulated
from colltune.core.choice import Choice
from colltune.core.rules import RuleSet
from colltune.core.scenario import Scenario
from colltune.emit.contract import Emitter
from colltune.emit.simulated_rules import SimulatedEmitter


class SimulatedBackend:
    """What `explain` and the like ask; nothing can be run with it."""

    def __init__(self) -> None:
        self._catalogue: SimulatedCatalogue = load_simulated()
        self.emitter: Emitter = SimulatedEmitter()

    @property
    def catalogue(self) -> Catalogue:
        return self._catalogue

    def clean(self, environ: Mapping[str, str]) -> dict[str, str]:
        return dict(environ)

    @property
    def agent_variables(self) -> Mapping[str, str]:
        return {}

    def expressible(self, rule_set: RuleSet, shapes: Sequence[tuple[int, int]]) -> RuleSet:
        del shapes
        return rule_set

    def twin(self, scenario: Scenario, thread_level: str) -> Choice | None:
        del thread_level
        return self._catalogue.default(scenario)

    def shared(self, scenario: Scenario, choice: Choice) -> Mapping[Hashable, Choice]:  # noqa: ARG002
        """Nothing."""
        return {}

    def describe(self, files: Mapping[str, bytes], scenario: Scenario, thread_level: str) -> str:
        del thread_level
        choice = self.emitter.parse(files, scenario.collective).evaluate(scenario)
        return str(self._catalogue.resolve(scenario, choice))

    def describe_default(self, scenario: Scenario, thread_level: str) -> str:
        del thread_level
        return str(self._catalogue.default(scenario))

    def takers(self, said_under: Callable[[Mapping[str, str]], str]) -> tuple[list[str], list[str]]:
        del said_under
        return [], []

    def obstacles(self, environ: Mapping[str, str]) -> list[str]:
        del environ
        return ["this was tuned on a simulated cluster, and no MPI reads its rules"]


class RecordedBackend(SimulatedBackend):
    """The same of recorded times, whose library's own choice nobody wrote down: its time was."""

    def twin(self, scenario: Scenario, thread_level: str) -> Choice | None:  # noqa: ARG002
        return None

    def describe_default(self, scenario: Scenario, thread_level: str) -> str:  # noqa: ARG002
        return "the library's own, as recorded"

    def obstacles(self, environ: Mapping[str, str]) -> list[str]:  # noqa: ARG002
        return ["this was tuned on recorded times, and no MPI reads its rules"]
