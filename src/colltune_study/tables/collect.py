"""Collects the exhaustive table: every legal choice at every scenario. What `colltune study collect` does."""

import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from colltune.bench.workbench import Workbench
from colltune.core.errors import InputError
from colltune.core.medians import broken_choices
from colltune.core.sample import DEFAULT, Environment, Sample, Scenario, Status, element_bytes
from colltune.core.space import Point, Space, counts, message_sizes, powers_of_two
from colltune.core.stop import INTERRUPTIONS, StopRequest
from colltune.measure.contract import Effort, Source
from colltune.search.campaign import Progress
from colltune.session.arguments import LARGEST_BYTES
from colltune.store.journal import Journal
from colltune_study.simulated.simulated_cluster import Simulation
from colltune_study.tables.table import require_format, rows_of, save_rows

OnEvent = Callable[[str, Mapping[str, object]], None]


@dataclass(frozen=True)
class Subject:
    """What is measured: the MPI of this job, or a simulated cluster.

    ``nodes``, ``ppn``: the largest shape. ``space``: makes the space over given scenarios of a collective.
    ``open_source``: opens a source for a seed, reports its events, and closes it at the end.
    """

    environment: Environment
    cluster: str
    nodes: int
    ppn: int
    space: Callable[[str, Sequence[Scenario]], Space]
    open_source: Callable[[int, OnEvent], AbstractContextManager[Source]]


@dataclass(frozen=True)
class CollectOptions:
    """What to collect. ``between``: how many other sizes between each two powers of two, chosen by ``seed``.

    ``node_counts``, ``ppn_counts``: None for powers of two, node counts half way between them, and the largest.
    """

    collectives: Sequence[str]
    smallest_bytes: int = 1
    largest_bytes: int = LARGEST_BYTES
    between: int = 1
    node_counts: Sequence[int] | None = None
    ppn_counts: Sequence[int] | None = None
    budget_s: float = math.inf
    resume: bool = False
    seed: int = 1
    effort: Effort = field(default_factory=Effort)


@dataclass(frozen=True)
class Collected:
    """``rows`` are in the table; ``failed`` pairs have no time; ``missing`` pairs were not reached in time."""

    rows: int
    failed: int
    missing: int
    elapsed_s: float
    interrupted: bool


def live_subject(bench: Workbench, cluster: str) -> Subject:
    """The MPI of this job."""

    @contextmanager
    def open_source(seed: int, on_event: OnEvent) -> Iterator[Source]:
        source = bench.launch(seed, on_event=on_event)
        try:
            yield source
        except BaseException:
            source.kill()
            raise
        source.close()

    def space(collective: str, scenarios: Sequence[Scenario]) -> Space:
        return Space(collective, tuple(scenarios), bench.legal)

    return Subject(bench.environment, cluster, bench.nodes, bench.ppn, space, open_source)


def simulated_subject(simulation: Simulation, cluster: str = "") -> Subject:
    """A simulated cluster. Its times have no noise, so one repetition is enough."""

    @contextmanager
    def open_source(seed: int, on_event: OnEvent) -> Iterator[Source]:
        del on_event
        try:
            yield simulation.source(seed)
        finally:
            simulation.close()

    machine = simulation.cluster
    return Subject(
        simulation.environment, cluster or machine.text, machine.nodes, machine.ppn, simulation.space_over, open_source
    )


def journal_of(out: Path) -> Path:
    """Where the measurements of a table are kept while it is collected, and after."""
    return out.with_name(f"{out.name}.journal.jsonl")


def scenarios_of(collective: str, subject: Subject, options: CollectOptions) -> list[Scenario]:
    """The grid of one collective: shapes from small to large, each with all sizes."""
    node_counts = options.node_counts or counts(subject.nodes)
    ppn_counts = options.ppn_counts or powers_of_two(subject.ppn)
    for name, given, most in (("nodes", node_counts, subject.nodes), ("ppn", ppn_counts, subject.ppn)):
        if not all(1 <= count <= most for count in given):
            raise InputError(f"cannot collect {name} {', '.join(map(str, given))}: there are 1 to {most}")
    sizes = sizes_of(collective, options)
    shapes = sorted({(n, p) for n in node_counts for p in ppn_counts if n * p > 1}, key=lambda s: (s[0] * s[1], s))
    return [Scenario(collective, n, p, size) for n, p in shapes for size in sizes]


