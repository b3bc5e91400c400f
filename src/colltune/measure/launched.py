"""Measures by launches: for a library whose algorithms are chosen when a job starts, and not while it runs.

Each launch runs under the rules of one column of a Latin square: every call that is measured in it has one of the
choices that are open there, every other call the default (docs/design/launches.md).
"""

import math
import random
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice

from colltune.core.decision_table import BySize, DecisionTable
from colltune.core.errors import LaunchError
from colltune.core.rules import RuleSet, Steps
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, SizeBasis, Status
from colltune.core.space import Point
from colltune.measure.contract import Answer, Effort, Launch, TimeIsUpError
from colltune.measure.launch_factor import LaunchFactors, ThisLaunch, calls_beside

Pair = tuple[Scenario, Choice]
_FEWEST = 16  # calls that are measured in a launch
_REDONE = 3  # of so many launches, one that others disturbed may be made again
_ENDING = frozenset({Status.CRASHED, Status.HUNG})
_UNSAID = "no file of this MPI can say it"


@dataclass(frozen=True)
class LaunchedPlan:
    """How a job is launched under rules.

    ``open``: a launch under these rules, whose default is what they say. ``in_force``: what is in force where rules are
    asked for, of which the (nodes, ppn) matter. ``basis``: the size by which a collective is decided. ``together``:
    scenarios of one key have one choice in a launch. ``on_event`` hears of choices that ended a launch.
    """

    open: Callable[[Mapping[str, RuleSet]], Launch]
    in_force: Callable[[RuleSet, Sequence[tuple[int, int]]], RuleSet]
    basis: Callable[[str], SizeBasis]
    together: Callable[[Scenario], Hashable]
    on_event: Callable[[str, Mapping[str, object]], None] = lambda _kind, _facts: None


@dataclass
class _Asked:
    """A point, with what is known of it by now. ``left``: the choices that were in no launch yet.

    ``place``: the call that has them. ``default``: of a pair, the call that runs the default in the same launch.
    """

    ticket: int
    point: Point
    effort: Effort
    place: Scenario
    left: list[Choice]
    default: Scenario | None = None
    samples: dict[Choice, Sample] = field(default_factory=dict)

    def part(self) -> None:
        """Measures each choice at the call itself, the default in a launch of its own."""
        self.place, self.default = self.point.scenario, None
        self.left = [*({DEFAULT} - self.samples.keys()), *self.left]


Column = list[tuple[_Asked, Choice]]


