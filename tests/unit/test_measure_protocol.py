"""What the host makes of an agent's words: samples or a MeasurementError, whatever they are."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colltune.core.errors import LaunchError, MeasurementError
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, Status
from colltune.core.space import Point
from colltune.measure import live
from colltune.measure.contract import Effort
from colltune.measure.live import LivePlan, LiveSource
from colltune.measure.request import Settings

ENVIRONMENT = Environment("mpich", "5.0.2", "0f" * 32, "Example CPU, 8 cores", 1, 2, "single")
TREE = Choice("tree", (("k", 2),))
POINT, OTHER = (Point(Scenario("bcast", 1, 2, size), (DEFAULT, TREE)) for size in (64, 128))
SAID = [
    "trying id=1 choice=0",
    "trying id=1 choice=1",
    "result id=1 choice=0 status=ok cost_us=7.5 osu_us=1.2500 b2b_us=1.5000 skewed_us=1.7500 times_ns=1000,2000,3000",
    "result id=1 choice=1 status=inapplicable cost_us=1.0 detail=refused-by-the-library",
    "done id=1 wall_us=100.0 inside_us=50.0",
]


class Scripted:
    """Stands in for the process of an agent, and says what it was given; then it has ended."""

    def __init__(self, lines: Sequence[str | None]) -> None:
        self.lines: Iterator[str | None] = iter(lines)
        self.ready = {"ranks": "2"}
        self.sent: list[str] = []

    def send(self, line: str) -> bool:
        self.sent.append(line)
        return True

    def read(self, timeout_s: float) -> str | None:
        return next(self.lines, None)

    def stderr_text(self, lines: int = 8) -> str:
        return "its last words"

    def close(self, timeout_s: float = 10.0) -> int:
        return 0

    def kill(self) -> None: ...


def answers(number: int, *choices: int) -> list[str]:
    """What an agent says of a request whose ``choices`` take 5 ns each."""
    said = [f"trying id={number} choice={choice}" for choice in choices]
    said += [f"result id={number} choice={choice} status=ok cost_us=1 times_ns=5" for choice in choices]
    return [*said, f"done id={number} inside_us=1"]


@contextmanager
def hearing(launch: Callable[[], Scripted], settings: Settings = (), **plan: Any) -> Iterator[LiveSource]:
    """A source whose agents ``launch`` makes, and whose choices have all these ``settings``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live, "AgentProcess", lambda *_: launch())
        yield LiveSource(LivePlan(["mpiexec"], {}, lambda _name, _choice: settings, seed=1, **plan), ENVIRONMENT)


def hear(*launches: Sequence[str | None], points: Sequence[Point] = (POINT,)) -> tuple[list[Sample], LiveSource]:
    """Samples of ``points``, from a source whose launches say ``launches``, one after another."""
    scripts = iter(launches)
    with hearing(lambda: Scripted(next(scripts, ()))) as source:
        return [sample for _, samples in source.measure(points, Effort()) for sample in samples], source


def test_a_communicator_is_measured_beside_others_where_the_plan_says_so() -> None:
    script = Scripted(())
    with hearing(lambda: script, beside={(4, 1): 2}) as source:
        source.begin(Point(Scenario("alltoall", 4, 1, 64), (DEFAULT,)), Effort())
        source.begin(Point(Scenario("alltoall", 1, 2, 64), (DEFAULT,)), Effort(), [7])
    asked = [" ".join(line.split()[4:7]) for line in script.sent]
    assert asked == ["ppn=1 beside=2 nodes=0-3", "ppn=2 beside=1 nodes=7"]


def test_a_plain_answer_is_read() -> None:
    (default, tree), source = hear(SAID)
    assert (default.choice, default.status) == (DEFAULT, Status.OK)
    assert default.times_s == pytest.approx((1e-6, 2e-6, 3e-6))
    assert (default.osu_mean_s, default.back_to_back_s) == (pytest.approx(1.25e-6), pytest.approx(1.5e-6))
    assert default.skewed_s == pytest.approx(1.75e-6)
    assert (tree.status, tree.times_s, tree.detail) == (Status.INAPPLICABLE, (), "refused-by-the-library")
    assert source.inside_s == pytest.approx(50e-6)


def test_what_is_not_answered_in_time_is_given_up_and_its_job_ended() -> None:
    """The first point has its answer; the second takes longer than all the time there is."""
    killed: list[bool] = []

    class Slow(Scripted):
        def read(self, timeout_s: float) -> str | None:
            line = next(self.lines, None)
            if line is None:
                assert timeout_s < 60.0  # not the silence that a job is given
                source.until_s = time.monotonic()
                raise TimeoutError
            return line

        def kill(self) -> None:
            killed.append(True)

    with hearing(lambda: Slow([*SAID, "trying id=2 choice=0"]), silence_s=3600.0) as source:
        source.until_s = time.monotonic() + 50.0
        assert [point for point, _ in source.measure([POINT, OTHER], Effort())] == [POINT]
        assert killed
        assert list(source.measure([OTHER], Effort())) == []


