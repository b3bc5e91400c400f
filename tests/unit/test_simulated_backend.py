"""The catalogue of simulated clusters, and what is said of a tuning of one."""

import pytest

from colltune.bench.backends import recall_backend
from colltune.core import extras
from colltune.core.choice import DEFAULT
from colltune.core.errors import InputError
from colltune.core.sample import Environment
from colltune.core.scenario import Scenario
from colltune_study.simulated.simulated_catalogue import load_simulated

ENVIRONMENT = Environment("simulated", "1", "", "dragonfly:8x4", 8, 4, "single")


@pytest.mark.parametrize("collective", load_simulated().entries)
def test_the_default_is_a_candidate_wherever_it_stands_in(collective: str) -> None:
    catalogue = load_simulated()
    for nodes, ppn in ((2, 1), (3, 1), (8, 4), (6, 3), (64, 1), (1024, 1)):
        for power in range(2, 21):
            scenario = Scenario(collective, nodes, ppn, 0 if collective == "barrier" else 1 << power)
            assert catalogue.default(scenario) in catalogue.legal(scenario), scenario


def test_a_tuning_of_long_ago_is_explained() -> None:
    backend, scenario = recall_backend(ENVIRONMENT), Scenario("bcast", 8, 4, 1024)
    assert backend.describe_default(scenario, "single") == "knomial(k=2)"
    assert backend.twin(scenario, "single") not in (None, DEFAULT)
    assert "bcast" in backend.catalogue.entries


def test_without_the_study_it_is_said_what_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "_study_version", lambda: "")
    with pytest.raises(InputError, match="colltune-study, which is not installed"):
        recall_backend(ENVIRONMENT)
