"""The report as one HTML file that needs no network and no other file.

Needs what the plain install brings (jinja2, and vl-convert-python, which brings the charting library's JavaScript).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import InputError
from colltune.core.judged_together import JudgedRegion
from colltune.core.proven import ProvenDecision, Verdict
from colltune.core.sample import Status
from colltune.core.units import format_duration, format_size
from colltune.core.version import __version__
from colltune.machine.files import write_atomically
from colltune.report.charts import all_charts
from colltune.report.findings import Cell, Findings, Timing, knowledge
from colltune.report.story import environment_rows, summary_sentences
from colltune.report.tables import format_region_figures

PAGE = "report.html"
_SECTIONS = (
    ("summary", "Summary"),
    ("maps", "What runs where"),
    ("gain", "Speed-up"),
    ("provisional", "Provisional"),
    ("refused", "Refused"),
    ("untried", "Not tried"),
    ("campaign", "How it was measured"),
    ("environment", "Environment"),
)
_DESCRIPTIONS = {
    "speedup": "Speed-up over the default of every candidate that was put to the proof, by collective and message size",
    "convergence": "Average slowdown of the selection against the seconds since the start of measuring",
    "timeline": "Which scenario was measured when, and what was measured beside it",
    "noise": "Scatter of each measurement, and its movement between launches, against time",
}
_COLOURS = 8
_MOST_TIMINGS = 12
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def write_page(findings: Findings, path: Path, cache: Path) -> Path:
    """Writes the page of `build_page` to ``path``. Raises InputError where it cannot be made or written."""
    page = build_page(findings, cache)
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", "Give another file by --out") from error
    return path


def build_page(findings: Findings, cache: Path) -> str:
    """The HTML. ``cache`` is a directory that keeps the charting library between reports.

    Raises InputError where the extra is not installed.
    """
    try:
        from jinja2 import Environment as Templates
    except ImportError as error:
        raise _extra_missing() from error
    charts = all_charts(findings)
    for name, chart in charts.items():
        chart["description"] = _DESCRIPTIONS[name]
    details: dict[str, Any] = {}
    maps = [_map(findings, name, details) for name in findings.rule_sets]
    here = findings.environment
    text = resources.files("colltune.report").joinpath("page")
    template = Templates(autoescape=True).from_string(text.joinpath("report.html.j2").read_text(encoding="utf-8"))
    from markupsafe import Markup

    return template.render(
        title=f"{', '.join(findings.rule_sets)} on {here.nodes} x {here.ppn} ranks",
        machine=f"{here.mpi} {here.mpi_version}; {here.machine}",
        version=__version__,
        sections=_SECTIONS,
        sentences=summary_sentences(findings),
        maps=[found for found in maps if found["sizes"]],
        charts=charts,
        convergence=_converged(findings),
        kept=[_region_row(region) for region in findings.regions(Verdict.KEPT)],
        provisional=_without_rule(findings, Verdict.PROVISIONAL),
        refused=_without_rule(findings, Verdict.REFUSED),
        untried=_without_rule(findings, Verdict.NOT_TRIED),
        failed=_failed_rows(findings),
        environment=environment_rows(findings),
        css=Markup(text.joinpath("report.css").read_text(encoding="utf-8")),
        js=Markup(text.joinpath("report.js").read_text(encoding="utf-8")),
        vega_js=Markup(_charting_library(cache)),
        cells_json=Markup(_embedded(details)),
        charts_json=Markup(_embedded(charts)),
    )


def _extra_missing() -> InputError:
    return InputError(
        "the HTML report needs jinja2 and vl-convert-python", "Run pip install jinja2 vl-convert-python, or give --text"
    )


def _charting_library(cache: Path) -> str:
    """Vega-Lite as one script. It takes seconds to make, so it is kept in a file."""
    try:
        import vl_convert
    except ImportError as error:
        raise _extra_missing() from error
    kept = cache / f"vega-{version('vl-convert-python')}.js"
    try:
        return kept.read_text(encoding="utf-8")
    except OSError:
        pass
    script: str = vl_convert.javascript_bundle("window.colltuneEmbed = vegaEmbed;").replace("</script", "<\\/script")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, script.encode())
    except OSError:
        pass  # a read-only home costs the seconds again, no more
    return script


def _embedded(value: object) -> str:
    """JSON that is safe inside a script element."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _map(findings: Findings, collective: str, details: dict[str, Any]) -> dict[str, Any]:
    """The selection map of one collective; ``details`` takes what its cells say when pointed at."""
    cells = findings.cells(collective)
    sizes = sorted({cell.scenario.size_bytes for cell in cells})
    proofs = {decision.scenario: decision for decision in findings.decisions}
    for cell in cells:
        details[_key(cell)] = _detail(cell, proofs.get(cell.scenario))
    shown = "any" if sizes == [0] else None
    views = [_view("in force", cells, sizes, lambda cell: cell.chosen)]
    views.append(_view("fastest in the campaign, proven or not", cells, sizes, lambda cell: cell.fastest))
    return {"collective": collective, "sizes": [shown or format_size(size) for size in sizes], "views": views}


