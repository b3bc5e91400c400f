"""What settings cost, and the models that start from it."""

import numpy as np
import pytest

from alltoallv_cost import work
from alltoallv_model import COMPARED, CostModel, Query, held_out_error, plain_features
from colltune.alltoallv.lookup_table import LIBRARY, Setting, Shape

_SHAPE = Shape(64, 16)


def _steps(ranks: int, radix: int) -> int:
    """Messages that a rank sends in a Bruck of ``radix`` among ``ranks``."""
    count, distance = 0, 1
    while distance < ranks:
        count += min(radix - 1, (ranks - 1) // distance)
        distance *= radix
    return count


def _hops(ranks: int, radix: int) -> float:
    """How often a block is sent on average: its distance's digits that are not 0."""
    moved, distance = 0, 1
    while distance < ranks:
        whole, rest = divmod(ranks, distance * radix)
        moved += whole * distance * (radix - 1) + max(0, rest - distance)
        distance *= radix
    return moved / max(ranks - 1, 1)


@pytest.mark.parametrize(
    ("ranks", "radix", "messages", "blocks"), [(64, 4, 9, 144), (1024, 32, 62, 1984), (4096, 64, 126, 8064)]
)
def test_messages_and_blocks_are_those_of_the_closed_forms(ranks: int, radix: int, messages: int, blocks: int) -> None:
    found = work(Shape(ranks // 16, 16), Setting("parata", radix), 8.0)
    assert (found.messages, found.blocks) == (messages, blocks)
    assert found.messages == _steps(ranks, radix)
    assert found.blocks == pytest.approx(_hops(ranks, radix) * (ranks - 1))


def test_a_batch_makes_more_waits_and_no_more_messages() -> None:
    free, bound = (work(_SHAPE, Setting("parata", 32, batch), 8.0) for batch in (0, 4))
    assert free.messages == bound.messages
    assert (free.waits, bound.waits) == (2, 16)


def test_hieata_sends_each_block_between_nodes_once() -> None:
    found = work(_SHAPE, Setting("hieata", 16), 100.0)
    assert found.messages == 15 + 63
    assert found.off_node_bytes == 63 * 16 * 100.0


def _queries() -> list[Query]:
    settings = [LIBRARY, Setting("hieata", 16), *(Setting("parata", radix) for radix in (2, 4, 8, 16, 32))]
    return [
        Query(Shape(nodes, 16), setting, mean)
        for nodes in (8, 16, 32)
        for setting in settings
        for mean in (4.0, 64.0, 512.0)
    ]


def _cost_s(query: Query) -> float:
    found = work(query.shape, query.setting, query.mean_bytes)
    return 6e-7 * found.messages + 1e-6 * found.waits + 1e-10 * found.off_node_bytes


def test_times_that_are_a_sum_of_costs_are_predicted_where_nothing_was_measured() -> None:
    queries = _queries()
    model = CostModel().fit(queries, np.array([_cost_s(query) for query in queries]))
    unseen = [Query(Shape(24, 16), query.setting, 100.0) for query in queries]
    expected = np.array([_cost_s(query) for query in unseen])
    assert np.abs(model.predict(unseen) / expected - 1.0).max() < 0.05
    best = min(unseen, key=_cost_s).setting
    assert model.choose(Shape(24, 16), [query.setting for query in queries], 100.0) == best


def test_what_was_never_measured_is_not_chosen() -> None:
    queries = [query for query in _queries() if query.setting.algorithm != "hieata"]
    model = CostModel().fit(queries, np.array([_cost_s(query) for query in queries]))
    assert np.isinf(model.predict([Query(_SHAPE, Setting("hieata", 16), 8.0)]))[0]
    assert model.choose(_SHAPE, [Setting("hieata", 16), LIBRARY], 8.0) == LIBRARY


def test_no_timings_cannot_be_fitted() -> None:
    with pytest.raises(ValueError, match="no timings"):
        CostModel().fit([], np.array([]))


@pytest.mark.parametrize("name", COMPARED)
def test_every_model_learns_what_grows_with_the_ranks(name: str) -> None:
    features = plain_features(_queries())
    assert held_out_error(name, features, np.exp(0.1 * features[:, 0]), 0) < 0.2


@pytest.mark.parametrize("name", ["linear", "tree"])
def test_the_test_error_is_of_rows_that_were_not_seen(name: str) -> None:
    queries = _queries()
    features = plain_features(queries)
    noise = np.exp(np.random.default_rng(1).normal(size=len(queries)))
    assert held_out_error(name, features, noise, 0) > 0.2  # nothing to learn: a tree that had seen them would be at 0
    assert held_out_error("linear", features, np.exp(features[:, 0]), 0) < 1e-6
