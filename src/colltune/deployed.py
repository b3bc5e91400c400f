"""The last proof of speed: the files as an application will load them, against the library without them.

What the gate measures is an algorithm that control variables choose. A file costs the library a search of its rules in
every call, which on a few ranks and bytes can take as long as the better algorithm saves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from colltune.core.choice import DEFAULT
from colltune.core.rules import RuleSet
from colltune.core.scenario import Scenario
from colltune.measure.contract import Effort
from colltune.store.tuning import Tuning, write_files
from colltune.verification import verify
from colltune.verify.gate import GateResult, Verdict
from colltune.verify.verdict import Comparison, fewest_launches
from colltune.verify.verdict import Verdict as Speed
from colltune.workbench import Workbench

# After so many files with ever fewer rules, the default stands everywhere.
_ROUNDS = 3
# Beside the scenarios with a rule, so many without one are looked at per collective: the search costs these, too.
_CONTROLS = 4
_EFFORT = Effort(relative_width=0.03, box_s=0.004, fewest=20, most=200)


def keep_what_pays(
    bench: Workbench,
    gate: Sequence[GateResult],
    rules_of: Callable[[Sequence[GateResult]], Mapping[str, RuleSet]],
    emit: Callable[[Mapping[str, RuleSet]], Tuning],
    workplace: Path,
    seed: int,
    grid: Sequence[Scenario],
    threshold: float,
) -> list[GateResult]:
    """``gate`` with what is not faster in force refused; one round for each file that was tried.

    A kept scenario is refused unless the file's median ratio exceeds ``threshold``; all of a collective where a
    scenario without a rule is slower beyond the interval.
    """
    results = list(gate)
    for round_number in range(_ROUNDS):
        kept = [result.scenario for result in results if result.verdict is Verdict.KEPT]
        if not kept:
            break
        tuning = emit(rules_of(results))
        write_files(workplace, tuning.files)
        collectives = {scenario.collective for scenario in kept}
        controls = [s for name in sorted(collectives) for s in _controls(tuning.rule_sets[name], grid)]
        found = verify(
            bench, tuning, workplace, [*kept, *controls], fewest_launches(), seed + round_number, effort=_EFFORT
        )
        refused = _refused(found, threshold)
        if not refused:
            return results
        last = round_number == _ROUNDS - 1
        results = [_after(result, refused, last) for result in results]
    return results


def _controls(rules: RuleSet, grid: Sequence[Scenario]) -> list[Scenario]:
    """The scenarios without a rule next to those with one: where the search is longest for nothing."""
    mine = sorted(s for s in grid if s.collective == rules.collective)
    default = [s for s in mine if rules.evaluate(s) == DEFAULT]
    step = max(1, len(default) // _CONTROLS)
    return default[::step][:_CONTROLS]


def _refused(found: Sequence[Comparison], threshold: float) -> dict[Scenario, str]:
    slowed = {c.scenario.collective: c for c in found if c.choice == DEFAULT and c.verdict is Speed.SLOWER}
    refused = {}
    for comparison in found:
        culprit = slowed.get(comparison.scenario.collective)
        if comparison.choice == DEFAULT:
            continue
        if culprit is not None:
            refused[comparison.scenario] = (
                f"in force, the search of the file slows {culprit.scenario.size_bytes} B to {culprit.ratio:.2f}"
            )
        elif comparison.ratio <= threshold or comparison.verdict is Speed.SLOWER:
            refused[comparison.scenario] = f"in force, the file is only {comparison.ratio:.2f} times as fast"
    return refused


def _after(result: GateResult, refused: Mapping[Scenario, str], last: bool) -> GateResult:
    if result.verdict is not Verdict.KEPT:
        return result
    if result.scenario in refused:
        return replace(result, verdict=Verdict.REFUSED, reason=refused[result.scenario])
    if last:
        return replace(result, verdict=Verdict.REFUSED, reason="no file could be found that is faster everywhere")
    return result
