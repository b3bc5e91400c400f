"""The laws of emitters on the rules of simulated clusters, and the catalogue that they are made of."""

from pathlib import Path

import pytest

from colltune.bench.backends import recall_backend
from colltune.catalog.simulated_catalogue import load_simulated
from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import InputError
from colltune.core.rules import RuleSet
from colltune.core.sample import Environment
from colltune.core.scenario import Scenario, SizeBasis
from colltune.emit.simulated_rules import FILE, SimulatedEmitter
from emitter_laws import EmitterContract


class TestSimulatedEmitter(EmitterContract):
    def emitter(self) -> SimulatedEmitter:
        return SimulatedEmitter()

    def collectives(self) -> dict[str, tuple[SizeBasis, tuple[Choice, ...]]]:
        catalogue = load_simulated()
        return {name: (entry.basis, catalogue.choices(name)) for name, entry in catalogue.entries.items()}

    def expressible(self, rule_set: RuleSet) -> RuleSet:
        return rule_set

    def test_the_environment_names_every_file(self) -> None:
        """There is no library to be told of them."""
        assert self.emitter().environment(Path("/opt/tuned")) == {}


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"collectives": {"bcast": {"basis": "weight", "rules": []}}}'])
def test_what_is_no_such_file_is_said(text: bytes) -> None:
    with pytest.raises(InputError, match="not the rules of a simulated cluster"):
        SimulatedEmitter().parse({FILE: text}, "bcast")


@pytest.mark.parametrize("collective", load_simulated().entries)
def test_the_default_is_a_candidate_wherever_it_stands_in(collective: str) -> None:
    catalogue = load_simulated()
    for nodes, ppn in ((2, 1), (3, 1), (8, 4), (6, 3), (64, 1), (1024, 1)):
        for power in range(2, 21):
            scenario = Scenario(collective, nodes, ppn, 0 if collective == "barrier" else 1 << power)
            assert catalogue.default(scenario) in catalogue.legal(scenario), scenario


def test_what_runs_is_said_for_a_tuning_of_long_ago() -> None:
    backend = recall_backend(Environment("simulated", "1", "", "dragonfly:8x4", 8, 4, "single"))
    scenario = Scenario("bcast", 8, 4, 1024)
    rules = RuleSet.always("bcast", SizeBasis.MESSAGE, Choice("chain", (("segment", 8192),)))
    assert backend.describe(backend.emitter.emit([rules]), scenario, "single") == "chain(segment=8192)"
    assert backend.describe_default(scenario, "single") == "knomial(k=2)"
    assert backend.twin(scenario, "single") != DEFAULT
    assert backend.obstacles({})
