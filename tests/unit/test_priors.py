"""Where a campaign's prior comes from."""

import numpy as np
import pytest

from colltune.core.choice import Choice
from colltune.core.errors import InputError
from colltune.core.sample import Environment, Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import Space
from colltune.predict.priors import SHIPPED, load_prior_sources
from colltune.store.journal import Journal

FAST, SLOW = Choice("binomial"), Choice("ring", (("k", 4),))
SCENARIOS = tuple(Scenario("bcast", nodes, 2, 1 << k) for nodes in (2, 4, 8) for k in range(16))
SPACE = Space("bcast", SCENARIOS, lambda scenario: (FAST, SLOW))


def holds(prior) -> bool:
    """Whether the prior takes FAST for the faster one nearly everywhere."""
    said = prior.predict([(s, c) for s in SCENARIOS for c in (FAST, SLOW)]).log_time.reshape(-1, 2)
    return bool((said[:, 0] < said[:, 1]).mean() > 0.9)


@pytest.fixture
def tuned(tmp_path):
    """A directory with the journal of another machine."""
    environment = Environment("mpich", "5.0.2", "abc", "another machine", 8, 2, "single")
    with Journal.create(tmp_path / "journal.jsonl", environment) as journal:
        for scenario in SCENARIOS:
            journal.append([Sample(scenario, FAST, Status.OK, (1e-6,)), Sample(scenario, SLOW, Status.OK, (3e-6,))])
        journal.append([Sample(SCENARIOS[0], FAST, Status.WRONG)])
    return tmp_path


def test_an_earlier_tuning(tuned):
    for name in (tuned, tuned / "journal.jsonl"):
        assert holds(load_prior_sources([str(name)]).prior(SPACE))


def test_a_table_with_the_names_of_choices(tmp_path):
    rows = ["collective,algorithm,nodes,ppn,msg_bytes,time_us"]
    for s in SCENARIOS:
        for name, time_us in (("binomial", 1.0), ("ring(k=4)", 3.0), ("another", 2.0)):
            rows.append(f'bcast,"{name}",{s.nodes},{s.ppn},{s.size_bytes},{time_us}')
    (tmp_path / "table.csv").write_text("\n".join(rows) + "\n")
    notes = []
    prior = load_prior_sources([str(tmp_path / "table.csv")]).prior(SPACE, notes.append)
    assert holds(prior)
    assert notes == ["bcast: the prior knows 2 of 2 choices"]


def test_nothing_is_known_of_another_collective(tuned):
    other = Space("barrier", (Scenario("barrier", 2, 2, 0),), lambda scenario: (FAST, SLOW))
    notes = []
    assert load_prior_sources([str(tuned)]).prior(other, notes.append) is None
    assert notes == ["barrier: the prior knows nothing of it"]


def test_the_shipped_model_is_a_prior_where_it_was_trained():
    ring, doubling, own = Choice("ring"), Choice("recursive_doubling"), Choice("of_tomorrow")
    scenarios = tuple(Scenario("allreduce", nodes, 1, size) for nodes in (8, 16, 32) for size in (64, 1 << 24))
    space = Space("allreduce", (*scenarios, Scenario("allreduce", 8, 512, 64)), lambda scenario: (ring, doubling, own))
    prior = load_prior_sources([SHIPPED]).prior(space)
    said = prior.predict(list(space.pairs())).log_time.reshape(-1, 3)
    assert np.isnan(said[:, 2]).all()  # nobody measured it, and nobody knows what it sends
    assert np.isnan(said[-1]).all()  # no cluster had so many ranks on a node
    said = said[:-1]
    assert (said[::2, 1] < said[::2, 0]).all()  # few bytes: doubling
    assert (said[1::2, 0] < said[1::2, 1]).all()  # many: a ring
    far = Space("allreduce", (Scenario("allreduce", 8, 512, 64),), lambda scenario: (ring, doubling))
    assert load_prior_sources([SHIPPED]).prior(far) is None


def test_what_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    (tmp_path / "x.npz").write_bytes(b"no model")
    for name in ("missing", "x.csv", "x.npz"):
        with pytest.raises(InputError):
            load_prior_sources([str(tmp_path / name)])
