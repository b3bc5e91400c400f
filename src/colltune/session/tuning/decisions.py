"""The decisions of a campaign, merged with those that its directory holds, as rules and as files of the library."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from colltune.bench.contract import Bench
from colltune.core.medians import medians_of
from colltune.core.proven import Decision, Summary, Verdict
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, Status
from colltune.core.space import Model, Space
from colltune.deploy.live_selector import proven_live, with_live
from colltune.distill.decide import unproven_rules
from colltune.distill.overlay import Layer, Layers, Overlay
from colltune.emit.live_rules import live_basis
from colltune.prove.proof import proven_rules
from colltune.prove.replay.on_workbench import non_default
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

    def proven(self, decisions: Sequence[Decision]) -> dict[str, RuleSet]:
        """The rules of the file: the proven decisions over those that were proven before."""
        return self._overlay(decisions).rule_sets(self.held.layers.proven.file, self._newer(decisions).file)

    def layers(self, decisions: Sequence[Decision], *, cut_off: bool = False) -> Layers:
        """All rules that ``decisions`` come to, over the earlier ones.

        After a job that was ended (``cut_off``) nothing new is proven, and the rest is provisional. Else earlier
        provisional decisions that this campaign did not measure stay so.
        """
        held, newer, overlay = self.held.layers, self._newer(decisions, cut_off), self._overlay(decisions, cut_off)
        later = newer.over(held.provisional, overlay)
        if not cut_off:
            return Layers(newer.over(held.proven, overlay), later)
        default = {name: RuleSet.always(name, rules.basis) for name, rules in newer.file.items()}
        return Layers(replace(held.proven, file={**default, **held.proven.file}), later)

    def tuning(self, rule_sets: Mapping[str, RuleSet]) -> Tuning:
        """The tuning with ``rule_sets``, as far as the files of this MPI can express them."""
        expressible = {name: self.bench.expressible(rules, self.jobs) for name, rules in rule_sets.items()}
        tuning = self.bench.tuning(expressible)
        environment = largest_job(tuning.environment, self.jobs)
        return replace(tuning, environment=environment, jobs=self.jobs, by_shape=_unless_same(rule_sets, expressible))

    @cached_property
    def jobs(self) -> tuple[tuple[int, int], ...]:
        return tuple(sorted({*self.held.jobs, (self.bench.nodes, self.bench.ppn)}))

    def handed_over(self, layers: Layers, replayed: Tuning | None = None, unsafe: Collection[str] = ()) -> Tuning:
        """The final tuning, with live and provisional rules.

        ``replayed``: what passed the conformance check; None where that was cut off. ``unsafe``: collectives that
        failed it, and keep the default.
        """
        rules, live = RuleSet.without(layers.proven.file, unsafe), layers.proven.live
        tuning = self.tuning(rules) if replayed is None else replayed
        tuning = replace(tuning, by_shape=_unless_same(rules, tuning.rule_sets))
        tuning = self._with_live(tuning, {name: some for name, some in live.items() if name not in unsafe})
        waiting = self.held.tuning is not None and self.held.tuning.provisional is not None
        if replayed is not None and not waiting:
            return tuning
        later = self._with_live(self.tuning(RuleSet.without(layers.provisional.file, unsafe)), layers.provisional.live)
        same = later.rule_sets == tuning.rule_sets and later.files == tuning.files
        if same or not non_default(later.rule_sets) | non_default(layers.provisional.live):
            return tuning
        return replace(tuning, provisional=Provisional.of(later))

    def summary(
        self, newer: Summary, decisions: Sequence[Decision], unsafe: Collection[str], *, cut_off: bool
    ) -> Summary:
        """The figures of the campaign, ``newer``, with the earlier decisions that stay."""
        overlay, rules = self._overlay(decisions, cut_off), self._newer(decisions, cut_off).file

        def stays(held: Decision) -> bool:
            untouched = cut_off and held.verdict is not Verdict.PROVISIONAL
            return untouched or overlay.stays(held.scenario, held.choice, rules)

        merged = self.held.decisions(newer.decisions, stays, dict.fromkeys(unsafe, WRONG_UNDER_FILE))
        return self.held.summary(replace(newer, decisions=merged), () if cut_off else self.spaces.keys())

    @property
    def _whole(self) -> set[str]:
        """The collectives in which one algorithm serves all sizes, now or before: their earlier rules cannot stay."""
        return {*self.fixed, *self.held.reproducible}

    def _overlay(self, decisions: Sequence[Decision], cut_off: bool = False) -> Overlay:
        """What replaces earlier rules: the scenarios of the campaign, and those of them with a final verdict.

        After a job that was ended: its provisional decisions only.
        """
        judged = {decision.scenario for decision in decisions}
        if cut_off:
            open_or_kept = [decision.scenario for decision in decisions if decision.verdict in _NOT_REFUSED]
            return Overlay(judged, open_or_kept, self._whole)
        looked_at = {scenario for choices in self.choices.values() for scenario in choices}
        measured = {sample.scenario for sample in self.samples if sample.status is Status.OK}
        final = {decision.scenario for decision in decisions if decision.verdict in (Verdict.KEPT, Verdict.REFUSED)}
        unclaimed = {scenario for scenario in looked_at - judged if self._still_gains(scenario)}
        return Overlay(looked_at, (looked_at & (measured | final)) - (judged - final) - unclaimed, self._whole)

    def _still_gains(self, scenario: Scenario) -> bool:
        """Whether the rule that is held here was measured to be faster than the default, though nothing was claimed.

        One more claim may cost more of a short proof than it gains: that says nothing against what was proven before.
        """
        before = RuleSet.decided(self.held.layers.proven.file, scenario)
        default_s = self._medians_s.get((scenario, self.bench.baseline(scenario)), math.inf)
        return self.choices.get(scenario.collective, {}).get(scenario) == DEFAULT and (
            self._medians_s.get((scenario, before), math.inf) < default_s < math.inf
        )

    @cached_property
    def _medians_s(self) -> Mapping[tuple[Scenario, Choice], float]:
        return medians_of(self.samples)

    def _newer(self, decisions: Sequence[Decision], cut_off: bool = False) -> Layer:
        """Rules of the campaign alone: of its proven decisions, after a job that was ended of those that are not
        refused, and without a proof of all. For the live selector a comparison by control variables is enough.
        """
        if not self.gated:
            spaces = {name: self.spaces[name] for name in self.choices}
            rules = unproven_rules(self.bench.catalogue, spaces, self.models, self.samples) | dict(self.fixed)
            return Layer(rules, rules)
        accepted, basis_of = _NOT_REFUSED if cut_off else _KEPT, partial(live_basis, self.bench.catalogue)
        file = proven_rules(self.bench, self.spaces, self.choices, decisions, accepted=accepted)
        by_selector = decisions if cut_off else proven_live(decisions)
        live = proven_rules(self.bench, self.spaces, self.choices, by_selector, basis_of, accepted)
        return Layer(file | dict(self.fixed), live | dict(self.fixed))

    def _with_live(self, tuning: Tuning, rule_sets: Mapping[str, RuleSet]) -> Tuning:
        """Adds the live selector's rules, where there is a library that can load the selector."""
        if self.bench.library is None:
            return tuning
        return with_live(self.bench.library, tuning, rule_sets)


def _unless_same(rule_sets: Mapping[str, RuleSet], expressed: Mapping[str, RuleSet]) -> Mapping[str, RuleSet] | None:
    return None if dict(rule_sets) == dict(expressed) else dict(rule_sets)