def test_the_agent_repeats_a_choice_no_more_often_than_the_point_asks_for() -> None:
    for repetitions, words in ((0, "fewest=10 most=200"), (3, "fewest=3 most=3"), (50, "fewest=10 most=50")):
        agent = Scripted(SAID)
        with hearing(lambda agent=agent: agent) as source:
            list(source.measure([replace(POINT, repetitions=repetitions)], Effort()))
        assert words in agent.sent[0]


def test_words_of_others_are_passed_over() -> None:
    noise = ["", "hello", "result", "result id=", "done id=17 inside_us=9", "[proxy:0@host] a warning = x", "id=1"]
    (default, tree), _ = hear([word for line in SAID for word in (*noise, line)])
    assert (default.status, tree.status) == (Status.OK, Status.INAPPLICABLE)


@pytest.mark.parametrize(
    "line",
    [
        "result id=1 choice=0 status=ok cost_us=7.5",
        "result id=1 choice=0 status=inapplicable cost_us=7.5 times_ns=1",
        "result id=1 choice=2 status=ok cost_us=7.5 times_ns=1",
        "result id=1 choice=-1 status=ok cost_us=7.5 times_ns=1",
        "result id=1 choice=0 status=fine cost_us=7.5 times_ns=1",
        "result id=1 choice=0 status=ok cost_us=nan times_ns=1",
        "result id=1 choice=0 status=ok cost_us=1 times_ns=-4",
        "result id=1 choice=0 status=ok cost_us=1 times_ns=inf",
        "result id=1 choice=0 status=ok cost_us=1 times_ns=1e999",
        "result id=1 choice=0 status=ok cost_us=1 times_ns=" + "9" * 5000,
        "result id=1 choice=0 status=ok times_ns=1",
        "trying id=1",
        "trying id=1 choice=7",
        "trying id=1 choice=x",
        "done id=1",
        "done id=1 inside_us=nan",
        "done id=1 inside_us=1",
    ],
)
def test_what_breaks_the_protocol_is_a_measurement_error_that_shows_it(line: str) -> None:
    with pytest.raises(MeasurementError) as caught:
        hear([*SAID[:2], line, *SAID[3:]])
    assert line[:150] in str(caught.value)


WORDS = (
    *("trying", "result", "done", "error", "ready", "id=1", "id=2", "id=3", "choice=0", "choice=1", "status=ok"),
    *("status=wrong", "status=crashed", "cost_us=1.5", "inside_us=2", "osu_us=1", "b2b_us=3", "skewed_us=4"),
    *("times_ns=10,20", "times_ns=,", "="),
)
WORD = st.sampled_from(WORDS) | st.text(max_size=8)
LINE = st.sampled_from(SAID) | st.lists(WORD, max_size=8).map(" ".join)


def changed(line: str, at: int, text: str) -> str:
    at %= len(line) + 1
    return line[:at] + text + line[at + 1 :]


MUTATED = st.builds(changed, st.sampled_from(SAID), st.integers(0, 120), st.text(max_size=3))


@given(lines=st.lists(LINE | MUTATED, max_size=12), again=st.lists(LINE | MUTATED, max_size=12))
def test_any_words_give_samples_or_an_error_of_ours(lines: list[str], again: list[str]) -> None:
    try:
        samples, source = hear(lines, again, SAID, SAID, SAID)
    except (MeasurementError, LaunchError):
        return
    assert source.inside_s >= 0.0
    for sample in samples:
        assert sample.choice in POINT.choices
        assert (sample.status is Status.OK) == bool(sample.times_s)
        assert all(0.0 <= time_s < math.inf for time_s in sample.times_s)


@pytest.mark.parametrize("who", ["id=1", "id=-1"])
def test_a_refused_request_costs_its_point_and_nothing_else(who: str) -> None:
    refusal = f"error {who} cannot read the field choice=A"
    samples, source = hear([refusal, *[line.replace("id=1", "id=2") for line in SAID]], points=[POINT, OTHER])
    if who == "id=-1":  # two were at the agent: each is asked for again, alone
        launches = [[refusal], [refusal, *[line.replace("id=1", "id=4") for line in SAID]]]
        samples, source = hear(*launches, points=[POINT, OTHER])
    found = {(s.scenario.size_bytes, s.choice): (s.status, s.detail) for s in samples}
    assert len(found) == len(samples) == 4
    assert found[64, DEFAULT] == found[64, TREE] == (Status.UNMEASURED, "cannot read the field choice=A")
    assert found[128, DEFAULT] == (Status.OK, "")
    assert source.launches == (1 if who == "id=1" else 2)


def test_an_agent_that_refuses_everything_is_asked_once_for_each_point() -> None:
    refusals = [f"error id={number} no such nodes or ppn in this job" for number in range(1, 5)]
    samples, source = hear(refusals, points=[POINT, OTHER, POINT, OTHER])
    assert [s.status for s in samples] == [Status.UNMEASURED] * 8
    assert {s.times_s for s in samples} == {()}
    assert source.launches == 1
    samples, source = hear(["error id=-1 no memory for a request"], points=[POINT])
    assert [s.status for s in samples] == [Status.UNMEASURED] * 2


