"""Measuring by launches: what a launch does to its times cancels, and what goes wrong costs a launch and is known."""

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from statistics import median

import pytest

from colltune.core.errors import LaunchError
from colltune.core.proven import Verdict
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, SizeBasis, Status
from colltune.core.space import Point
from colltune.measure.contract import Effort
from colltune.prove.audit.audit import Audit
from colltune.prove.audit.claims import MOST_CLAIMS, ProofTime, claims_of
from colltune_study.recorded.launch_effects import AS_MEASURED, LaunchEffects
from colltune_study.testing import HALVING, RING, TREE, small_space, true_time_s
from launched_cluster import EFFORT, EVERY, Cluster, Job, Rules, choices_in


def every_point(choices: tuple[Choice, ...] = EVERY) -> list[Point]:
    return [Point(scenario, choices) for scenario in small_space().scenarios if scenario.ranks > 2]


def errors(effects: LaunchEffects) -> list[float]:
    """Of the logarithms of the speed-ups of every choice at every point."""
    return [
        abs(math.log(some[choice].time_s / some[DEFAULT].time_s * true_time_s(at, DEFAULT) / true_time_s(at, choice)))
        for at, some in Cluster(effects).measure(every_point()).items()
        for choice in EVERY[1:]
    ]


def test_as_many_launches_as_the_longest_list_has_choices_measure_all() -> None:
    cluster = Cluster()
    found = cluster.measure(every_point())
    assert all(set(some) == set(EVERY) for some in found.values())
    assert len(cluster.began) == len(EVERY)
    for number, rules in enumerate(cluster.began):
        by_turns = {rules["bcast"].evaluate(scenario) for scenario in found}
        assert by_turns == set(EVERY), f"launch {number} has each of the choices somewhere"


def test_what_a_launch_does_to_a_collective_cancels() -> None:
    """Times of launches as they are would be off by the launches; ratios in the first launch's times are not."""
    together = LaunchEffects(together=AS_MEASURED.together)
    there = every_point()[0].scenario
    as_they_are = [math.log(together.of_launch(there, TREE, (1, number))) for number in range(1, 5)]
    assert max(errors(together)) < 1e-9
    assert max(as_they_are) - min(as_they_are) > 0.1


def test_noise_of_single_calls_does_not_enter_what_the_launch_did() -> None:
    assert median(errors(AS_MEASURED)) < 2.0 * math.hypot(AS_MEASURED.algorithm, AS_MEASURED.pair)


def test_a_choice_that_ends_the_job_is_told_at_once_and_is_in_no_launch_after() -> None:
    first = every_point()[0].scenario
    cluster = Cluster(ends=lambda scenario, choice: choice == RING)
    source = cluster.source()
    answers = list(source.measure(every_point(), EFFORT))
    broken = [number for number, (_, some) in enumerate(answers) if any(s.status is Status.CRASHED for s in some)]
    ((point, (sample,)),) = [answers[number] for number in broken]
    assert (sample.choice, sample.detail) == (RING, "signal 11")
    assert first.collective == sample.scenario.collective
    guilty = next(n for n, some in enumerate(cluster.began) if some and some["bcast"].evaluate(point.scenario) == RING)
    assert all(RING not in choices_in(some) for some in cluster.began[guilty + 1 :])
    later = {p.scenario: {s.choice for s in some} for n, (p, some) in enumerate(answers) if n not in broken}
    assert all({DEFAULT, TREE, HALVING} <= some for some in later.values())
    assert len(later) == len(every_point())
    ((_, samples),) = source.measure([Point(first, (DEFAULT, RING))], EFFORT)
    assert [sample.choice for sample in samples] == [DEFAULT]


def test_a_default_that_ends_the_job_leaves_other_calls_their_default() -> None:
    bad = every_point()[2].scenario
    found = Cluster(ends=lambda scenario, choice: (scenario, choice) == (bad, DEFAULT)).measure(every_point())
    assert found[bad][DEFAULT].status is Status.CRASHED
    assert {found[bad][choice].status for choice in EVERY[1:]} == {Status.OK}
    assert all(some[DEFAULT].status is Status.OK for scenario, some in found.items() if scenario != bad)


