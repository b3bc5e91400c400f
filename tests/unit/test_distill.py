"""Rules say what the selection says, and never what is not legal; what a campaign decides from its model."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, product
from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_proof import BESIDE, FAST, MINE, RING, TREE, Bench, usual

from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, SizeBasis, Status, parse_choice
from colltune.core.space import Prediction, Space
from colltune.distill.decide import Decided, decide
from colltune.distill.minimal_rules import distill, distill_proven
from colltune.distill.selection import Selection
from colltune.search.campaign import MeasuredModel

A, B, POW2, LARGE = Choice("a"), Choice("b", (("k", 4),)), Choice("pow2"), Choice("large")
Pair = tuple[Scenario, Choice]


def legal(scenario: Scenario) -> tuple[Choice, ...]:
    """``pow2`` needs a power of two of ranks, ``large`` at least one 4-byte element per rank."""
    ranks = scenario.ranks
    more = {POW2: ranks & (ranks - 1) == 0, LARGE: scenario.size_bytes >= 4 * ranks}
    return (DEFAULT, A, B, *(choice for choice, fits in more.items() if fits))


class TableModel:
    """Times from a function; infinite where a choice failed."""

    def __init__(self, times: dict[Pair, float] | None = None, failed: Sequence[Pair] = (), seed: int = 0) -> None:
        self._times, self._failed, self._seed = times or {}, set(failed), seed

    def predict(self, pairs: Sequence[Pair]) -> Prediction:
        log_time = [
            np.inf if pair in self._failed else log(self._times[pair]) if pair in self._times else self._smooth(pair)
            for pair in pairs
        ]
        return Prediction(np.array(log_time), np.zeros(len(pairs)))

    def _smooth(self, pair: Pair) -> float:
        scenario, choice = pair
        place = [DEFAULT, A, B, POW2, LARGE].index(choice)
        return 0.1 * abs(np.log2(scenario.size_bytes + 1) - 4 * place) + 0.01 * place * scenario.ranks


def grid(collective: str, shapes: Sequence[tuple[int, int]], sizes: Sequence[int]) -> Space:
    return Space(collective, tuple(Scenario(collective, n, p, s) for n, p in shapes for s in sizes), legal)


def choices_at(rules: RuleSet, nodes: int, ppn: int, sizes: Sequence[int]) -> list[Choice]:
    return [rules.evaluate(Scenario(rules.collective, nodes, ppn, size)) for size in sizes]


def times(space: Space, seed: int) -> dict[Pair, float]:
    random = np.random.default_rng(seed)
    return {pair: float(random.integers(1, 6)) * 1e-6 for pair in space.pairs()}


def rules_where(fastest: Callable[[Scenario], Choice], space: Space, basis=SizeBasis.MESSAGE, failed=()) -> RuleSet:
    """Of a grid that was measured whole, on which the fastest choice takes half of the time of all others."""
    measured = {(one, choice): 1.0 if choice == fastest(one) else 2.0 for one, choice in space.pairs()}
    return distill(TableModel(failed=failed), space, measured, basis)


def assert_minimal(rules: RuleSet) -> None:
    blocks: dict[int | None, dict[int | None, list[tuple[int | None, Choice]]]] = {}
    for rule in rules.rules:
        blocks.setdefault(rule.max_ppn, {}).setdefault(rule.max_ranks, []).append((rule.max_size, rule.choice))
    for by_ranks in blocks.values():
        for steps in by_ranks.values():
            assert all(one[1] != other[1] for one, other in pairwise(steps))
        assert all(one != other for one, other in pairwise(by_ranks.values()))
    assert all(one != other for one, other in pairwise(blocks.values()))


_SHAPES = [(n, p) for n in (1, 2, 3, 4, 6) for p in (1, 2, 3, 4, 7) if n * p > 1]
spaces = st.builds(
    grid,
    st.sampled_from(["bcast", "allreduce", "allgather"]),
    st.lists(st.sampled_from(_SHAPES), min_size=1, unique=True),
    st.lists(st.sampled_from([4, 8, 16, 20, 64, 256, 1024, 1028, 65536]), min_size=1, unique=True).map(sorted),
)


@given(spaces, st.integers(0, 9), st.sampled_from(SizeBasis), st.floats(0.2, 1.0))
def test_rules_are_total_minimal_and_say_what_the_selection_says(space, seed, basis, share):
    every = times(space, seed)
    random = np.random.default_rng(seed)
    measured = {pair: value for pair, value in every.items() if random.random() < share}
    rules = distill(TableModel(), space, measured, basis)
    assert_minimal(rules)
    largest = max((scenario.size_bytes for scenario, _ in measured), default=-1)
    selection = Selection(TableModel(), space, measured)
    for scenario in space.scenarios:
        chosen = rules.evaluate(scenario)
        assert chosen == DEFAULT or chosen in legal(scenario)
        if basis is not SizeBasis.NONE and scenario.size_bytes <= largest:
            assert chosen == selection.best(scenario)
    for nodes, ppn, size in product(range(1, 9), range(1, 9), (0, 4, 12, 40, 512, 4096, 10**6)):
        assert rules.evaluate(Scenario(space.collective, nodes, ppn, size)) in (DEFAULT, A, B, POW2, LARGE)


@given(spaces, st.integers(0, 9), st.sampled_from([SizeBasis.MESSAGE, SizeBasis.TOTAL]))
def test_no_rule_reaches_a_scenario_where_its_choice_is_not_legal(space, seed, basis):
    rules = distill(TableModel(), space, times(space, seed), basis)
    ppns = {1, *(scenario.ppn for scenario in space.scenarios)}
    for nodes, ppn, size in product(range(1, 9), ppns, range(4, 200, 4)):
        scenario = Scenario(space.collective, nodes, ppn, size)
        assert rules.evaluate(scenario) in (DEFAULT, *legal(scenario)), scenario


def two_sizes(at_a: Choice, at_b: Choice, at_c: Choice) -> RuleSet:
    """Rules of a space with sizes 8 and 64, whose fastest choices at 8, 36 and 64 bytes are given."""
    space = grid("bcast", [(2, 1)], [8, 64])
    wanted = {8: at_a, 36: at_b, 64: at_c}
    table = {
        (Scenario("bcast", 2, 1, size), choice): 1.0 if choice == fastest else 2.0
        for size, fastest in wanted.items()
        for choice in (DEFAULT, A, B)
    }
    failed = [(Scenario("bcast", 2, 1, size), choice) for size in wanted for choice in (POW2, LARGE)]
    measured = {pair: value for pair, value in table.items() if pair[0].size_bytes != 36}
    return distill(TableModel(table, failed), space, measured, SizeBasis.MESSAGE)


@pytest.mark.parametrize(
    ("at_a", "at_b", "at_c", "inside"), [(A, B, B, B), (A, A, B, A), (DEFAULT, A, B, A), (A, DEFAULT, B, DEFAULT)]
)
def test_table_one_of_the_paper(at_a, at_b, at_c, inside):
    rules = two_sizes(at_a, at_b, at_c)
    expected = {1: at_a, 8: at_a, 9: inside, 36: inside, 63: inside, 64: at_c, 128: at_c, 129: DEFAULT}
    assert choices_at(rules, 2, 1, [*expected]) == [*expected.values()]


def test_rank_counts_between_two_measured_ones_follow_only_where_both_agree():
    space = grid("bcast", [(2, 1), (6, 1)], [8, 64])
    rules = rules_where(lambda s: B if (s.nodes, s.size_bytes) == (6, 64) else A, space)
    for ranks in (3, 4, 5):
        assert choices_at(rules, ranks, 1, [8, 64]) == [A, DEFAULT]
    assert choices_at(rules, 7, 1, [8, 64]) == [DEFAULT, DEFAULT]


@pytest.mark.parametrize(("choice", "measured"), [(POW2, [(4, 1), (8, 1)]), (A, [(2, 2), (2, 8)])])
def test_a_choice_for_powers_of_two_at_the_counts_between_and_any_beside_the_grid_keep_the_default(choice, measured):
    rules = rules_where(lambda _s: choice, grid("bcast", measured, [8]))
    for nodes, ppn in [*((nodes, 1) for nodes in range(3, 10)), *((2, ppn) for ppn in range(1, 10)), (1, 2)]:
        assert rules.evaluate(Scenario("bcast", nodes, ppn, 8)) == (choice if (nodes, ppn) in measured else DEFAULT)


def test_total_sizes_count_all_ranks():
    space = grid("allgather", [(2, 2)], [16, 64])
    rules = rules_where(lambda s: A if s.size_bytes == 16 else B, space, SizeBasis.TOTAL)
    bounds = [rule.max_size for rule in rules.rules if rule.max_ranks == 4 and rule.choice == B]
    assert bounds == [2 * 64 * 4]
    assert choices_at(rules, 2, 2, [16, 64]) == [A, B]


def test_where_the_size_cannot_decide_the_least_sum_of_log_times_does():
    space = grid("bcast", [(2, 1)], [8, 64, 512])
    table = {A: (1.0, 1.0, 9.0), B: (2.0, 2.0, 2.0)}
    measured = {
        (scenario, choice): table.get(choice, (4.0, 4.0, 4.0))[i]
        for i, scenario in enumerate(space.scenarios)
        for choice in legal(scenario)
    }
    rules = distill(TableModel(), space, measured, SizeBasis.NONE)
    assert choices_at(rules, 2, 1, [8, 64, 512]) == [B, B, B]  # 2*2*2 = 8 < 1*1*9


def test_a_failed_choice_is_not_selected_however_fast_it_was_before():
    space = grid("bcast", [(2, 1)], [8])
    (scenario,) = space.scenarios
    assert rules_where(lambda _s: A, space, failed=[(scenario, A)]).evaluate(scenario) == DEFAULT


def test_the_model_fills_the_gaps_on_the_scale_of_what_was_measured():
    space = grid("bcast", [(2, 1)], [8])
    scenario = space.scenarios[0]
    predicted = {(scenario, c): t for c, t in ((DEFAULT, 10.0), (A, 8.0), (B, 30.0), (POW2, 30.0), (LARGE, 30.0))}
    measured = {(scenario, DEFAULT): 1e-6, (scenario, B): 3e-6}
    assert Selection(TableModel(predicted), space, measured).best(scenario) == A
    measured[scenario, A] = 1.2e-6  # measured after all, and slower than the model had it
    assert Selection(TableModel(predicted), space, measured).best(scenario) == DEFAULT


def test_no_model_is_asked_for_what_is_legal_only_beyond_the_grid():
    """As where a profile has few sizes: rules are asked for at all sizes between and above them."""

    class Learned(TableModel):
        def predict(self, pairs: Sequence[Pair]) -> Prediction:
            assert {choice for _, choice in pairs} <= set(space.all_choices)
            return super().predict(pairs)

    space = grid("bcast", [(3, 1)], [8])
    beyond = Scenario("bcast", 4, 1, 1 << 20)
    assert {POW2, LARGE} <= set(space.choices(beyond)) - set(space.all_choices)
    measured = {pair: 1e-6 if pair[1] == A else 2e-6 for pair in space.pairs()}
    assert set(Selection(Learned(), space, measured).legal(beyond)) == set(space.all_choices)
    assert distill(Learned(), space, measured, SizeBasis.MESSAGE).evaluate(space.scenarios[0]) == A


def test_nothing_measured_is_all_default():
    space = grid("bcast", [(2, 1)], [8])
    assert distill(TableModel(), space, {}, SizeBasis.MESSAGE) == RuleSet.always("bcast", SizeBasis.MESSAGE)


def test_proven_rules_reach_no_further_than_what_was_proven() -> None:
    sizes = (8, 16, 32, 64)
    ring, grid_of = Choice("ring"), tuple(Scenario("bcast", 1, ppn, size) for ppn in (2, 4) for size in sizes)
    space = Space("bcast", grid_of, lambda _: (DEFAULT, ring))
    proven = dict.fromkeys(space.scenarios, DEFAULT)
    proven |= {Scenario("bcast", 1, ppn, size): ring for ppn in (2, 4) for size in (16, 32)}
    rules = distill_proven(proven, space, SizeBasis.MESSAGE)
    for ranks in range(1, 7):
        for size in range(80):
            expected = ring if ranks in (2, 4) and 16 <= size <= 32 else DEFAULT
            assert rules.evaluate(Scenario("bcast", 1, ranks, size)) == expected
    for nodes in (2, 3):
        assert rules.evaluate(Scenario("bcast", nodes, 2, 16)) == DEFAULT


def decide_one(
    times: Mapping[tuple[Scenario, Choice], float], space: Space, samples: Sequence[Sample], *more: Any
) -> Decided:
    name = space.collective
    return decide({name: MeasuredModel(times)}, {name: space}, samples, *more)[name]


@pytest.mark.parametrize("advantage", [1.2, 0.5])
def test_choices_that_meet_below_a_composition_are_settled_by_what_gains_most(advantage: float) -> None:
    """4 x 2 and 4 x 4 have the same leaders, which cannot run two algorithms at one size."""
    two, three, flat = parse_choice("alpha+tree(k=2)"), parse_choice("alpha+tree(k=3)"), FAST
    times = {
        (MINE, DEFAULT): 8.0, (MINE, two): 4.0, (MINE, three): 6.0, (MINE, flat): 7.0,
        (BESIDE, DEFAULT): 8.0, (BESIDE, two): 9.0, (BESIDE, three): 4.0 / advantage, (BESIDE, flat): 7.0,
    }  # fmt: skip
    samples = [Sample(s, choice, Status.OK, (time_s,)) for (s, choice), time_s in times.items()]
    space = Space("bcast", (MINE, BESIDE), lambda _scenario: (DEFAULT, two, three, flat))
    bench = Bench(usual)
    settled = decide_one(times, space, samples, bench.baseline, 1.03, bench.inner_calls).choices
    expected = {MINE: three, BESIDE: three} if advantage > 1.0 else {MINE: two, BESIDE: flat}
    assert settled == expected
    free = decide_one(times, space, samples, bench.baseline, 1.03).choices
    assert free == {MINE: two, BESIDE: three if advantage > 1.0 else flat}


@pytest.mark.parametrize(
    ("on_four", "on_six", "between"),
    [
        # Time of RING and TREE on 4 and on 6 nodes, where the default takes 8: on 5 what gains more at both.
        ((4.0, 6.0), (7.0, 4.0), TREE),
        ((2.0, 6.0), (5.0, 4.0), RING),
        ((4.0, 6.0), (4.0, 6.0), RING),
        ((8.0, 8.0), (4.0, 6.0), RING),
        ((9.0, 8.0), (7.5, 8.0), DEFAULT),
        ((8.0, 8.0), (8.0, 8.0), DEFAULT),
    ],
)
def test_a_count_of_nodes_between_two_takes_what_gains_more_at_both(
    on_four: tuple[float, float], on_six: tuple[float, float], between: Choice
) -> None:
    ends = [Scenario("bcast", nodes, 1, 64) for nodes in (4, 6)]
    times = {
        (end, choice): time_s
        for end, (ring, tree) in zip(ends, (on_four, on_six), strict=True)
        for choice, time_s in ((DEFAULT, 8.0), (RING, ring), (TREE, tree))
    }
    samples = [Sample(s, choice, Status.OK, (time_s,)) for (s, choice), time_s in times.items()]
    five = Scenario("bcast", 5, 1, 64)

    def decided_of(*legal_on_five: Choice) -> Decided:
        space = Space("bcast", tuple(ends), lambda s: legal_on_five if s == five else (DEFAULT, RING, TREE))
        return decide_one(times, space, samples, lambda _scenario: DEFAULT, 1.03)

    found = decided_of(DEFAULT, RING, TREE)
    assert found.choices[five] == between
    expected = [math.log(times[end, DEFAULT] / times[end, between]) for end in ends]
    assert found.gains[five] == pytest.approx(sum(expected) / 2.0)
    assert found.default_s[five] == pytest.approx(8.0)
    assert decided_of(DEFAULT).choices[five] == DEFAULT


@pytest.mark.parametrize(
    ("default_kept_s", "ring_kept_s", "best"), [(4.0, 3.0, RING), (2.5, 3.0, TREE), (4.0, None, RING)]
)
def test_a_choice_that_loses_where_the_heap_keeps_memory_gives_way_to_the_next(
    default_kept_s: float, ring_kept_s: float | None, best: Choice
) -> None:
    times = {(MINE, DEFAULT): 8.0, (MINE, RING): 3.0, (MINE, TREE): 5.0}
    kept_s = {DEFAULT: default_kept_s, RING: ring_kept_s, TREE: 2.0}
    samples = [Sample(s, one, Status.OK, (time_s,), kept_s=kept_s[one]) for (s, one), time_s in times.items()]
    space = Space("bcast", (MINE,), lambda _scenario: (DEFAULT, RING, TREE))
    assert decide_one(times, space, samples, lambda _scenario: DEFAULT, 1.03).choices[MINE] == best
