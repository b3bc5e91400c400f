"""The decisions of a campaign, merged with those that its directory holds, as rules and as files of the library."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from colltune.bench.contract import Bench
from colltune.core.choice import Choice
from colltune.core.model_answers import Model
from colltune.core.proven import Decision, Verdict
from colltune.core.rules import RuleSet
from colltune.core.sample import Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import Space
from colltune.core.summary import Summary
from colltune.deploy.live_selector import proven_live, with_live
from colltune.distill.decide import unproven_rules
from colltune.distill.overlay import Overlay
from colltune.emit.live_rules import live_basis
from colltune.prove.proposed import proven_rules
from colltune.prove.replay.on_workbench import departing
from colltune.session.tuning.merging import Held, largest_job
from colltune.store.tuning import Provisional, Tuning

_KEPT = frozenset({Verdict.KEPT})
_NOT_REFUSED = frozenset({Verdict.KEPT, Verdict.PROVISIONAL})
WRONG_UNDER_FILE = "the conformance check found a wrong result under its file"


@dataclass(frozen=True)
class Decisions:
    """The best choices by the measurements, and the rules that follow once they are proven.

    ``choices``: the candidates of the proof, by collective. ``fixed``: rules of reproducible reductions,
    which need no proof of speed. ``held``: the content of the directory. ``gated``: False without a proof.
    """

    bench: Bench
    spaces: Mapping[str, Space]
    models: Mapping[str, Model]
    samples: Sequence[Sample]
    choices: Mapping[str, Mapping[Scenario, Choice]]
    fixed: Mapping[str, RuleSet]
    held: Held
    gated: bool

    def proven(self, gate: Sequence[Decision]) -> dict[str, RuleSet]:
        """All proven rules: the decisions that ``gate`` kept, over those that were proven before."""
        return self._overlay(gate).rule_sets(self.held.rule_sets(), self._newer(gate, _KEPT))

    def live(self, gate: Sequence[Decision]) -> dict[str, RuleSet]:
        """The same for the live selector, for which a comparison by control variables is enough."""
        if not self.gated:
            return self._newer(gate, _KEPT)
        found = proven_live(gate)
        return self._overlay(gate).rule_sets(self.held.live(), self._newer_live(found, _KEPT))

    def tuning(self, rule_sets: Mapping[str, RuleSet]) -> Tuning:
        """The tuning with ``rule_sets``, as far as the files of this MPI can express them."""
        said = {name: self.bench.expressible(rules, self.jobs) for name, rules in rule_sets.items()}
        tuning = self.bench.tuning(said)
        environment = largest_job(tuning.environment, self.jobs)
        return replace(tuning, environment=environment, jobs=self.jobs, by_shape=_unless_same(rule_sets, said))

    @cached_property
    def jobs(self) -> tuple[tuple[int, int], ...]:
        return tuple(sorted({*self.held.jobs, (self.bench.nodes, self.bench.ppn)}))

    def handed_over(self, gate: Sequence[Decision], replayed: Tuning, unsafe: Collection[str]) -> Tuning:
        """The final tuning: ``replayed``, which passed the conformance check, with live and provisional rules.

        ``unsafe``: collectives that failed the replay, and keep the default. Earlier provisional decisions that this
        campaign did not measure stay provisional.
        """
        rules = self._without(self.proven(gate), unsafe)
        live = {name: some for name, some in self.live(gate).items() if name not in unsafe}
        tuning = self._with_live(replace(replayed, by_shape=_unless_same(rules, replayed.rule_sets)), live)
        if self.held.tuning is None or self.held.tuning.provisional is None:
            return tuning
        overlay = self._overlay(gate)
        later = overlay.rule_sets(self.held.rule_sets(provisional=True), self._newer(gate, _KEPT))
        later_live = overlay.rule_sets(self.held.live(provisional=True), self._newer_live(gate, _KEPT))
        return self._with_provisional(tuning, self._without(later, unsafe), later_live)

    def put_off(self, gate: Sequence[Decision]) -> Tuning:
        """The tuning of a job that was ended: earlier proven rules, and as provisional the new ones."""
        newer, newer_live = self._newer(gate, _NOT_REFUSED), self._newer_live(gate, _NOT_REFUSED)
        default = {name: RuleSet.always(name, rules.basis) for name, rules in newer.items()}
        tuning = self._with_live(self.tuning({**default, **self.held.rule_sets()}), self.held.live())
        overlay = self._seen(gate)
        later = overlay.rule_sets(self.held.rule_sets(provisional=True), newer)
        later_live = overlay.rule_sets(self.held.live(provisional=True), newer_live)
        return self._with_provisional(tuning, later, later_live)

    def summary(self, newer: Summary, gate: Sequence[Decision], unsafe: Collection[str], *, cut_off: bool) -> Summary:
        """The figures of the campaign, ``newer``, with the earlier decisions that stay."""
        overlay = Overlay((), ()) if cut_off else self._overlay(gate)
        of_later = self._seen(gate) if cut_off else overlay
        rules, later = self._newer(gate, _KEPT), self._newer(gate, _NOT_REFUSED if cut_off else _KEPT)

        def stays(held: Decision) -> bool:
            if held.verdict is Verdict.PROVISIONAL:
                return of_later.stays(held.scenario, held.choice, later)
            return overlay.stays(held.scenario, held.choice, rules)

        merged = self.held.decisions(newer.decisions, stays, dict.fromkeys(unsafe, WRONG_UNDER_FILE))
        return self.held.summary(replace(newer, decisions=merged), () if cut_off else self.spaces.keys())

    @property
    def _whole(self) -> set[str]:
        """The collectives in which one algorithm serves all sizes, now or before: their earlier rules cannot stay."""
        return {*self.fixed, *self.held.reproducible}

    def _seen(self, gate: Sequence[Decision]) -> Overlay:
        """What replaces earlier rules after a job that was ended: its provisional decisions only."""
        seen = [result.scenario for result in gate if result.verdict in _NOT_REFUSED]
        return Overlay([result.scenario for result in gate], seen, self._whole)

    def _overlay(self, gate: Sequence[Decision]) -> Overlay:
        """What replaces earlier rules: the scenarios of the campaign, and those of them with a final verdict."""
        looked_at = {scenario for choices in self.choices.values() for scenario in choices}
        measured = {sample.scenario for sample in self.samples if sample.status is Status.OK}
        judged = {r.scenario for r in gate if r.verdict in (Verdict.KEPT, Verdict.REFUSED)}
        unjudged = {r.scenario for r in gate} - judged
        return Overlay(looked_at, (looked_at & (measured | judged)) - unjudged, self._whole)

    def _newer(self, gate: Sequence[Decision], accepted: Collection[Verdict]) -> dict[str, RuleSet]:
        """Rules of the campaign alone: of the decisions with an ``accepted`` verdict, or of all without a test."""
        if self.gated:
            found = proven_rules(self.bench, self.spaces, self.choices, gate, accepted=accepted)
        else:
            spaces = {name: self.spaces[name] for name in self.choices}
            found = unproven_rules(self.bench.catalogue, spaces, self.models, self.samples)
        return found | dict(self.fixed)

    def _newer_live(self, gate: Sequence[Decision], accepted: Collection[Verdict]) -> dict[str, RuleSet]:
        if not self.gated:
            return self._newer(gate, accepted)
        basis_of = partial(live_basis, self.bench.catalogue)
        return proven_rules(self.bench, self.spaces, self.choices, gate, basis_of, accepted) | dict(self.fixed)

    def _with_live(self, tuning: Tuning, rule_sets: Mapping[str, RuleSet]) -> Tuning:
        """Adds the live selector's rules, where there is a library that can load the selector."""
        if self.bench.library is None:
            return tuning
        return with_live(self.bench.library, tuning, rule_sets)

    def _with_provisional(
        self, tuning: Tuning, rule_sets: Mapping[str, RuleSet], live: Mapping[str, RuleSet]
    ) -> Tuning:
        later = self._with_live(self.tuning(rule_sets), live)
        same = later.rule_sets == tuning.rule_sets and later.files == tuning.files
        if same or not departing(later.rule_sets) | departing(live):
            return tuning
        return replace(tuning, provisional=Provisional.of(later))

    @staticmethod
    def _without(rule_sets: Mapping[str, RuleSet], unsafe: Collection[str]) -> dict[str, RuleSet]:
        return {n: RuleSet.always(n, rules.basis) if n in unsafe else rules for n, rules in rule_sets.items()}


def _unless_same(rule_sets: Mapping[str, RuleSet], said: Mapping[str, RuleSet]) -> Mapping[str, RuleSet] | None:
    return None if dict(rule_sets) == dict(said) else dict(rule_sets)
