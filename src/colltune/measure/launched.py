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
from statistics import median

from colltune.core.decision_table import BySize, DecisionTable
from colltune.core.errors import LaunchError
from colltune.core.rules import RuleSet, Steps
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, SizeBasis, Status, element_bytes
from colltune.core.space import Point
from colltune.measure.contract import Answer, Effort, Launch, TimeIsUpError

Pair = tuple[Scenario, Choice]
# The fewest calls that are measured in a launch, and those of each collective and shape that tell what it does to all.
_FEWEST, _REFERENCES = 16, 5
_REDONE = 3  # of so many launches, one that others disturbed may be made again
_ENDING = frozenset({Status.CRASHED, Status.HUNG})
_UNSAID = "no file of this MPI can say it"


@dataclass(frozen=True)
class LaunchedPlan:
    """How a job is launched under rules.

    ``open``: a launch under these rules, whose default is what they say. ``said``: what is in force where rules are
    asked for, of which the (nodes, ppn) matter. ``basis``: the size by which a collective is decided. ``together``:
    scenarios of one key have one choice in a launch. ``on_event`` hears of choices that ended a launch.
    """

    open: Callable[[Mapping[str, RuleSet]], Launch]
    said: Callable[[RuleSet, Sequence[tuple[int, int]]], RuleSet]
    basis: Callable[[str], SizeBasis]
    together: Callable[[Scenario], Hashable]
    on_event: Callable[[str, Mapping[str, object]], None] = lambda _kind, _facts: None


@dataclass
class _Asked:
    """A point, with what is known of it by now. ``left``: the choices that were in no launch yet."""

    ticket: int
    point: Point
    effort: Effort
    group: int
    left: list[Choice]
    samples: dict[Choice, Sample] = field(default_factory=dict)


