"""Latency against message size, by default and tuned, for each collective and shape of a job; and the selection maps.

A map says which algorithm serves which scenario, shaded by what it gains.
"""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, quantiles

from colltune.core.medians import pair_median
from colltune.core.proven import Decision, Verdict
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, Status, grouped
from colltune.core.units import format_duration, format_size
from colltune.report.findings import ChoiceTiming, Findings, ScenarioTimes, collective_gains


@dataclass(frozen=True, slots=True)
class Latency:
    """What a call takes in seconds, and what 10% and 90% of its repetitions lie below."""

    time_s: float
    low_s: float
    high_s: float

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> "Latency":
        """The median of ``samples``, which are of one choice at one scenario; at least one."""
        return cls(pair_median(samples), *_outer_tenths(samples))

    @classmethod
    def side_by_side(cls, default: Sequence[Sample], tuned: Sequence[Sample]) -> "tuple[Latency, Latency] | None":
        """Of two choices in the launches that timed both; None where none did.

        A time is the geometric mean of the launches' medians: the quotient of the two is then the mean speed-up over
        these launches. Medians over all launches need not agree with it where launches differ by more than choices do.
        """
        sides = [grouped(samples, lambda sample: sample.launch) for samples in (default, tuned)]
        both = sides[0].keys() & sides[1].keys()
        if not both:
            return None
        by_default, by_rule = (
            cls(
                geometric_mean(pair_median(side[launch]) for launch in both),
                *_outer_tenths([sample for launch in both for sample in side[launch]]),
            )
            for side in sides
        )
        return by_default, by_rule