def test_requests_that_may_be_unread_are_less_than_a_launcher_passes_on() -> None:
    """Hydra ends a job that leaves 64 KiB of its input unread."""
    many = tuple(Choice(f"tree{number}") for number in range(400))
    points = [Point(Scenario("bcast", 1, 2, size), many) for size in (8, 16, 32)]
    names = tuple((f"MPIR_CVAR_EXAMPLE_{'X' * 40}_{number}", 12345) for number in range(8))
    agent = Scripted([line for number in (1, 2, 3) for line in answers(number, *range(len(many)))])
    with hearing(lambda: agent, names) as source:
        measured = source.measure(points, Effort())
        next(measured)
        assert max(map(len, agent.sent)) < 1 << 15
        assert len(list(measured)) == 2
    agent = Scripted(())
    with hearing(lambda: agent, names * 3) as longer:
        ((_, refused),) = longer.measure(points[:1], Effort())
    assert agent.sent == []
    assert {s.status for s in refused} == {Status.UNMEASURED}
    assert "launchers pass on 32768 B" in refused[0].detail


@pytest.mark.parametrize(
    ("first", "second", "waits"),
    [
        ((0, 1), (0, 1, 2), False),  # rank 0 leads both, so it orders them
        ((0, 1), (0,), False),
        ((1, 2), (1, 2), False),
        ((1, 2), (0, 1), True),
        ((1, 0), (0, 1, 2), True),
        ((0, 1), (1, 0), True),
        ((0, 1), (2, 3), False),  # nothing in common
    ],
)
def test_a_request_waits_at_the_agent_only_where_its_ranks_get_it_in_order(
    first: tuple[int, ...], second: tuple[int, ...], waits: bool
) -> None:
    script = Scripted(["done id=1 inside_us=1"] if waits else [])
    with hearing(lambda: script) as source:
        for nodes in (first, second):
            source.begin(Point(Scenario("bcast", len(nodes), 1, 64), (DEFAULT,)), Effort(), nodes)
    assert len(script.sent) == (1 if waits else 2)


def test_a_point_of_another_shape_is_at_the_agent_before_the_one_before_it_is_answered() -> None:
    shapes = [(8, 2), (3, 1), (8, 1), (1, 2)]
    points = [Point(Scenario("bcast", nodes, ppn, 64), (DEFAULT,)) for nodes, ppn in shapes]
    script = Scripted([line for number in range(1, 5) for line in answers(number, 0)])
    with hearing(lambda: script) as source:
        at_the_agent = [(len(script.sent), point.scenario) for point, _ in source.measure(points, Effort())]
    assert at_the_agent == [(sent, point.scenario) for sent, point in zip((2, 3, 4, 4), points, strict=True)]


def test_a_job_that_ends_before_it_begins_is_started_once_more() -> None:
    samples, source = hear([], [line.replace("id=1", "id=2") for line in SAID])
    assert [sample.status for sample in samples] == [Status.OK, Status.INAPPLICABLE]
    assert source.launches == 2
    with pytest.raises(LaunchError, match="2 MPI jobs ended"):
        hear([], [])


@pytest.mark.parametrize("shapes", [[(1, 2, size) for size in (8, 16, 32)], [(4, 1, 64), (2, 1, 64)]])
def test_the_first_is_to_blame_and_left_out_of_points_that_were_planned_before(shapes: list[tuple[int, ...]]) -> None:
    points = [Point(Scenario("bcast", *shape), (DEFAULT, TREE, Choice("ring"))) for shape in shapes]
    # Two requests were at the agent when it ended (1 and 2); after it, all are asked for again.
    again = [line for number in range(len(points)) for line in answers(3 + number, 0, 1)]
    samples, source = hear(SAID[:2], again, points=points)
    assert [(s.scenario, s.choice) for s in samples if s.status is Status.CRASHED] == [(points[0].scenario, TREE)]
    fine = [(s.scenario, s.choice.algorithm) for s in samples if s.status is Status.OK]
    assert sorted(fine) == sorted((point.scenario, name) for point in points for name in ("default", "ring"))
    assert source.launches == 2


def test_what_ends_the_job_before_a_word_of_it_is_heard_is_found_by_being_alone() -> None:
    good, bad = Point(Scenario("bcast", 1, 2, 64), (DEFAULT,)), Point(Scenario("allreduce", 1, 2, 64), (DEFAULT, TREE))
    # 1 and 2 run at once; then each is alone: 3 is measured, 4 ends the job twice (again as 5), and its choices part.
    scripts = iter([[], answers(3, 0), [], answers(6, 0), []])
    with hearing(lambda: Scripted(next(scripts, ()))) as source:
        tickets = {source.begin(point, Effort(), (node,)) for node, point in enumerate((good, bad))}
        samples = []
        while tickets:
            answer = source.next_answer()
            samples += answer.samples
            tickets -= {answer.ticket} if answer.last else set()
    found = {(s.scenario.collective, s.choice): s.status for s in samples}
    assert found == {
        ("bcast", DEFAULT): Status.OK,
        ("allreduce", DEFAULT): Status.OK,
        ("allreduce", TREE): Status.CRASHED,
    }
