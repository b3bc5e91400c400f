"""How many messages a choice has in flight, and from how many on other machines did not bear it."""

import numpy as np
import pytest

from colltune.core.choice import Choice
from colltune.core.scenario import Scenario
from colltune.predict.bursts import in_flight, posts_at_once
from colltune.predict.model import TimesModel
from colltune_study.training.learned_times import bearable, learn_times, turn_by_turn
from colltune_study.training.pair_kernel import PRIOR_THETA, amplitudes

AT_ONCE, IN_TURNS = Choice("node_aware_nonblocking"), Choice("node_aware_pairwise")


@pytest.mark.parametrize(
    ("name", "parameters", "expected"),
    [
        ("linear_ompi", (), 64 * 512),
        ("linear_sync_ompi", (), 64),
        ("pairwise_ompi", (), 64),
        ("node_aware_nonblocking", (), 64 * 8),
        ("locality_aware_16_procs_leader_alltoall_nonblocking", (), 64 * 32),
        ("multileader_node_aware_4_procs_leader_alltoall_nonblocking", (), 16 * 8),
        ("hierarchical_nonblocking", (), 8),
        ("hierarchical_nonblocking", (("procs_per_leader", 16),), 4 * 32),
        ("hierarchical_pairwise", (("procs_per_leader", 16),), 4),
    ],
)
def test_messages_in_flight_follow_from_who_sends_to_whom(name, parameters, expected):
    assert in_flight(Scenario("alltoall", 8, 64, 16), Choice(name, parameters)) == expected


def test_a_twin_sends_the_same_messages_one_after_the_other():
    assert turn_by_turn(AT_ONCE) == IN_TURNS
    assert turn_by_turn(IN_TURNS) == IN_TURNS
    assert posts_at_once(AT_ONCE)
    assert not posts_at_once(IN_TURNS)


def machine(breaks_at: int, ppn: int) -> dict:
    """Posting at once takes half the time, and a hundred times as long from ``breaks_at`` messages on."""
    found = {}
    for nodes in (2, 4, 8, 16, 32, 64):
        for size in (4, 64, 1024):
            scenario = Scenario("alltoall", nodes, ppn, size)
            time_s = 1e-5 * nodes * (1.0 + size / 512)
            stalls = in_flight(scenario, AT_ONCE) >= breaks_at
            found[scenario, IN_TURNS] = time_s
            found[scenario, AT_ONCE] = time_s * (100.0 if stalls else 0.5)
    return found


def test_what_every_source_bore_is_borne():
    assert bearable([machine(breaks_at=1000, ppn=32)]) == pytest.approx(32 * 16 * 2**0.5)
    assert bearable([machine(breaks_at=1000, ppn=32), machine(200, 32)]) == pytest.approx(32 * 4 * 2**0.5)
    assert bearable([{(Scenario("alltoall", 2, 1, 4), IN_TURNS): 1e-5}]) == np.inf


def test_more_messages_than_were_borne_are_avoided():
    """More ranks per node send more messages at once, long before as many nodes were measured."""
    learned = learn_times({"a": machine(breaks_at=2000, ppn=32)})

    def best(nodes: int, ppn: int) -> Choice:
        scenario = Scenario("alltoall", nodes, ppn, 64)
        said = learned.predict([(scenario, AT_ONCE), (scenario, IN_TURNS)]).log_time
        return (AT_ONCE, IN_TURNS)[int(said.argmin())]

    assert best(8, 32) == AT_ONCE
    assert best(32, 64) == IN_TURNS  # 2,048 in flight at fewer nodes than broke down with 32 ranks per node
    assert best(64, 32) == IN_TURNS


def test_a_default_is_not_held_for_slow_for_posting_more_than_was_borne():
    """Elsewhere it may have stalled; where the library does it by itself it may be the fastest."""
    model = TimesModel({"alltoall": learn_times({"a": machine(breaks_at=2000, ppn=32)})}, amplitudes(PRIOR_THETA))
    scenario = Scenario("alltoall", 32, 64, 64)
    [(as_default, std), (as_choice, _)] = model.against(
        "alltoall", [(scenario, AT_ONCE, [IN_TURNS]), (scenario, IN_TURNS, [AT_ONCE])]
    )
    assert as_choice[0] > -as_default[0] + 1.0
    assert std[0] > 1.0
