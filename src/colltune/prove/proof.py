"""The proof within the time that is left: choices in fresh launches first, then the files that a library loads."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Protocol

from colltune.bench.contract import Bench, LibraryBench
from colltune.core.choice import Choice
from colltune.core.errors import LaunchError
from colltune.core.medians import medians_of
from colltune.core.proven import ProvenDecision, Verdict, fewest_groups
from colltune.core.rules import RuleSet
from colltune.core.sample import Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import weight_of
from colltune.core.stop import INTERRUPTIONS, StopRequest
from colltune.measure.contract import Effort, Source
from colltune.prove.candidates import provisional
from colltune.prove.fresh_launches import Confirmation
from colltune.prove.in_force import InForce
from colltune.prove.time_plan import FEWEST_FILE_LAUNCHES, FEWEST_PROOF_LAUNCHES, PROOF_LAUNCHES
from colltune.store.journal import Journal
from colltune.store.tuning import CONFIRMATION, Tuning

EFFORT = Effort(relative_width=0.02, box_s=0.01, fewest=20, most=200)
# Of the time for the proof, what is kept for the comparison of the files, and what launches may take before there are
# fewer of them.
_IN_FORCE_SHARE, _LAUNCH_SHARE = 0.3, 0.3
# The comparison of the files has so many launches with the file and as many without, and a little to measure in each.
_FILES_LAUNCHES = 2 * FEWEST_FILE_LAUNCHES * 1.2
_LEAST_GAIN = 0.02
# Of the time for fresh launches, what is kept for the edge of the space, the whole job with its greatest sizes. Its
# calls take longest, so by gain for the time they would come last, and models are at their worst there.
_EDGE_SHARE, _EDGE_SIZES = 0.3, 2
_UNCOMPARED = "the files were not compared with none"

Rules = Callable[[Sequence[ProvenDecision]], Mapping[str, RuleSet]]
Emit = Callable[[Mapping[str, RuleSet]], Tuning]


@dataclass(frozen=True)
class Judged:
    """Verdicts. ``rest_s``: what the comparisons would take that those need for which there was no time."""

    gate: Sequence[ProvenDecision]
    rest_s: float


@contextmanager
def workplace(out: Path) -> Iterator[Path]:
    """A directory beside the result, on the same file system, which all nodes see; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=".trial-", dir=out) as place:
        yield Path(place)


class Audience(Protocol):
    """Hears of what goes on."""

    @property
    def stage(self) -> Callable[[str], None]: ...

    @property
    def note(self) -> Callable[[str], None]: ...

    @property
    def proof(self) -> Callable[[Sequence[ProvenDecision]], None]: ...


