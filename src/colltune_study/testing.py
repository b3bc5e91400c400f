"""The laws that every learner keeps, as a test suite to inherit.

A subclass says how its learner is made; pytest collects the laws. The times come from a smooth cost model of latency
and bandwidth, so the suite runs without an MPI and gives the same answer each time.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import log2

import numpy as np

from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, Status
from colltune.core.space import Point, Space
from colltune.learn.contract import Learner

TREE = Choice("tree", (("k", 4),))
RING = Choice("ring")
FULL = 20  # repetitions of a full measurement
HALVING = Choice("halving")  # powers of two only


def legal(scenario: Scenario) -> tuple[Choice, ...]:
    """The legal choices of the suite's small library."""
    power_of_two = scenario.ranks & (scenario.ranks - 1) == 0
    return (DEFAULT, RING, TREE, *((HALVING,) if power_of_two else ()))


def true_time_s(scenario: Scenario, choice: Choice) -> float:
    """Seconds, from latency and bandwidth terms; the default is the tree up to 1 KiB and the ring above."""
    ranks, size = scenario.ranks, scenario.size_bytes
    if choice == DEFAULT:
        choice = TREE if size <= 1024 else RING
    latency_s, per_byte_s = {
        TREE: (1e-6 * log2(ranks + 1), 1e-9 * log2(ranks + 1)),
        RING: (1e-6 * ranks, 2e-10),
        HALVING: (1.5e-6 * log2(ranks + 1), 5e-10),
    }[choice]
    return 1e-6 + latency_s + per_byte_s * size


def small_space(collective: str = "bcast") -> Space:
    scenarios = tuple(
        Scenario(collective, nodes, ppn, 2**power) for nodes in (1, 2, 3) for ppn in (2, 4) for power in range(3, 19, 3)
    )
    return Space(collective, scenarios, legal)


def measured(point: Point, group: int = 0) -> list[Sample]:
    """One sample for each choice of ``point``, with as many times as it asks for: 20 where it leaves that open."""
    return [
        Sample(point.scenario, choice, Status.OK, times_s, cost_s=1e-3, group=group)
        for choice in point.choices
        for times_s in (_repetitions(true_time_s(point.scenario, choice), point.repetitions or FULL),)
    ]


def _repetitions(time_s: float, count: int) -> tuple[float, ...]:
    """Odd ones are exact, of the others every second is 1% too fast and every second 2% too slow."""
    return tuple(time_s * (1.0, 0.99, 1.0, 1.02)[number % 4] for number in range(count))


def drive(learner: Learner, most: int) -> list[Point]:
    """Asks and tells one point at a time, until the learner has none left or ``most`` were measured."""
    points: list[Point] = []
    while len(points) < most and (asked := learner.ask(1)):
        learner.tell_pending(asked[0])
        learner.tell(measured(asked[0], len(points)))
        points.append(asked[0])
    return points


def mean_slowdown(learner: Learner, space: Space) -> float:
    """How many times as slow what ``learner`` would choose is as the fastest choice, on average over ``space``."""
    model, found = learner.model(), []
    for scenario in space.scenarios:
        choices = space.choices(scenario)
        log_time = model.predict([(scenario, choice) for choice in choices]).log_time
        times = [true_time_s(scenario, choice) for choice in choices]
        found.append(times[int(np.argmin(log_time))] / min(times))
    return float(np.mean(found))