def _outer_tenths(samples: Sequence[Sample]) -> tuple[float, float]:
    times_s = [time_s for sample in samples for time_s in sample.times_s]
    cuts = quantiles(times_s, n=10, method="inclusive") if len(times_s) > 1 else times_s
    return cuts[0], cuts[-1]


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One scenario. ``default``, ``tuned``: times of the library's own choice and of the one in force; None: not timed.

    ``decision``: what departs from the default here, None where nothing does.
    """

    scenario: Scenario
    default: Latency | None
    tuned: Latency | None
    decision: Decision | None


@dataclass(frozen=True)
class Panel:
    """The curves of ``collective`` on ``nodes`` x ``ppn`` ranks, in the order of the sizes."""

    collective: str
    nodes: int
    ppn: int
    points: tuple[CurvePoint, ...]

    @property
    def changed(self) -> int:
        """The scenarios in which a rule departs from the default."""
        return sum(1 for point in self.points if point.decision is not None)


def curve_points(findings: Findings) -> dict[Scenario, CurvePoint]:
    """Of every scenario of the tuned collectives that was measured or compared.

    Where default and tuned were timed side by side in the proof, these times count: they are of several launches. Times
    of the campaign are one after another, and of few launches.
    """
    kept = {decision.scenario: decision for decision in findings.summary.having(Verdict.KEPT)}
    proven, measured = _timed(findings.proofs), _timed(findings.samples)
    points = {}
    for scenario in sorted({*measured, *proven}):
        if scenario.collective not in findings.rule_sets:
            continue
        decision = kept.get(scenario)
        times, beside = measured.get(scenario, {}), proven.get(scenario, {})
        default = findings.default_of(scenario, {*times, *beside})
        sides = (default, default if decision is None else decision.choice)
        compared = Latency.side_by_side(*(beside.get(side, []) for side in sides))
        by_default, tuned = compared or (Latency.of(times[side]) if side in times else None for side in sides)
        points[scenario] = CurvePoint(scenario, by_default, tuned, decision)
    return points


def _timed(samples: Sequence[Sample]) -> dict[Scenario, dict[Choice, list[Sample]]]:
    by_scenario = grouped((sample for sample in samples if sample.status is Status.OK), lambda sample: sample.scenario)
    return {scenario: grouped(some, lambda sample: sample.choice) for scenario, some in by_scenario.items()}


def panels(findings: Findings) -> list[Panel]:
    """One for each collective and shape of which the default was timed.

    The largest shape of every collective first; of these, the collective that gains the most.
    """
    timed = (point for _, point in sorted(curve_points(findings).items()) if point.default is not None)
    by_place = grouped(timed, lambda point: (point.scenario.collective, point.scenario.nodes, point.scenario.ppn))
    each = (Panel(*place, tuple(points)) for place, points in by_place.items())
    by_name = grouped(each, lambda panel: panel.collective)
    gains = {name: place for place, name in enumerate(collective_gains(findings.summary.decisions))}
    names = sorted(by_name, key=lambda name: (gains.get(name, len(gains)), name))
    ranked = [sorted(by_name[name], key=lambda panel: -panel.nodes * panel.ppn) for name in names]
    return [some[place] for place in range(max(map(len, ranked), default=0)) for some in ranked if place < len(some)]


def largest_call(points: Sequence[CurvePoint]) -> CurvePoint | None:
    """The one with the most bytes, then ranks, of those that were timed by default and tuned; None if none was."""
    timed = [point for point in points if point.default is not None and point.tuned is not None]
    return max(timed, key=lambda point: (point.scenario.size_bytes, point.scenario.ranks), default=None)


# From these speed-ups on a cell has the next darker shade.
SHADES = (1.1, 1.25, 1.5, 2.0, 4.0)
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
OWN = "."  # where the library decides
_MOST_TIMINGS = 5
# Characters of all that cells tell when they are pointed at: a page for a telephone holds no more.
_MOST_TOLD = 100_000


def selection_maps(findings: Findings) -> tuple[list[dict[str, object]], dict[str, object]]:
    """The maps of all collectives that were measured, and what their cells tell, by the number of the cell."""
    proofs = {decision.scenario: decision for decision in findings.decisions}
    by_name = {name: findings.cells(name) for name in findings.rule_sets}
    # What departs from the default comes first, should there be no room for all.
    cells = sorted((cell for some in by_name.values() for cell in some), key=lambda cell: not _departs(cell))
    maps: dict[str, object] = {}
    numbers: dict[Scenario, int] = {}
    spent = 0
    for number, cell in enumerate(cells):
        detail = _detail(cell, proofs.get(cell.scenario))
        spent += len(json.dumps(detail))
        if spent > _MOST_TOLD:
            break
        maps[str(number)] = detail
        numbers[cell.scenario] = number
    return [_map(name, some, numbers, proofs) for name, some in by_name.items() if some], maps


def _map(
    collective: str, cells: list[ScenarioTimes], numbers: Mapping[Scenario, int], proofs: Mapping[Scenario, Decision]
) -> dict[str, object]:
    sizes = sorted({cell.scenario.size_bytes for cell in cells})
    marks = letters_of(cells)
    by_place = {(c.scenario.nodes, c.scenario.ppn, c.scenario.size_bytes): c for c in cells}
    rows = []
    for nodes, ppn in sorted({(n, p) for n, p, _ in by_place}):
        line: list[dict[str, object] | None] = []
        for size in sizes:
            cell = by_place.get((nodes, ppn, size))
            if cell is None:
                line.append(None)
                continue
            mark = marks[cell.chosen] if _departs(cell) else OWN
            shade = _shade(cell, proofs.get(cell.scenario))
            line.append({"number": numbers.get(cell.scenario), "mark": mark, "shade": shade})
        rows.append({"shape": f"{nodes} x {ppn}", "cells": line})
    shown = ["any"] if sizes == [0] else [format_size(size) for size in sizes]
    legend = [{"mark": mark, "name": str(choice)} for choice, mark in marks.items()]
    return {
        "collective": collective,
        "sizes": shown,
        "rows": rows,
        "legend": legend,
        "changed": sum(map(_departs, cells)),
        "count": len(cells),
    }


def letters_of(cells: Sequence[ScenarioTimes]) -> dict[Choice, str]:
    """The letter of each choice that departs from the default, the most frequent first: in the page and in text."""
    counts = Counter(cell.chosen for cell in cells if _departs(cell))
    return {choice: _LETTERS[n] if n < len(_LETTERS) else str(n) for n, (choice, _) in enumerate(counts.most_common())}


def _departs(cell: ScenarioTimes) -> bool:
    return cell.chosen not in (DEFAULT, cell.default)


def _shade(cell: ScenarioTimes, decision: Decision | None) -> str:
    """``"d"``: the default; ``"u"``: changed without a proof; else the number of the shade."""
    if not _departs(cell):
        return "d"
    if decision is None or decision.verdict is not Verdict.KEPT:
        return "u"
    return str(bisect_right(SHADES, decision.speedup.estimate))


def _detail(cell: ScenarioTimes, decision: Decision | None) -> dict[str, object]:
    sides = (cell.default, cell.chosen)
    default_s = next((t.median_s for t in cell.timings if t.choice == cell.default), None)
    shown = [t for place, t in enumerate(cell.timings) if place < _MOST_TIMINGS or t.choice in sides]
    scenario = cell.scenario
    chosen = cell.chosen if _departs(cell) else cell.default
    proof = "" if decision is None else f"{decision.choice} {decision.verdict}: {decision.explanation}"
    if decision is not None and decision.region is not None and not decision.ratios:
        proof += "; not compared here itself"
    return {
        "title": f"{scenario.collective} {scenario.nodes} x {scenario.ppn}, {format_size(scenario.size_bytes)}",
        "rows": [[*_timing_row(timing, default_s), timing.choice == chosen] for timing in shown],
        "proof": proof,
    }


def _timing_row(timing: ChoiceTiming, default_s: float | None) -> list[str]:
    name = "the library's own" if timing.choice == DEFAULT else str(timing.choice)
    if timing.median_s is None:
        return [name, timing.status.value, ""]
    return [name, format_duration(timing.median_s), "" if default_s is None else f"{default_s / timing.median_s:.2f}"]