def _view(caption: str, cells: Sequence[Cell], sizes: Sequence[int], pick: Callable[[Cell], Choice]) -> dict[str, Any]:
    counts = Counter(pick(cell) for cell in cells)
    names = [choice for choice, _ in counts.most_common() if choice != DEFAULT]
    marks = {DEFAULT: ("·", 0)}
    for index, choice in enumerate(names):
        letter = _LETTERS[index] if index < len(_LETTERS) else str(index)
        marks[choice] = (letter, index % _COLOURS + 1)
    rows, by_shape = [], {(c.scenario.nodes, c.scenario.ppn, c.scenario.size_bytes): c for c in cells}
    first = True
    for nodes, ppn in sorted({(n, p) for n, p, _ in by_shape}):
        line: list[dict[str, Any] | None] = []
        for size in sizes:
            cell = by_shape.get((nodes, ppn, size))
            if cell is None:
                line.append(None)
                continue
            letter, colour = marks[pick(cell)]
            label = f"{format_size(size)}, {nodes} x {ppn}: {_name(pick(cell))}"
            line.append(
                {"key": _key(cell), "letter": letter, "colour": colour, "label": label, "tab": 0 if first else -1}
            )
            first = False
        rows.append({"shape": f"{nodes} x {ppn}", "cells": line})
    legend = [{"letter": marks[c][0], "colour": marks[c][1], "name": _name(c)} for c in (DEFAULT, *names)]
    return {"caption": caption, "rows": rows, "legend": legend}


def _name(choice: Choice) -> str:
    return "the library's own choice" if choice == DEFAULT else str(choice)


def _key(cell: Cell) -> str:
    scenario = cell.scenario
    return f"{scenario.collective}-{scenario.nodes}-{scenario.ppn}-{scenario.size_bytes}"


def _detail(cell: Cell, decision: ProvenDecision | None) -> dict[str, Any]:
    default_s = next((t.median_s for t in cell.timings if t.choice == DEFAULT), None)
    shown = [t for i, t in enumerate(cell.timings) if i < _MOST_TIMINGS or t.choice in (DEFAULT, cell.chosen)]
    scenario = cell.scenario
    return {
        "title": f"{scenario.collective} {scenario.nodes} x {scenario.ppn}, {format_size(scenario.size_bytes)}",
        "chosen": str(cell.chosen),
        "rows": [_timing_row(timing, default_s) for timing in shown],
        "proof": f"{decision.choice} {decision.verdict}: {decision.reason}" if decision else "",
    }


def _timing_row(timing: Timing, default_s: float | None) -> list[str]:
    if timing.median_s is None:
        return [str(timing.choice), timing.status.value, "", ""]
    interval = "too few"
    if timing.low_s is not None and timing.high_s is not None:
        interval = f"{format_duration(timing.low_s)} to {format_duration(timing.high_s)}"
    ratio = "" if default_s is None else f"{default_s / timing.median_s:.2f}"
    return [str(timing.choice), format_duration(timing.median_s), interval, ratio]


def _region_row(region: JudgedRegion) -> list[str]:
    return [region.collective, region.shape, region.sizes, *format_region_figures(region)]


def _without_rule(findings: Findings, verdict: Verdict) -> list[list[str]]:
    """Rows of the regions with ``verdict``: where, the choice, its speed-up and the reason."""
    return [
        [region.place, str(region.choice), f"{region.speedup:.2f}" if region.has_evidence else "", region.reason]
        for region in findings.regions(verdict)
    ]


def _failed_rows(findings: Findings) -> list[list[str]]:
    failed = Counter(
        (s.scenario.collective, str(s.choice), s.status.value)
        for s in findings.samples
        if s.status not in (Status.OK, Status.INAPPLICABLE)
    )
    return [[*what, str(count)] for what, count in sorted(failed.items())]


def _converged(findings: Findings) -> str:
    """When the selection came within 3% of the final one, in words."""
    last: dict[str, float] = {}
    for step in knowledge(findings):
        if step.slowdown > 1.03:
            last.pop(step.collective, None)
        else:
            last.setdefault(step.collective, step.elapsed_s)
    parts = [f"{name} after {format_duration(when)}" for name, when in sorted(last.items())]
    return f"Within 3% of it for good: {', '.join(parts)}." if parts else ""