class LearnerContract:
    """Inherit, name the class Test..., and return a new learner from ``make``."""

    def make(self, space: Space, seed: int) -> Learner:
        raise NotImplementedError

    @staticmethod
    def _answers(
        learner: Learner, space: Space
    ) -> tuple[list[Point], np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
        return learner.ask(3), learner.model().predict(list(space.pairs())).log_time

    def _told(self, samples: Iterable[Sample], seed: int = 7) -> Learner:
        learner = self.make(small_space(), seed)
        learner.tell(list(samples))
        return learner

    def _samples(self, scenarios: Sequence[int] = (0, 5, 8, 14, 20, 23, 30, 35)) -> list[Sample]:
        space = small_space()
        return [
            sample
            for group, number in enumerate(scenarios)
            for sample in measured(Point(space.scenarios[number], space.choices(space.scenarios[number])), group)
        ]

    def test_order_of_samples_is_irrelevant_to_the_model(self) -> None:
        samples = self._samples()
        one, other = self._told(samples), self._told([])
        for some in np.array_split(np.random.default_rng(1).permutation(len(samples)), 5):
            other.tell([samples[i] for i in some])
        pairs = list(small_space().pairs())
        np.testing.assert_allclose(
            one.model().predict(pairs).log_time, other.model().predict(pairs).log_time, rtol=0, atol=1e-9
        )

    def test_telling_twice_changes_nothing(self) -> None:
        samples = self._samples()
        one, other = self._told(samples), self._told(samples)
        other.tell(samples)
        (points, times), (other_points, other_times) = (self._answers(x, small_space()) for x in (one, other))
        assert points == other_points
        np.testing.assert_array_equal(times, other_times)

    def test_equal_seeds_and_samples_give_equal_answers(self) -> None:
        one, other = (drive(self.make(small_space(), 3), 12) for _ in range(2))
        assert one == other

    def test_asking_changes_nothing(self) -> None:
        learner = self._told(self._samples())
        assert learner.ask(2) == learner.ask(2)

    def test_expected_gains_are_positive_until_nothing_is_open(self) -> None:
        space = small_space()
        points = [Point(scenario, space.choices(scenario)) for scenario in space.scenarios]
        learner = self.make(space, 4)
        before = learner.expected_gain(points)
        assert before.shape == (len(points),)
        assert np.isfinite(before).all()
        assert (before > 0.0).all()
        learner.tell([sample for group, point in enumerate(points[1:]) for sample in measured(point, group)])
        after = learner.expected_gain(points)
        assert after[0] > 0.0
        np.testing.assert_array_equal(after[1:], 0.0)

    def test_what_is_pending_gains_nothing_more(self) -> None:
        learner = self._told(self._samples())
        [point] = learner.ask(1)
        assert learner.expected_gain([point])[0] > 0.0
        learner.tell_pending(point)
        assert learner.expected_gain([point])[0] == 0.0

    def test_asking_for_gains_changes_nothing(self) -> None:
        space = small_space()
        points = [Point(scenario, space.choices(scenario)) for scenario in space.scenarios]
        one, other = self._told(self._samples()), self._told(self._samples())
        gains = one.expected_gain(points)
        np.testing.assert_array_equal(gains, one.expected_gain(points))
        assert one.ask(3) == other.ask(3)
        np.testing.assert_array_equal(gains, other.expected_gain(points))

    def test_never_asks_again_for_what_is_fully_measured(self) -> None:
        """A pair may be asked for once more: for what its first look left, or whole, to tell what looks differ by."""
        learner = self.make(small_space(), 5)
        done: Counter[tuple[Scenario, Choice]] = Counter()
        looks: Counter[tuple[Scenario, Choice]] = Counter()
        for point in drive(learner, 10_000):
            for choice in point.choices:
                assert done[point.scenario, choice] <= FULL
                done[point.scenario, choice] += point.repetitions or FULL
                looks[point.scenario, choice] += 1
        assert max(looks.values()) <= 2

    def test_a_batch_holds_no_pair_twice_and_no_pending_pair(self) -> None:
        learner = self._told(self._samples())
        batch = learner.ask(4)
        pairs = [(p.scenario, choice) for p in batch for choice in p.choices]
        assert len(batch) == 4
        assert len(pairs) == len(set(pairs))
        for point in batch:
            learner.tell_pending(point)
        after = {(p.scenario, choice) for p in learner.ask(4) for choice in p.choices}
        assert not after & set(pairs)

    def test_asks_only_for_what_is_legal(self) -> None:
        for point in drive(self.make(small_space(), 11), 10_000):
            assert point.choices
            assert set(point.choices) <= set(legal(point.scenario))

    def test_comes_to_an_end(self) -> None:
        """Either the space is used up or the learner says that it has seen enough."""
        learner = self.make(small_space(), 2)
        drive(learner, 10_000)
        assert learner.ask(1) == []
        assert learner.should_stop()

    def test_failed_samples_never_enter_the_model(self) -> None:
        samples = self._samples()
        scenario = small_space().scenarios[2]
        failed = [Sample(scenario, DEFAULT, Status.HUNG, detail="no answer in 10 s")]
        one, other = self._told(samples), self._told(samples + failed)
        pairs = [pair for pair in small_space().pairs() if pair != (scenario, DEFAULT)]
        np.testing.assert_array_equal(one.model().predict(pairs).log_time, other.model().predict(pairs).log_time)

    def test_failed_choices_are_neither_asked_for_nor_selected(self) -> None:
        scenario = small_space().scenarios[2]
        learner = self._told(
            [*self._samples(), Sample(scenario, RING, Status.INAPPLICABLE), Sample(scenario, TREE, Status.CRASHED)]
        )
        log_time = learner.model().predict([(scenario, RING), (scenario, TREE), (scenario, DEFAULT)]).log_time
        assert np.isinf(log_time[:2]).all()
        assert np.isfinite(log_time[2])
        again = [p for p in drive(learner, 10_000) if p.scenario == scenario and {RING, TREE} & set(p.choices)]
        assert again == []

    def test_an_algorithm_with_a_wrong_result_is_given_up_everywhere(self) -> None:
        learner = self._told([*self._samples(), Sample(small_space().scenarios[2], TREE, Status.WRONG)])
        assert all(TREE not in point.choices for point in drive(learner, 10_000))
        pairs = [(scenario, TREE) for scenario in small_space().scenarios]
        assert np.isinf(learner.model().predict(pairs).log_time).all()

    def test_no_model_before_the_first_time(self) -> None:
        learner = self._told([Sample(small_space().scenarios[0], RING, Status.INAPPLICABLE)])
        try:
            learner.model()
        except ValueError:
            return
        raise AssertionError("a model was made of nothing")

    def test_predictions_are_finite_and_their_deviations_not_negative(self) -> None:
        prediction = self._told(self._samples()).model().predict(list(small_space().pairs()))
        assert np.isfinite(prediction.log_time).all()
        assert (prediction.std >= 0.0).all()

    def test_learns_what_is_fast(self) -> None:
        """With everything measured, its choices cost at most 3% more than the best ones."""
        space = small_space()
        learner = self.make(space, 1)
        for group, scenario in enumerate(space.scenarios):
            learner.tell(measured(Point(scenario, space.choices(scenario)), group))
        assert mean_slowdown(learner, space) <= 1.03