class LaunchedSource:
    """A Launch of which each answer comes from several launches of the job; ``until_s`` is of time.monotonic.

    A launch makes all times of a collective longer or shorter, so in each of them calls beside those that are measured
    run the default, and every time is divided by what these take over what they took in the first launch. A pair, the
    default and one choice, is in a single launch: one of them at the call, and the other at the call beside it.
    """

    def __init__(self, plan: LaunchedPlan, environment: Environment, seed: int) -> None:
        self._plan, self._environment = plan, environment
        self._random = random.Random(seed)
        self._asked: list[_Asked] = []
        self._answers: deque[Answer] = deque()
        self._tickets = count(1)
        self._ended: set[tuple[str, Choice]] = set()
        self._factors = LaunchFactors()
        self._turned: dict[Hashable, bool] = {}  # of pairs, which side has the choice
        # Seconds of a start, and of what is measured after it for each call; at first a guess.
        self._launch_s, self._call_s = 1.0, 1.0 / 64.0
        self.until_s = math.inf
        self._redone = 0
        self.ready: Mapping[str, str] = {}  # what the last launch said of itself
        self.disturbed = False
        self.launches = 0
        self.inside_s = 0.0

    @property
    def environment(self) -> Environment:
        return self._environment

    def start(self) -> Mapping[str, str]:
        """What a job says of itself; it ends again, since each launch has rules of its own."""
        if not self.launches:
            self._end(self._begun({}))
        return self.ready

    def kill(self) -> None:
        """Nothing runs between two calls."""

    def close(self) -> None:
        """The same."""

    def begin(self, point: Point, effort: Effort, nodes: Sequence[int] | None = None) -> int:  # noqa: ARG002
        """On the first nodes: what is begun goes into the same launches, one after another."""
        left = [c for c in point.choices if c == DEFAULT or (point.scenario.collective, c) not in self._ended]
        ticket = next(self._tickets)
        point = replace(point, choices=tuple(left))
        asked = _Asked(ticket, point, effort, point.scenario, left)
        beside = (
            calls_beside(point.scenario) if self._plan.basis(point.scenario.collective) is not SizeBasis.NONE else []
        )
        if len(left) == 2 and DEFAULT in left and beside:
            sides = [point.scenario, beside[0]]
            # Where rules do not tell shapes apart, all shapes of a size are in the same launch.
            turned = self._turned.setdefault(self._plan.together(point.scenario), self._random.random() < 0.5)
            asked.place, asked.default = sides[::-1] if turned else sides
            asked.left = [choice for choice in left if choice != DEFAULT]
        self._asked.append(asked)
        return ticket

    def next_answer(self) -> Answer:
        while not self._answers:
            if not self._asked:
                raise ValueError("nothing was begun")
            self._launch()
        return self._answers.popleft()

    def measure(self, points: Iterable[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        """Has as many points open at once as are measured in the time that a launch takes.

        Of a point at which its time was over it gives what there is.
        """
        following = iter(points)
        while True:
            while self._answers:
                answer = self._answers.popleft()
                if answer.point.choices:
                    yield answer.point, answer.samples
            most = max(_FEWEST, int(self._launch_s / self._call_s))
            for point in islice(following, max(most - len(self._asked), 0)):
                self.begin(point, effort)
            if not self._asked:
                return
            try:
                self._launch()
            except TimeIsUpError:
                break
        for asked in (asked for asked in self._asked if asked.samples):
            yield replace(asked.point, choices=tuple(asked.samples)), list(asked.samples.values())
        self._asked.clear()

    def _launch(self) -> None:
        """One launch: of what is open, as much as it can hold. Raises TimeIsUpError."""
        for asked in [asked for asked in self._asked if not asked.left]:
            self._finish(asked)
        if not self._asked or self._answers:
            return
        if time.monotonic() >= self.until_s:
            raise TimeIsUpError
        column = self._column()
        answers = self._rules_of({asked.place: choice for asked, choice in column})
        held = [
            (asked, choice)
            for asked, choice in column
            if all(
                answers[place.collective].evaluate(place) == c
                for place, c in ((asked.place, choice), (asked.default, DEFAULT))
                if place
            )
        ]
        if held:
            self._measure_in(held, answers)
        elif column[0][0].default is not None:
            column[0][0].part()
        else:
            self._untimed(*column[0], Status.UNMEASURED, _UNSAID)

    def _column(self) -> Column:
        """The choice of each place in the next launch: of its open ones, by turns from one point to the next."""
        column: Column = []
        whole: dict[Hashable, Choice] = {}
        taken: set[Scenario] = set()
        for number, asked in enumerate(self._asked):
            key = self._plan.together(asked.place)
            choice = whole.get(key, asked.left[(self.launches + number) % len(asked.left)])
            keys = {key: choice} | ({} if asked.default is None else {self._plan.together(asked.default): DEFAULT})
            if asked.place not in taken and choice in asked.left and all(whole.get(k, c) == c for k, c in keys.items()):
                taken.add(asked.place)
                whole |= keys
                column.append((asked, choice))
        return column

    def _rules_of(self, column: Mapping[Scenario, Choice]) -> dict[str, RuleSet]:
        """The rules that a launch with ``column`` runs under."""
        shapes: dict[str, dict[tuple[int, int], list[tuple[int, Choice]]]] = {}
        for scenario, choice in column.items():
            of_shape = shapes.setdefault(scenario.collective, {}).setdefault((scenario.nodes, scenario.ppn), [])
            of_shape.append((scenario.basis_bytes(self._plan.basis(scenario.collective)), choice))

        def steps(name: str, sizes: list[tuple[int, Choice]]) -> BySize:
            if self._plan.basis(name) is SizeBasis.NONE:
                return Steps.always(sizes[0][1])
            bounds = [pair for size, choice in sorted(sizes) for pair in ((size - 1, DEFAULT), (size, choice))]
            return Steps.of([*bounds, (None, DEFAULT)])

        tables = {
            name: DecisionTable.of_shapes(
                name, self._plan.basis(name), {shape: steps(name, sizes) for shape, sizes in some.items()}
            )
            for name, some in shapes.items()
        }
        return {name: self._plan.in_force(table.rule_set(), sorted(shapes[name])) for name, table in tables.items()}

    def _measure_in(self, column: Column, rules: Mapping[str, RuleSet]) -> None:
        """Raises TimeIsUpError, and LaunchError where no job runs the default."""
        column = self._random.sample(column, len(column))
        non_default = {name: of_name for name, of_name in rules.items() if of_name.departs}
        taken: list[tuple[_Asked, Choice, Sample]] = []
        references: dict[Scenario, Sample] = {}
        failure = source = None
        ended = False
        try:
            source = self._begun(non_default)
            beside = self._factors.references([asked.place for asked, _ in column if asked.default is None], rules)
            began_s = time.monotonic()
            for asked, choice in column:
                if (reference := beside.get(asked.place)) is not None:
                    sample = _default(source, Point(reference, (DEFAULT,)), asked.effort)
                    references |= {} if sample is None else {reference: sample}
                calls = [(asked.place, choice), *([] if asked.default is None else [(asked.default, DEFAULT)])]
                samples = list(_called(source, asked, self._random.sample(calls, len(calls))))
                ended = any(sample.status in _ENDING for _, _, sample in samples)
                if len(samples) < len(calls) and not ended:
                    break
                taken += samples
                if ended:
                    break
        except LaunchError as error:
            failure = error
        finally:
            most = sum(1 if asked.default is None else 2 for asked, _ in column)
            if taken:
                self._call_s = max(time.monotonic() - began_s, 1e-6) / len(taken)
            whole, ended = len(taken) == most, ended or failure is not None
            again = source is not None and self._end(source, whole=not ended and whole)
        if again:
            return
        self._take(taken, self._factors.take(references.values()))
        if failure is not None:
            self._blame_one_of(column, failure)
        elif not ended and not whole:
            raise TimeIsUpError

    def _take(self, taken: Iterable[tuple[_Asked, Choice, Sample]], launch: ThisLaunch) -> None:
        for asked, choice, sample in taken:
            where = f"at {sample.scenario.size_bytes} B" if sample.scenario != asked.point.scenario else ""
            sample = sample if asked.default is not None else launch.in_first(sample)
            sample = replace(sample, scenario=asked.point.scenario, choice=choice, detail=sample.detail or where)
            sample = replace(sample, launch=asked.ticket, group=asked.ticket)
            if sample.status in _ENDING:
                self._exclude(asked, sample)
            else:
                asked.left = [c for c in asked.left if c != choice]
                asked.samples[choice] = sample

    def _exclude(self, asked: _Asked, sample: Sample) -> None:
        """Tells of a choice that ended the job, at once, and leaves it out of all that is open."""
        name, choice = sample.scenario.collective, sample.choice
        self._plan.on_event("quarantine", {"scenario": str(sample.scenario), "choice": str(choice)})
        self._answers.append(Answer(asked.ticket, asked.point, [sample], last=False))
        if choice == DEFAULT:
            others: list[_Asked] = [asked]
        else:
            self._ended.add((name, choice))
            others = [other for other in self._asked if other.point.scenario.collective == name]
        for other in others:
            if other.default is not None and choice in (DEFAULT, *other.left):
                other.part()
            other.left = [c for c in other.left if c != choice]
            if choice not in other.samples:
                other.point = replace(other.point, choices=tuple(c for c in other.point.choices if c != choice))

    def _untimed(self, asked: _Asked, choice: Choice, status: Status, why: str) -> None:
        sample = Sample(asked.point.scenario, choice, status, launch=asked.ticket, group=asked.ticket, detail=why[:400])
        if status is Status.CRASHED:
            self._exclude(asked, sample)
        else:
            asked.left.remove(choice)
            asked.samples[choice] = sample

    def _blame_one_of(self, column: Column, error: LaunchError) -> None:
        """After a job that did not start, or ended at the agent's own calls: each choice is tried by itself.

        Raises the error where none but the default was asked for.
        """
        tried: dict[tuple[str, Choice], Column] = {}
        for asked, choice in column:
            if choice != DEFAULT:
                tried.setdefault((asked.place.collective, choice), []).append((asked, choice))
        if not tried:
            raise error
        for alone in tried.values():
            left = [(asked, choice) for asked, choice in alone if choice in asked.left]
            if left and len(tried) == 1:
                self._untimed(*left[0], Status.CRASHED, error.what)
            elif left:
                self._measure_in(left, self._rules_of({asked.place: choice for asked, choice in left}))

    def _finish(self, asked: _Asked) -> None:
        self._asked.remove(asked)
        samples = [asked.samples[choice] for choice in asked.point.choices]
        self._answers.append(Answer(asked.ticket, asked.point, samples, last=True))

    def _begun(self, rules: Mapping[str, RuleSet]) -> Launch:
        began_s = time.monotonic()
        source = self._plan.open(rules)
        self.launches += 1
        try:
            ready = source.start()
        except LaunchError:
            source.close()
            raise
        self.ready = ready if isinstance(ready, Mapping) else {}
        self._launch_s = time.monotonic() - began_s
        return source

    def _end(self, source: Launch, *, whole: bool = False) -> bool:
        """Whether all is to be measured again that was, since others disturbed it; ``whole``: it went to its end."""
        source.close()
        self.inside_s += source.inside_s
        again = whole and source.disturbed and _REDONE * self._redone < self.launches
        self._redone += again
        self.disturbed = self.disturbed or (source.disturbed and not again)
        return again


def _called(
    source: Launch, asked: _Asked, calls: Iterable[tuple[Scenario, Choice]]
) -> Iterator[tuple[_Asked, Choice, Sample]]:
    """The samples of ``one``, until its time is over or a call ended the job."""
    for place, choice in calls:
        sample = _default(source, replace(asked.point, scenario=place, choices=(DEFAULT,)), asked.effort)
        if sample is None:
            return
        yield asked, choice, sample
        if sample.status in _ENDING:
            return


def _default(source: Launch, point: Point, effort: Effort) -> Sample | None:
    """The default of ``point``; None once the source's time is over."""
    samples = [sample for _, taken in source.measure([point], effort) for sample in taken]
    return samples[0] if samples else None