class LaunchedSource:
    """A Launch of which each answer comes from several launches of the job; ``until_s`` is of time.monotonic.

    A launch makes all times of a collective longer or shorter, so in each of them calls beside those that are measured
    run the default, and every time is divided by what these take over what they took in the first launch.
    """

    def __init__(self, plan: LaunchedPlan, environment: Environment, seed: int) -> None:
        self._plan, self._environment = plan, environment
        self._random = random.Random(seed)
        self._asked: list[_Asked] = []
        self._answers: deque[Answer] = deque()
        self._tickets = count(1)
        self._ended: set[tuple[str, Choice]] = set()
        self._first_s: dict[Scenario, float] = {}  # by reference
        self._idle: Launch | None = None  # one that was started, and that runs the default everywhere
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
        if self._idle is None:
            self._idle = self._begun({})
        return self.ready

    def kill(self) -> None:
        if self._idle is not None:
            self._idle.kill()
            self._idle = None

    def close(self) -> None:
        if self._idle is not None:
            self._end(self._idle)
            self._idle = None

    def begin(self, point: Point, effort: Effort, nodes: Sequence[int] | None = None) -> int:  # noqa: ARG002
        """On the first nodes: what is begun goes into the same launches, one after another."""
        left = [c for c in point.choices if c == DEFAULT or (point.scenario.collective, c) not in self._ended]
        ticket = next(self._tickets)
        point = replace(point, choices=tuple(left))
        self._asked.append(_Asked(ticket, point, effort, ticket, left))
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
        for one in (one for one in self._asked if one.samples):
            yield replace(one.point, choices=tuple(one.samples)), list(one.samples.values())
        self._asked.clear()

    def _launch(self) -> None:
        """One launch: of what is open, as much as it can hold. Raises TimeIsUpError."""
        for one in [one for one in self._asked if not one.left]:
            self._finish(one)
        if not self._asked or self._answers:
            return
        if time.monotonic() >= self.until_s:
            raise TimeIsUpError
        column = self._column()
        said = self._said(column)
        held = {scenario: c for scenario, c in column.items() if said[scenario.collective].evaluate(scenario) == c}
        if not held:
            scenario, choice = next(iter(column.items()))
            self._untimed(scenario, choice, Status.UNMEASURED, _UNSAID)
            return
        self._measure_in(held, said)

    def _column(self) -> dict[Scenario, Choice]:
        """The choice of each scenario in the next launch: of its open ones, by turns from one scenario to the next."""
        column: dict[Scenario, Choice] = {}
        whole: dict[Hashable, Choice] = {}
        for number, one in enumerate(self._asked):
            scenario = one.point.scenario
            if scenario in column:
                continue
            choice = whole.setdefault(self._plan.together(scenario), one.left[(self.launches + number) % len(one.left)])
            if choice in one.left:
                column[scenario] = choice
        return column

    def _said(self, column: Mapping[Scenario, Choice]) -> dict[str, RuleSet]:
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
        return {name: self._plan.said(table.rule_set(), sorted(shapes[name])) for name, table in tables.items()}

    def _measure_in(self, column: Mapping[Scenario, Choice], rules: Mapping[str, RuleSet]) -> None:
        """Raises TimeIsUpError, and LaunchError where no job runs the default."""
        wanted = [one for one in self._asked if column.get(one.point.scenario) in one.left]
        self._random.shuffle(wanted)
        departing = {name: one for name, one in rules.items() if one.departs}
        taken: dict[int, Sample] = {}
        references: dict[Scenario, Sample] = {}
        failure = source = None
        try:
            source = self._source(departing) if wanted else None
            beside = self._references([one.point.scenario for one in wanted], rules)
            began_s = time.monotonic()
            for one in wanted:
                assert source is not None
                if (reference := beside.get(one.point.scenario)) is not None:
                    sample = _default(source, Point(reference, (DEFAULT,)), one.effort)
                    references |= {} if sample is None else {reference: sample}
                sample = _default(source, replace(one.point, choices=(DEFAULT,)), one.effort)
                if sample is None:
                    break
                taken[one.ticket] = sample
                if sample.status in _ENDING:
                    break
        except LaunchError as error:
            failure = error
        finally:
            if taken:
                self._call_s = max(time.monotonic() - began_s, 1e-6) / len(taken)
            ended = failure is not None or any(sample.status in _ENDING for sample in taken.values())
            again = False
            if source is not None and (departing or ended):
                again = self._end(source, whole=not ended and len(taken) == len(wanted))
            elif source is not None:
                self._idle = source
        if again:
            return
        self._take(column, wanted, taken, self._factors(references.values()))
        if failure is not None:
            self._blame_one_of(column, failure)
        elif not ended and len(taken) < len(wanted):
            raise TimeIsUpError

    def _references(self, scenarios: Sequence[Scenario], rules: Mapping[str, RuleSet]) -> dict[Scenario, Scenario]:
        """Calls at default beside some of ``scenarios``: those that earlier launches measured too, then others."""
        found = {one: beside for one in scenarios if (beside := self._reference(one, rules)) is not None}
        chosen: dict[tuple[str, int, int], dict[Scenario, Scenario]] = {}
        for one, beside in sorted(found.items(), key=lambda both: both[1] not in self._first_s):
            of_place = chosen.setdefault((one.collective, one.nodes, one.ppn), {})
            if len(of_place) < _REFERENCES and beside not in of_place.values():
                of_place[one] = beside
        return {one: beside for of_place in chosen.values() for one, beside in of_place.items()}

    def _reference(self, scenario: Scenario, rules: Mapping[str, RuleSet]) -> Scenario | None:
        """A call at default beside ``scenario``, an element shorter or longer; None where there is none."""
        element = element_bytes(scenario.collective)
        for size in (scenario.size_bytes - element, scenario.size_bytes + element):
            beside = replace(scenario, size_bytes=max(size, 0))
            if scenario.size_bytes and size >= element and rules[scenario.collective].evaluate(beside) == DEFAULT:
                return beside
        return None

    def _factors(self, references: Iterable[Sample]) -> dict[tuple[str, int, int], float]:
        """How many times as long calls take in this launch as in the first one, by collective and shape."""
        taken_s = {sample.scenario: sample.time_s for sample in references if sample.status is Status.OK}
        logs: dict[tuple[str, int, int], list[float]] = {}
        for reference, time_s in taken_s.items():
            place = (reference.collective, reference.nodes, reference.ppn)
            known = logs.setdefault(place, [])
            if reference in self._first_s:
                known.append(math.log(time_s / self._first_s[reference]))
        factors = {place: math.exp(median(known)) if known else 1.0 for place, known in logs.items()}
        for reference, time_s in taken_s.items():
            factor = factors[reference.collective, reference.nodes, reference.ppn]
            self._first_s.setdefault(reference, time_s / factor)
        return factors

    def _take(
        self,
        column: Mapping[Scenario, Choice],
        wanted: Sequence[_Asked],
        taken: Mapping[int, Sample],
        factors: Mapping[tuple[str, int, int], float],
    ) -> None:
        for one in wanted:
            scenario = one.point.scenario
            sample = taken.get(one.ticket)
            if sample is None:
                continue
            factor = factors.get((scenario.collective, scenario.nodes, scenario.ppn), 1.0)
            sample = replace(_over(sample, factor), choice=column[scenario], launch=one.group, group=one.group)
            if sample.status in _ENDING:
                self._distrust(one, sample)
            else:
                one.left.remove(sample.choice)
                one.samples[sample.choice] = sample

    def _distrust(self, one: _Asked, sample: Sample) -> None:
        """Tells of a choice that ended the job, at once, and leaves it out of all that is open."""
        name, choice = sample.scenario.collective, sample.choice
        self._plan.on_event("quarantine", {"scenario": str(sample.scenario), "choice": str(choice)})
        self._answers.append(Answer(one.ticket, one.point, [sample], last=False))
        if choice == DEFAULT:
            others: list[_Asked] = [one]
        else:
            self._ended.add((name, choice))
            others = [other for other in self._asked if other.point.scenario.collective == name]
        for other in others:
            other.left = [c for c in other.left if c != choice]
            if choice not in other.samples:
                other.point = replace(other.point, choices=tuple(c for c in other.point.choices if c != choice))

    def _untimed(self, scenario: Scenario, choice: Choice, status: Status, why: str) -> None:
        for one in self._asked:
            if one.point.scenario == scenario and choice in one.left:
                sample = Sample(scenario, choice, status, launch=one.group, group=one.group, detail=why[:400])
                if status is Status.CRASHED:
                    self._distrust(one, sample)
                    return
                one.left.remove(choice)
                one.samples[choice] = sample

    def _blame_one_of(self, column: Mapping[Scenario, Choice], error: LaunchError) -> None:
        """After a job that did not start, or ended at the agent's own calls: each choice is tried by itself.

        Raises the error where none but the default was asked for.
        """
        tried = {(s.collective, c): s for s, c in column.items() if c != DEFAULT}
        if not tried:
            raise error
        if len(tried) == 1:
            ((_, choice), scenario), *_ = tried.items()
            self._untimed(scenario, choice, Status.CRASHED, error.what)
            return
        for (name, choice), _ in tried.items():
            alone = {s: c for s, c in column.items() if (s.collective, c) == (name, choice)}
            self._measure_in(alone, self._said(alone))

    def _finish(self, one: _Asked) -> None:
        self._asked.remove(one)
        samples = [one.samples[choice] for choice in one.point.choices]
        self._answers.append(Answer(one.ticket, one.point, samples, last=True))

    def _source(self, rules: Mapping[str, RuleSet]) -> Launch:
        """A launch under ``rules``; that of before where both have none."""
        source, self._idle = self._idle, None
        if source is not None and not rules:
            return source
        if source is not None:
            self._end(source)
        return self._begun(rules)

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


def _default(source: Launch, point: Point, effort: Effort) -> Sample | None:
    """The default of ``point``; None once the source's time is over."""
    found = [sample for _, samples in source.measure([point], effort) for sample in samples]
    return found[0] if found else None


def _over(sample: Sample, factor: float) -> Sample:
    """``sample`` in a launch in which calls take ``factor`` times as long as in the first one."""
    views = {
        name: value / factor
        for name in ("back_to_back_s", "osu_mean_s", "skewed_s", "kept_s", "untouched_s")
        if (value := getattr(sample, name)) is not None
    }
    return replace(sample, times_s=tuple(time_s / factor for time_s in sample.times_s), **views)
