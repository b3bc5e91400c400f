"""Candidates for the proof, and the rules that follow from its decisions."""

from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import median

from colltune.bench.contract import Bench
from colltune.core.proven import Decision, Verdict, fewest_groups, lower_bound
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, SizeBasis, Status
from colltune.core.space import Space
from colltune.distill.decide import Baseline
from colltune.distill.minimal_rules import distill_proven

# A job that is ended from outside leaves no time for fresh launches. Then the difference in the one launch must be
# larger.
_ONE_LAUNCH_THRESHOLD = 1.10


def judge_one_launch(
    scenario: Scenario, choice: Choice, samples: Sequence[Sample], baseline: Baseline, threshold: float
) -> Decision:
    """A proof's comparison on the repetitions of the campaign's own launch, cut into groups. It proves nothing."""
    groups = fewest_groups()
    measured = {s.choice: s for s in samples if s.scenario == scenario and s.status is Status.OK}
    pair = [measured[side].times_s for side in (baseline(scenario), choice) if side in measured]
    ratios: list[float] = []
    if len(pair) == 2 and min(map(len, pair)) >= groups:
        parts = [
            [times[i * len(times) // groups : (i + 1) * len(times) // groups] for i in range(groups)] for times in pair
        ]
        ratios = [median(default) / median(chosen) for default, chosen in zip(*parts, strict=True)]
    least = max(threshold, _ONE_LAUNCH_THRESHOLD)
    faster = lower_bound(ratios) > least
    verdict = Verdict.PROVISIONAL if faster else Verdict.REFUSED
    text = f"{'' if faster else 'not '}{least:.2f} times as fast in each part of its one launch"
    return Decision(scenario, choice, verdict, tuple(ratios), f"{text}; the job was ended before the proof")


def provisional(decisions: Sequence[Decision], missing: str, why: str = "the job was ended") -> list[Decision]:
    """``decisions``, those kept made provisional: ``missing`` was not done, ``why`` is what kept it from it."""
    return [decision.if_kept(Verdict.PROVISIONAL, f"{missing}: {why}") for decision in decisions]


def proven_rules(
    bench: Bench,
    spaces: Mapping[str, Space],
    decided: Mapping[str, Mapping[Scenario, Choice]],
    decisions: Sequence[Decision],
    basis_of: Callable[[str], SizeBasis] | None = None,
    accepted: Collection[Verdict] = frozenset({Verdict.KEPT}),
) -> dict[str, RuleSet]:
    """The rules that make the choices with an ``accepted`` verdict.

    ``basis_of``: what they compare; None is what the library's file does.
    """
    basis_of = basis_of or (lambda name: bench.catalogue.collective(name).basis)
    kept = {result.scenario for result in decisions if result.verdict in accepted}
    return {
        name: distill_proven(
            {scenario: choice if scenario in kept else DEFAULT for scenario, choice in choices.items()},
            spaces[name],
            basis_of(name),
        )
        for name, choices in decided.items()
    }