@dataclass(frozen=True)
class Proof:
    """Puts candidates to the proof until ``deadline_s`` (on the bench's clock), the most gain for their time first.

    What outlasts a stage by ``grace_s`` is cut off. ``samples``: what the campaign measured, with ``effort``.
    ``launch_s``: what a launch takes. ``grid``: every scenario that was looked at. ``listener`` hears of what goes on;
    ``stop`` cuts it off.
    """

    bench: Bench
    out: Path
    seed: int
    threshold: float
    deadline_s: float
    grace_s: float
    launch_s: float
    samples: Sequence[Sample]
    effort: Effort
    grid: Sequence[Scenario]
    listener: Audience
    stop: StopRequest

    @cached_property
    def medians(self) -> Mapping[tuple[Scenario, Choice], float]:
        """Seconds by pair, of what the campaign measured."""
        return medians_of(self.samples)

    def run(self, candidates: Mapping[Scenario, Choice], rules_of: Rules, emit: Emit) -> list[ProvenDecision]:
        """The verdict on each candidate."""
        return list(self.judge(candidates, rules_of, emit).gate)

    def judge(self, candidates: Mapping[Scenario, Choice], rules_of: Rules, emit: Emit) -> Judged:
        """The verdicts, and what it would have taken to reach one on every candidate."""
        if not candidates:
            return Judged([], 0.0)
        library = self.bench.library
        left_s = max(self.deadline_s - self.bench.now_s(), 0.0)
        files_s = 0.0 if library is None else max(_IN_FORCE_SHARE * left_s, _FILES_LAUNCHES * self.launch_s)
        candidates = self._in_order(candidates, left_s - files_s)
        gate, rest_s = self._in_fresh_launches(candidates, self.deadline_s - files_s)
        return Judged(gate if library is None else self._compared(library, gate, rules_of, emit), rest_s)

    def _compared(
        self, library: LibraryBench, gate: Sequence[ProvenDecision], rules_of: Rules, emit: Emit
    ) -> list[ProvenDecision]:
        """``gate`` after the comparison of the files, where there is anything to compare."""
        if self.stop.made:
            return provisional(gate, _UNCOMPARED)
        if not any(result.verdict is Verdict.KEPT for result in gate):
            return list(gate)
        self.listener.stage("comparing the file in force with the default")
        try:
            with self.stop.cuts(), workplace(self.out) as place:
                return self._in_force(library, place, rules_of, emit).keep_what_pays(gate)
        except INTERRUPTIONS:
            self.listener.note("the comparison of the files was cut off, so nothing is proven")
            return provisional(gate, _UNCOMPARED)

    def _in_force(self, library: LibraryBench, place: Path, rules_of: Rules, emit: Emit) -> InForce:
        return InForce(
            bench=library,
            rules_of=rules_of,
            emit=emit,
            workplace=place,
            grid=self.grid,
            threshold=self.threshold,
            seed=self.seed,
            launch_s=self.launch_s,
            time_s=lambda scenario: self._overhead * self._default_s(scenario),
            deadline_s=self.deadline_s,
            grace_s=self.grace_s,
        )

    def _fresh_launches(self, deadline_s: float) -> int:
        if PROOF_LAUNCHES * self.launch_s <= _LAUNCH_SHARE * (deadline_s - self.bench.now_s()):
            return PROOF_LAUNCHES
        self.listener.note(
            f"a launch takes {self.launch_s:.1f} s, so the proof has {FEWEST_PROOF_LAUNCHES} of them in place of "
            f"{PROOF_LAUNCHES}"
        )
        return FEWEST_PROOF_LAUNCHES

    def _in_fresh_launches(
        self, candidates: Mapping[Scenario, Choice], deadline_s: float
    ) -> tuple[list[ProvenDecision], float]:
        """The verdicts, and what the comparisons would take that are still missing."""
        self.listener.stage(f"proving {len(candidates)} choices against the default in fresh launches")
        launches = self._fresh_launches(deadline_s)
        seeds = iter(range(self.seed + 1, self.seed + 1000))

        def open_source() -> Source:
            source = self.bench.launch(next(seeds))
            source.until_s = deadline_s + self.grace_s
            return source

        with Journal.begin(self.out / CONFIRMATION, self.bench.environment, resume=True) as journal:
            confirmation = Confirmation(
                open_source=open_source,
                record=journal.append,
                baseline=self.bench.baseline,
                threshold=self.threshold,
                progress=self.listener.proof,
                effort=EFFORT,
                launches=launches,
                launch_s=self.launch_s,
                clock=self.bench.now_s,
                cost_s=lambda scenario: self._group_s(scenario, candidates[scenario]),
            )
            try:
                with self.stop.cuts():
                    return confirmation.run(candidates, deadline_s), confirmation.rest_s(candidates)
            except (LaunchError, *INTERRUPTIONS) as error:
                self.listener.note(
                    f"proving ended early: {error or type(error).__name__}; what is not proven stays with the default"
                )
                return confirmation.results(candidates), confirmation.rest_s(candidates)

    def _in_order(self, candidates: Mapping[Scenario, Choice], left_s: float) -> dict[Scenario, Choice]:
        """First those at the edge of the space, as far as their share of the time goes; the most gain for the time."""
        ordered = dict(sorted(candidates.items(), key=lambda pair: self._worth(*pair), reverse=True))
        edge: dict[Scenario, Choice] = {}
        kept_s = _EDGE_SHARE * left_s
        for scenario, choice in ordered.items():
            needed_s = fewest_groups() * self._group_s(scenario, choice)
            if scenario in self._edge and needed_s <= kept_s:
                kept_s -= needed_s
                edge[scenario] = choice
        return edge | ordered

    @cached_property
    def _edge(self) -> set[Scenario]:
        """The scenarios of the whole job with the greatest sizes of their collective."""
        whole = [s for s in self.grid if (s.nodes, s.ppn) == (self.bench.nodes, self.bench.ppn)]
        found: set[Scenario] = set()
        for name in {scenario.collective for scenario in whole}:
            found.update(sorted(s for s in whole if s.collective == name)[-_EDGE_SIZES:])
        return found

    def _worth(self, scenario: Scenario, choice: Choice) -> float:
        """What was gained when it was measured, for the time that the proof takes; the whole job before its parts."""
        default_s = self._default_s(scenario)
        ratio = default_s / self.medians.get((scenario, choice), default_s)
        part = weight_of(scenario, self.bench.nodes, self.bench.ppn)
        # Where nothing was measured the model had a reason to choose.
        return max(math.log(ratio), _LEAST_GAIN) * part / self._group_s(scenario, choice)

    def _group_s(self, scenario: Scenario, choice: Choice) -> float:
        """What one comparison of ``choice`` with the default is expected to take."""
        return self._expect_s(scenario, self.bench.baseline(scenario)) + self._expect_s(scenario, choice)

    def _expect_s(self, scenario: Scenario, choice: Choice) -> float:
        """What measuring a choice takes: in the campaign it took so many times the calls themselves."""
        time_s = self.medians.get((scenario, choice), self._default_s(scenario))
        return self._overheads.get((scenario, choice), self._overhead) * EFFORT.expected_cost_s(time_s)

    @cached_property
    def _overheads(self) -> dict[tuple[Scenario, Choice], float]:
        """What measuring took, over the calls: ranks meet before each of them."""
        return {
            (s.scenario, s.choice): s.cost_s / self.effort.expected_cost_s(s.time_s)
            for s in self.samples
            if s.status is Status.OK and s.cost_s > 0.0
        }

    @cached_property
    def _overhead(self) -> float:
        return median(self._overheads.values() or [1.0])

    def _default_s(self, scenario: Scenario) -> float:
        """What the default takes; where only others were measured, as long as the slowest of these."""
        known = self.medians.get((scenario, self.bench.baseline(scenario)))
        if known is None:
            known = max((time_s for (s, _), time_s in self.medians.items() if s == scenario), default=None)
        return known if known is not None else median(self.medians.values())