class NotStarted(Job):
    """No job starts with the rules of the choice."""

    def start(self) -> None:
        if HALVING in choices_in(self.rules):
            raise LaunchError("the MPI job ended before it was ready")
        super().start()


class EndedByItself(Job):
    """The agent's own calls run under the rules too: then it never says which call it is at."""

    def measure(self, points: Iterable[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        if HALVING in choices_in(self.rules):
            raise LaunchError("2 MPI jobs ended before they began to measure")
        yield from super().measure(points, effort)


@pytest.mark.parametrize("job", [NotStarted, EndedByItself])
def test_a_choice_under_which_nothing_is_measured_is_told_from_the_others(job: type[Job]) -> None:
    found = Cluster(job=job).measure(every_point())
    statuses = {choice: {some[choice].status for some in found.values() if choice in some} for choice in EVERY}
    assert statuses.pop(HALVING) == {Status.CRASHED}
    assert statuses == {choice: {Status.OK} for choice in (DEFAULT, TREE, RING)}
    assert job is EndedByItself or sum(HALVING in some for some in found.values()) == 1


def test_where_not_even_the_default_starts_the_error_is_raised() -> None:
    class Never(Job):
        def start(self) -> None:
            raise LaunchError("no job starts here")

    with pytest.raises(LaunchError, match="no job starts"):
        Cluster(job=Never).measure(every_point((DEFAULT,)))


def test_what_a_file_cannot_say_is_not_measured_and_the_rest_is() -> None:
    def said(rules: RuleSet) -> RuleSet:
        own = tuple(replace(rule, choice=DEFAULT if rule.choice == HALVING else rule.choice) for rule in rules.rules)
        return RuleSet(rules.collective, rules.basis, own)

    found = Cluster(said=said).measure(every_point())
    for some in found.values():
        assert some[HALVING].status is Status.UNMEASURED
        assert "can say" in some[HALVING].detail
        assert {some[choice].status for choice in (DEFAULT, TREE, RING)} == {Status.OK}


def test_a_collective_that_is_decided_without_its_size_has_one_choice_in_a_shape_and_launch() -> None:
    cluster = Cluster(basis=SizeBasis.NONE)
    found = cluster.measure(every_point())
    assert all({sample.status for sample in some.values()} == {Status.OK} for some in found.values())
    for some in cluster.began:
        for rules in some.values():
            assert all(rule.max_size is None for rule in rules.rules)


def test_of_points_at_which_the_time_was_over_there_is_what_was_measured() -> None:
    cluster = Cluster()
    source = cluster.source()
    open_job = cluster.open

    def opened(rules: Rules) -> Job:
        if len(cluster.began) == 2:
            source.until_s = time.monotonic()  # the third launch is the last one
        return open_job(rules)

    source._plan = replace(source._plan, open=opened)
    found = list(source.measure(every_point(), EFFORT))
    assert len(cluster.began) == 3
    assert {point.scenario for point, _ in found} == {point.scenario for point in every_point()}
    for point, samples in found:
        assert [sample.choice for sample in samples] == list(point.choices)
        assert len(set(point.choices)) == 3
    assert list(source.measure(every_point(), EFFORT)) == []


def test_few_calls_of_a_shape_tell_what_a_launch_does() -> None:
    calls = defaultdict[int, set[int]](set)

    class Counted(Job):
        def measure(self, points: Iterable[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
            for point in points:
                calls[self._launch].add(point.scenario.size_bytes)
                yield from super().measure([point], effort)

    sizes = [1 << exponent for exponent in range(4, 20)]
    first = every_point()[0]
    some = [replace(first, scenario=replace(first.scenario, size_bytes=size)) for size in sizes]
    Cluster(job=Counted).measure(some)
    first, *others = (some - set(sizes) for some in calls.values())
    assert len(first) == 5
    assert all(some == first for some in others), "the same in all launches"


def test_a_launch_that_others_disturbed_is_made_again() -> None:
    class Disturbed(Job):
        def start(self) -> None:
            super().start()
            self.disturbed = self._launch == 2

    cluster = Cluster(job=Disturbed)
    source = cluster.source()
    found = list(source.measure(every_point(), EFFORT))
    source.close()
    assert all(set(point.choices) == set(EVERY) for point, _ in found)
    assert len(cluster.began) == len(EVERY) + 1
    assert not source.disturbed


def test_the_default_and_a_choice_are_in_the_same_launch_at_neighbours() -> None:
    """So what the launch does to them is not in their ratio, and over launches neither is the size."""
    cluster = Cluster(LaunchEffects(together=AS_MEASURED.together))
    sides: list[str] = []
    for _ in range(4):
        began = len(cluster.began)
        for scenario, some in cluster.measure(every_point((DEFAULT, TREE))).items():
            truth = math.log(true_time_s(scenario, TREE) / true_time_s(scenario, DEFAULT))
            assert math.log(some[TREE].time_s / some[DEFAULT].time_s) == pytest.approx(truth, abs=0.05)
            assert [sample.scenario for sample in some.values()] == [scenario, scenario]
            (beside,) = (sample.detail for sample in some.values() if sample.detail)
            assert beside == f"at {scenario.size_bytes - 1} B"
            sides.append("default" if some[DEFAULT].detail else "choice")
        assert len(cluster.began) == began + 1
    assert 0.3 < sides.count("default") / len(sides) < 0.7


def test_shapes_that_rules_do_not_tell_apart_have_their_pairs_in_the_same_launch() -> None:
    cluster = Cluster(tells_ranks=False)
    found = cluster.measure(every_point((DEFAULT, TREE)))
    assert all(set(some) == {DEFAULT, TREE} for some in found.values())
    assert len(cluster.began) == 1


def test_a_choice_that_ends_the_job_leaves_the_default_of_its_pairs_to_measure() -> None:
    cluster = Cluster(ends=lambda scenario, choice: choice == RING)
    found = cluster.measure(every_point((DEFAULT, RING)))
    assert sum(RING in some for some in found.values()) == 1
    assert all(some[DEFAULT].status is Status.OK for some in found.values())


def test_what_a_file_cannot_tell_from_its_neighbour_is_measured_in_two_launches() -> None:
    def said(rules: RuleSet) -> RuleSet:
        kept = (rule for rule in rules.rules if rule.max_size is None or rule.max_size % 8 == 0)
        return RuleSet(rules.collective, rules.basis, tuple(kept))

    cluster = Cluster(said=said)
    found = cluster.measure([Point(every_point()[3].scenario, (DEFAULT, TREE))])
    ((_, some),) = found.items()
    assert {choice: sample.status for choice, sample in some.items()} == {DEFAULT: Status.OK, TREE: Status.OK}
    assert not any(sample.detail for sample in some.values())


def test_a_launch_of_the_proof_is_a_launch_of_the_job_with_all_that_is_open() -> None:
    cluster = Cluster()
    calls = [one.scenario for one in every_point() if one.scenario.size_bytes == 4096 and one.scenario.ranks >= 8]
    gains = {one: math.log(true_time_s(one, DEFAULT) / true_time_s(one, HALVING)) for one in calls}
    weights = dict.fromkeys(calls, 1.0)
    samples: list[Sample] = []
    audit = Audit(
        claims=claims_of(dict.fromkeys(calls, HALVING), gains, weights, ProofTime(0.0, weights)),
        open_source=cluster.source,
        record=samples.extend,
        baseline=lambda _scenario: DEFAULT,
        cost_s=lambda _scenario: 1e-3,
        total_weight=sum(weights.values()),
        threshold=1.02,
        launch_s=2.0,
        clock=lambda: 2.0 * len(cluster.began),
        together=True,
    )
    verdicts = {one.verdict for one in audit.run(200.0)}
    assert verdicts == {Verdict.KEPT}
    assert len(cluster.began) == audit.launches
    in_each = [{s.scenario for s in samples if s.launch == launch} for launch in range(1, audit.launches + 1)]
    assert in_each[:3] == [set(calls)] * 3


def test_where_few_launches_are_to_come_claims_are_large() -> None:
    costs_s = {Scenario("bcast", 2, 1, 1 << step): 0.01 for step in range(30)}
    assert ProofTime(60.0, costs_s).most == MOST_CLAIMS
    assert ProofTime(60.0, costs_s, launch_s=5.7, once=True).most == 10 * 30 // 24
    assert ProofTime(5.0, costs_s, launch_s=5.7, once=True).most == 1