def sizes_of(collective: str, options: CollectOptions) -> list[int]:
    """Powers of two, the two bounds, and ``options.between`` sizes in each gap; equal for all shapes."""
    sizes = set(message_sizes(collective, options.smallest_bytes, options.largest_bytes))
    element = element_bytes(collective)
    for low, high in zip(sorted(sizes), sorted(sizes)[1:], strict=False):
        inside = range((low // element + 1) * element, high, element)
        # A generator for each gap: its sizes do not depend on the bounds.
        draw = random.Random(f"{options.seed} {collective} {low}")
        sizes |= set(draw.sample(inside, min(options.between, len(inside))))
    return sorted(sizes)


def collect(
    subject: Subject,
    options: CollectOptions,
    out: Path,
    progress: Callable[[Progress], None] = lambda _progress: None,
    clock: Callable[[], float] = time.monotonic,
    stop: StopRequest | None = None,
) -> Collected:
    """Measures the whole grid and writes the table to ``out``, after a time-out with the rows measured until then.

    Raises ColltuneError; the samples until then are in the journal, and ``options.resume`` goes on from it.
    """
    require_format(out)
    if options.largest_bytes < options.smallest_bytes:
        raise InputError("the largest message is smaller than the smallest", "Give for example --max-size 1MiB")
    spaces = {name: subject.space(name, scenarios_of(name, subject, options)) for name in options.collectives}
    with Journal.begin(journal_of(out), subject.environment, options.resume) as journal:
        collection = _Collection(subject, options, spaces, journal, progress, clock, stop or StopRequest())
        try:
            collection.run()
        finally:
            samples = journal.samples
            rows = rows_of(samples, subject.environment, subject.cluster)
            if rows:
                save_rows(out, rows)
    failed = sum(sample.status is not Status.OK for sample in samples)
    return Collected(len(rows), failed, collection.missing, collection.elapsed_s, collection.interrupted)


class _Collection:
    """One run over the missing pairs."""

    def __init__(
        self,
        subject: Subject,
        options: CollectOptions,
        spaces: Mapping[str, Space],
        journal: Journal,
        progress: Callable[[Progress], None],
        clock: Callable[[], float],
        stop: StopRequest,
    ) -> None:
        self._subject, self._options, self._journal = subject, options, journal
        self._progress, self._clock, self._stop = progress, clock, stop
        self._done = {(sample.scenario, sample.choice) for sample in journal.samples}
        self._broken = broken_choices(journal.samples)
        # A launch has one number in the whole table, however often the collection is resumed.
        self._launches_before = max((sample.launch for sample in journal.samples), default=0)
        self._wanted = [pair for space in spaces.values() for pair in space.pairs()]
        self._points = [
            Point(scenario, choices)
            for space in spaces.values()
            for scenario in space.scenarios
            if (choices := tuple(c for c in space.choices(scenario) if (scenario, c) not in self._done))
        ]
        self.elapsed_s = 0.0
        self.interrupted = False

    @property
    def missing(self) -> int:
        """Pairs that were neither measured nor excluded by a failure."""
        return sum(
            (scenario, choice) not in self._done and (scenario.collective, choice) not in self._broken
            for scenario, choice in self._wanted
        )

    def run(self) -> None:
        self._started_s = self._clock()
        if not self._points:
            return
        try:
            with self._stop.cuts(), self._subject.open_source(self._options.seed, self._note) as source:
                for point, samples in source.measure(self._in_time(), self._options.effort):
                    self._take(point, samples)
        except INTERRUPTIONS:
            self.interrupted = True
        finally:
            self.elapsed_s = self._clock() - self._started_s

    def _in_time(self) -> Iterator[Point]:
        for point in self._points:
            if self._clock() - self._started_s >= self._options.budget_s:
                return
            collective = point.scenario.collective
            yield replace(point, choices=tuple(c for c in point.choices if (collective, c) not in self._broken))

    def _take(self, point: Point, samples: Sequence[Sample]) -> None:
        if not samples:
            return
        samples = [replace(sample, launch=sample.launch + self._launches_before) for sample in samples]
        self._journal.append(samples)
        self._broken |= broken_choices(samples)
        self._done |= {(sample.scenario, sample.choice) for sample in samples}
        times = {sample.choice: sample.time_s for sample in samples if sample.status is Status.OK}
        best = min(times, key=lambda choice: times[choice]) if times else None
        self._progress(
            Progress(
                point.scenario.collective,
                point.scenario,
                pairs_done=len(self._done),
                pairs_total=len(self._wanted),
                elapsed_s=self._clock() - self._started_s,
                budget_s=self._options.budget_s,
                best=best,
                speedup=times[DEFAULT] / times[best] if best is not None and DEFAULT in times else None,
            )
        )

    def _note(self, kind: str, facts: Mapping[str, object]) -> None:
        self._journal.note(kind, {name: str(value) for name, value in facts.items()})
