"""Han's file names coll/tuned wherever a rule decides, and han itself wherever none does."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colltune.bench.backends.openmpi import OpenMpiBackend
from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.scenario import SizeBasis
from colltune.core.space import shapes
from colltune.emit.openmpi.han import HAN_FILE, Owners, parse_han
from emitter_laws import random_rules, scenarios_at_bounds

OF_HAN = ("allgather", "allreduce", "barrier", "bcast", "gather", "reduce", "scatter")


def decided_by_tuned(table: Mapping[str, Owners], collective: str, ranks: int, size: int) -> bool:
    """Whether a call on several nodes goes to coll/tuned; ``size`` in the unit of the collective's rules."""
    owners = table.get(collective, {})
    reached = [least for least in owners if least <= ranks]
    if not reached:
        return False
    return [tuned for start, tuned in owners[max(reached)] if start <= size][-1]


@given(st.integers(0, 10**6), st.sampled_from(OF_HAN))
def test_tuned_is_asked_where_a_rule_decides_at_each_bound_and_beside_it(seed: int, collective: str) -> None:
    backend = OpenMpiBackend("5.0.11")
    entry = backend.catalogue.collective(collective)
    rules = backend.expressible(
        random_rules(seed, collective, entry.basis, backend.catalogue.choices(collective)), shapes(8, 8)
    )
    table = parse_han(backend.emitter.emit([rules])[HAN_FILE])
    for scenario in scenarios_at_bounds(rules):
        asked = decided_by_tuned(table, collective, scenario.ranks, scenario.size_bytes)
        assert asked == (rules.evaluate(scenario) != DEFAULT), scenario


def test_the_text_of_a_file() -> None:
    rules = RuleSet(
        "bcast", SizeBasis.MESSAGE, (Rule(None, 7, None, DEFAULT), Rule(None, None, 64, Choice("binomial")),
                                     Rule(None, None, 4096, Choice("pipeline")), Rule(None, None, None, DEFAULT)),
    )  # fmt: skip
    text = OpenMpiBackend("5.0.11").emitter.emit([rules])[HAN_FILE].decode()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines == ["1", "bcast", "1", "2", "2", "1", "1", "0 han", "8", "2", "0 tuned", "4097 han"]


def test_nothing_is_handed_over_where_nothing_is_decided() -> None:
    backend = OpenMpiBackend("5.0.11")
    alone = RuleSet.always("alltoall", SizeBasis.TOTAL, Choice("pairwise"))
    for rule_sets in ([], [alone], [RuleSet.always("bcast", SizeBasis.MESSAGE, DEFAULT)]):
        assert parse_han(backend.emitter.emit(rule_sets)[HAN_FILE]) == {}


def test_releases_whose_han_is_off_get_no_file() -> None:
    emitter = OpenMpiBackend("4.1.8").emitter
    assert HAN_FILE not in emitter.emit([RuleSet.always("bcast", SizeBasis.MESSAGE, Choice("pipeline"))])


@pytest.mark.parametrize(
    "text", ["", "1\nbcast\n1\n0\n1\n1\n1\n0 tuned\n", "1\nbcast\n1\n2\n1\n1\n1\n0 self\n", "0\n7\n"]
)
def test_a_file_of_others_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not as colltune writes it"):
        parse_han(text.encode())
