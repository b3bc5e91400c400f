"""A tuning and the store of its site: what the job begins with, and what it adds as soon as it has it."""

import math
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from colltune.bench.contract import Bench
from colltune.core.errors import InputError
from colltune.core.proven import Decision, Verdict
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, grouped
from colltune.core.space import Space, Weight
from colltune.core.units import format_count
from colltune.distill.decide import Decided
from colltune.prove.audit.worth import captured_by, least_gain_per_s
from colltune.prove.proof import Before, Judged
from colltune.prove.time_plan import MEASURING_SHARE
from colltune.search.reuse import defaults_of
from colltune.session.site.state import add_or_put_by, add_pending, command_text, user_name
from colltune.session.tuning.measuring import CampaignResult, Measuring
from colltune.session.tuning.merging import Held
from colltune.site.entry import Entry, Provenance
from colltune.site.index import Index, job_of, without_collections
from colltune.site.index_rows import PairedRatio
from colltune.site.knowledge import STALE_S, Knowledge, files_of, job_name, recall
from colltune.site.store import SiteStore
from colltune.store.earlier import Earlier
from colltune.store.tuning import Tuning

_Pair = tuple[Scenario, Choice]
_Key = tuple[Scenario, Choice, float, tuple[float, ...]]


@dataclass
class SiteMemory:
    """The store from within the tuning on ``bench`` into ``out``; without a store it knows nothing and keeps nothing.

    ``known``: what there is to begin with, and ``index`` has the rest; ``began_s``: seconds since the epoch.
    ``weight``: of a gain. ``budget_s``: what the user gives the tuning.
    """

    bench: Bench
    out: Path
    note: Callable[[str], None]
    store: SiteStore | None = None
    known: Knowledge = field(default_factory=Knowledge)
    index: Index | None = None
    weight: Weight = lambda _scenario: 1.0
    budget_s: float = math.inf
    began_s: float = field(default_factory=time.time)
    _narrower: bool = False  # whether this job tunes fewer collectives than the tuning that is there
    _given: set[_Key] = field(default_factory=set)

    @classmethod
    def of(
        cls,
        place: Path | None,
        bench: Bench,
        spaces: Mapping[str, Space],
        out: Path,
        note: Callable[[str], None],
        budget_s: float = math.inf,
    ) -> "SiteMemory":
        """The memory of ``spaces`` in the store at ``place``; of nothing, and a note, where that cannot be read."""
        if place is None:
            return cls(bench, out, note)
        shapes = {(scenario.nodes, scenario.ppn) for space in spaces.values() for scenario in space.scenarios}
        try:
            store = SiteStore.opened(place)
            add_pending(store, out, note)
            with without_collections():
                known, index = recall(store, bench.environment, spaces, shapes, defaults_of(bench, spaces))
        except InputError as error:
            note(f"warning: the store is not used: {error.what}; `colltune site add {out}` adds this tuning later")
            return cls(bench, out, note)
        count = index.count
        note(
            f"the store of this site has {count} entries of this machine and MPI" if count else "the store is new here"
        )
        there = {} if known.tuning is None else known.tuning.rule_sets
        weight = next(iter(spaces.values())).weight
        narrower = any(rules.departs and name not in spaces for name, rules in there.items())
        given = {_key(sample) for sample in known.samples}
        return cls(bench, out, note, store, known, index, weight, budget_s, _narrower=narrower, _given=given)

    @property
    def of_others(self) -> Earlier | None:
        """What other jobs measured, to be looked at again at a few points."""
        known = self.known
        proven = {scenario: decision.choice for scenario, decision in known.settled.items() if _is_kept(decision)}
        if not known.samples:
            return None
        decisions = () if known.tuning is None else known.tuning.summary.decisions
        seen = self._compared({(decision.scenario, decision.choice) for decision in decisions})
        compared = {pair: [ratio.value for ratio in some] for pair, some in seen.items()}
        return Earlier(known.date, known.samples, known.side_by_side, proven, compared)

    def _compared(self, pairs: Iterable[_Pair]) -> dict[_Pair, list[PairedRatio]]:
        """The comparisons of ``pairs`` that are not stale, by pair."""
        if self.index is None:
            return {}
        fresh = self.index.compared(pairs, self.began_s - STALE_S)
        return grouped(fresh, lambda ratio: (ratio.scenario, ratio.choice))

    def measured(self, measuring: Measuring) -> CampaignResult:
        """Runs ``measuring`` from what is known, adds what it measured, and forgets what it found not to hold.

        Where the job does not prove its rules they are not mixed with those that are proven.
        """
        result = replace(measuring, of_others=self.of_others, least_gain=self.least_gains).run()
        self.add_measured(measuring.journal.samples, result.changed)
        self.known = self.known.holding(result.holding)
        if not measuring.options.gate:
            self.known = replace(self.known, tuning=None, entry="")
        return result

    def with_proven_elsewhere(
        self, held: Held, decided: Mapping[str, Decided], spaces: Mapping[str, Space]
    ) -> tuple[Held, dict[str, Decided]]:
        """What the directory holds and what was decided, with what other jobs found in the place of what is not there.

        Where the directory held no tuning, the one that a job of this shape handed over before; and the choices that
        other jobs proved, where they are still legal.
        """
        filled = dict(decided)
        for scenario, proven in self.known.settled.items():
            current = filled.get(scenario.collective)
            if current is not None and self._stands(proven, current, spaces[scenario.collective]) and _is_kept(proven):
                choices = {**current.choices, scenario: proven.choice}
                filled[scenario.collective] = replace(current, choices=choices)
        return (Held(self.known.tuning) if held.tuning is None else held), filled

    def before(
        self,
        decided: Mapping[str, Decided],
        spaces: Mapping[str, Space],
        emit: Callable[[Mapping[str, RuleSet]], Tuning],
    ) -> Before:
        """What need not be proven again."""
        settled = {
            scenario: proven
            for scenario, proven in self.known.settled.items()
            if (current := decided.get(scenario.collective)) is not None
            and self._stands(proven, current, spaces[scenario.collective])
        }
        held = {sample.scenario.collective for sample in self.known.samples}
        claimed = [
            (scenario, choice)
            for name, current in decided.items()
            for scenario, choice in current.choices.items()
            if name in held and choice != DEFAULT and scenario not in settled
        ]

        def is_in_force(rules: Mapping[str, RuleSet]) -> bool:
            return self.known.tuning is not None and self.is_in_force(emit(rules))

        return Before(settled, self._compared(claimed), is_in_force, self._least_gain)

    def least_gains(self, holding: Collection[str]) -> Mapping[str, float]:
        """What a second of measuring has to bring, of those of the collectives ``holding`` that were tuned before.

        What it finds has to be proven, so it takes only a part of the time that a gain takes.
        """
        settled = [decision for decision in self.known.settled.values() if decision.scenario.collective in holding]
        least = self._least_gain(captured_by(settled, self.weight)) / MEASURING_SHARE
        return {decision.scenario.collective: least for decision in settled} if least > 0.0 else {}

    def _least_gain(self, captured: float) -> float:
        return 0.0 if self.store is None else least_gain_per_s(captured, self.budget_s)

    @staticmethod
    def _stands(proven: Decision, decided: Decided, space: Space) -> bool:
        return proven.scenario in decided.choices and proven.choice in space.choices(proven.scenario)

    def is_in_force(self, tuning: Tuning) -> bool:
        """Whether ``tuning`` decides by the very files that another job of this shape compared and replayed."""
        there = self.known.tuning
        if there is None or dict(there.rule_sets) != dict(tuning.rule_sets):
            return False
        return all(there.files.get(name) == data for name, data in tuning.files.items())

    def add_measured(self, samples: Sequence[Sample], changed: Collection[str] = ()) -> None:
        """Adds what this job measured itself, and the collectives that it found ``changed``."""
        new = [sample for sample in samples if _key(sample) not in self._given] if self.store is not None else []
        if new:
            self._add(replace(self._entry(samples=tuple(new)), changed=tuple(sorted(changed))))
        self._narrower = self._narrower and not changed
        self._given |= {_key(sample) for sample in new}

    def add_proven(self, judged: Judged, tuning: Tuning) -> None:
        """Adds the comparisons and the tuning, or that the one which is there still holds."""
        if self.index is None:
            return
        entry = self._entry(samples=tuple(judged.looked), compared=tuple(judged.compared))
        if self._narrower:
            pass  # a release of it would lose the other collectives
        elif (there := self.known.tuning) and self.is_in_force(tuning) and _settled(tuning) == _settled(there):
            entry = replace(entry, confirms=self.known.entry)
        else:
            entry = replace(entry, files=files_of(self.out, tuning))
        if entry.compared or entry.files or entry.confirms:
            self._add(entry)
        self.note(self._standing(self.index, tuning.summary.decisions))

    def _standing(self, index: Index, decisions: Sequence[Decision]) -> str:
        """How far the jobs of this shape have come."""
        of_shape = index.of_shape(self.bench.nodes, self.bench.ppn)
        jobs = 1 + len({job_of(entry.uid, entry.job, entry.began_s, entry.hosts) for entry in of_shape})
        proven = captured_by(decisions, self.weight)
        gain = proven + captured_by(decisions, self.weight, Verdict.NOT_TRIED)
        share = f"{proven / gain:.0%} of the gain that was found is proven" if gain else "no gain was found"
        left = sum(decision.verdict is Verdict.NOT_TRIED for decision in decisions)
        return f"job {jobs} of this shape: {share}, {format_count(left, 'call')} open"

    def _entry(self, samples: tuple[Sample, ...] = (), compared: tuple[Sample, ...] = ()) -> Entry:
        hosts = tuple(self.bench.topology(None, lambda _text: None).hosts[: self.bench.nodes])
        provenance = Provenance(command_text(sys.argv), user_name(), job_name(), hosts, self.began_s, time.time())
        return Entry(self.bench.environment, provenance, samples, compared)

    def _add(self, entry: Entry) -> None:
        if self.store is not None:
            add_or_put_by(self.store, entry, self.out, self.note)


def _settled(tuning: Tuning) -> set[tuple[Scenario, Choice, Verdict]]:
    return {
        (decision.scenario, decision.choice, decision.verdict)
        for decision in tuning.summary.decisions
        if decision.verdict in (Verdict.KEPT, Verdict.REFUSED)
    }


def _is_kept(proven: Decision) -> bool:
    return proven.verdict is Verdict.KEPT and proven.choice != DEFAULT


def _key(sample: Sample) -> _Key:
    return sample.scenario, sample.choice, sample.started_s, sample.times_s
