"""The selection maps of the page: which algorithm serves which scenario, shaded by what it gains."""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence

from colltune.core.proven import Decision, Verdict
from colltune.core.sample import DEFAULT, Choice, Scenario
from colltune.core.units import format_duration, format_size
from colltune.report.findings import ChoiceTiming, Findings, ScenarioTimes

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
    told: dict[str, object] = {}
    numbers: dict[Scenario, int] = {}
    spent = 0
    for number, cell in enumerate(cells):
        detail = _detail(cell, proofs.get(cell.scenario))
        spent += len(json.dumps(detail))
        if spent > _MOST_TOLD:
            break
        told[str(number)] = detail
        numbers[cell.scenario] = number
    return [_map(name, some, numbers, proofs) for name, some in by_name.items() if some], told


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
    changed = sum(map(_departs, cells))
    return {
        "collective": collective,
        "sizes": shown,
        "rows": rows,
        "legend": legend,
        "changed": changed,
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
    return {
        "title": f"{scenario.collective} {scenario.nodes} x {scenario.ppn}, {format_size(scenario.size_bytes)}",
        "rows": [[*_timing_row(timing, default_s), timing.choice == chosen] for timing in shown],
        "proof": _proof_text(decision) if decision else "",
    }


def _timing_row(timing: ChoiceTiming, default_s: float | None) -> list[str]:
    name = _name(timing.choice)
    if timing.median_s is None:
        return [name, timing.status.value, ""]
    return [name, format_duration(timing.median_s), "" if default_s is None else f"{default_s / timing.median_s:.2f}"]


def _name(choice: Choice) -> str:
    return "the library's own" if choice == DEFAULT else str(choice)


def _proof_text(decision: Decision) -> str:
    text = f"{decision.choice} {decision.verdict}: {decision.told}"
    if decision.region is not None and not decision.ratios:
        text += "; not compared here itself"
    return text
