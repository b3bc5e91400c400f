"""The report as one HTML file that needs no network, no other file, and no script for what it shows.

Where nothing is installed that draws charts (the extra `report`), the page has its tables and says what is missing.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from colltune.core.extras import __version__
from colltune.core.judged_together import JudgedRegion
from colltune.core.proven import Verdict
from colltune.core.sample import Scenario, Status, grouped
from colltune.core.units import format_size, format_times
from colltune.judge.wording import cells
from colltune.report.charts import page_template, page_text, panel_charts
from colltune.report.curves import SHADES, CurvePoint, Panel, curve_points, largest_call, panels, selection_maps
from colltune.report.ending import by_gain, details, facts, headline, next_steps, saved_by, saved_share
from colltune.report.findings import Findings
from colltune.report.job import HEAD, ShapeGain, format_calls, job_shape, known_scenarios, shape_gains, shape_text
from colltune.report.picture import can_draw, drawn_for_page
from colltune.report.tables import application_row
from colltune.report.text import environment_rows, warnings

PAGE = "report.html"
# Panels that are shown at once, and all that a page has room for; rows of the decisions that are shown at once.
_OPEN_PANELS, _MOST_PANELS, _OPEN_ROWS = 6, 16, 10
# Gains on other shapes than the job's.
_MOST_OTHERS = 20
# Rows of what stays out, by reason: more of the same tell nothing new.
_MOST_ROWS = 60
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def build_page(findings: Findings, directory: Path) -> str:
    """The HTML. ``directory``: where the tuning is, as commands are to name it."""
    from markupsafe import Markup

    charts = can_draw()
    decisions = _decision_rows(findings)
    drawn = [(panel, Markup(svg)) for panel, svg in _drawn_panels(findings)] if charts and decisions else []
    shown = min(_OPEN_PANELS, len({panel.collective for panel, _ in drawn}))
    maps, cells = selection_maps(findings)
    gains = shape_gains(findings) if findings.summary.gated else []
    beside = [gain for gain in gains if gain.shape != job_shape(findings)]
    first = dict(details(findings, gains, len(gains)))
    return page_template("report.html.j2").render(
        title=headline(findings),
        heading=first.pop("this job"),
        gains_head=[HEAD[0], *HEAD[3:5], *HEAD[1:3], "sizes changed", HEAD[5].replace("->", "→")],
        gains=[_gain_row(gain) for gain in gains if gain.shape == job_shape(findings)],
        other_gains=[(shape_text(gain.shape), *_gain_row(gain)) for gain in beside[:_MOST_OTHERS]],
        other_left_out=max(len(beside) - _MOST_OTHERS, 0),
        first=first,
        beside=first.pop("beside it", ""),
        facts=facts(findings),
        steps=next_steps(findings, directory),
        version=__version__,
        warnings=list(warnings(findings)),
        tried=_tried(findings),
        predicted=findings.summary.predicted_text,
        without_charts=not charts,
        panels=drawn[:shown],
        more_panels=drawn[shown:],
        panels_left_out=max(len(panels(findings)) - _MOST_PANELS, 0),
        maps=maps,
        shades=_shade_names(),
        decisions=decisions[:_OPEN_ROWS],
        more_decisions=decisions[_OPEN_ROWS:],
        application=_application(findings),
        measured_in_application=[application_row(application) for application in findings.applications],
        provisional=_by_reason(findings, Verdict.PROVISIONAL),
        refused=_by_reason(findings, Verdict.REFUSED),
        untried=_by_reason(findings, Verdict.NOT_TRIED),
        failed=_failed_rows(findings),
        environment=environment_rows(findings),
        css=Markup(page_text("report.css")),
        js=Markup(page_text("report.js")),
        # Safe inside a script element.
        cells_json=Markup(json.dumps(cells, separators=(",", ":")).replace("<", "\\u003c")),
    )


def _tried(findings: Findings) -> list[tuple[str, int, int, int, int, int]]:
    """By collective: how much of it was measured, and what became of what looked faster."""
    known = Counter(scenario.collective for scenario in known_scenarios(findings))
    choices = Counter(name for name, _ in {(sample.scenario.collective, sample.choice) for sample in findings.samples})
    having = findings.summary.having
    refused = Counter(decision.scenario.collective for decision in having(Verdict.REFUSED))
    left = Counter(decision.scenario.collective for decision in having(Verdict.NOT_TRIED) + having(Verdict.PROVISIONAL))
    return [
        (name, known[name], refused[name] + left[name], refused[name], left[name], choices[name])
        for name in sorted(known)
    ]


def _gain_row(shape_gain: ShapeGain) -> list[str]:
    """What a telephone shows without scrolling comes first."""
    collective, low, high, mean, least, times = shape_gain.row
    changed = f"{len(shape_gain.decisions)} of {shape_gain.sizes}"
    return [collective, mean, least, low, high, changed, times.replace("->", "→")]


def _drawn_panels(findings: Findings) -> list[tuple[Panel, str]]:
    shown, drawn = panels(findings)[:_MOST_PANELS], []
    for panel, chart in zip(shown, panel_charts(shown), strict=True):
        where = f"{panel.collective} on {panel.nodes} x {panel.ppn} ranks"
        text = f"{where}: latency against message size by default and tuned; {panel.changed} sizes changed"
        drawn.append((panel, drawn_for_page(chart, text)))
    return drawn


def _shade_names() -> list[tuple[str, str]]:
    """The shades of the maps with what they stand for."""
    bounds = ["1", *(f"{shade:g}" for shade in SHADES)]
    named = [(str(n), f"{low} to {high}") for n, (low, high) in enumerate(pairwise(bounds))]
    return [("d", "the library's own"), *named, (str(len(SHADES)), f"{bounds[-1]} or more"), ("u", "not proven")]


def _decision_rows(findings: Findings) -> list[dict[str, str]]:
    """The regions in force; the most that is gained first."""
    points = curve_points(findings)
    return [
        {
            "place": region.place,
            "choice": str(region.choice),
            "speedup": f"{region.speedup.estimate:.2f}x" + (f" ({region.by_heap})" if region.by_heap else ""),
            "interval": cells(region.speedup)[1],
            **_times(region, points),
            "scenarios": _extent(region),
            "saved": saved_by(findings, region),
        }
        for region in by_gain(findings, findings.regions(Verdict.KEPT))
    ]


def _extent(region: JudgedRegion) -> str:
    """How many scenarios it has; and how many of them were compared, if that is not all."""
    count = len(region.decisions)
    return str(count) if region.compared == count else f"{count} ({region.compared} compared)"


def _times(region: JudgedRegion, points: Mapping[Scenario, CurvePoint]) -> dict[str, str]:
    """What the largest call of the region takes by default and tuned; empty where it was not timed."""
    largest = largest_call([points[s] for s in region.scenarios if s in points])
    if largest is None or largest.default is None or largest.tuned is None:
        return {"times": "", "at": ""}
    scenario = largest.scenario
    size = "" if scenario.collective == "barrier" else f", {format_size(scenario.size_bytes)}"
    times = format_times(largest.default.time_s, largest.tuned.time_s).replace("->", "→")
    return {"times": times, "at": f"{scenario.nodes} x {scenario.ppn}{size}"}


def _application(findings: Findings) -> list[list[str]]:
    """Of an application's profile: each collective's share of its time, and what its rules are expected to save."""
    shares: defaultdict[str, float] = defaultdict(float)
    for scenario, share in findings.shares.items():
        shares[scenario.collective] += share
    by_name = grouped(findings.summary.having(Verdict.KEPT), lambda decision: decision.scenario.collective)
    return [
        [name, f"{share:.1%}", f"{saved_share(findings, by_name.get(name, [])):.2%}"]
        for name, share in sorted(shares.items(), key=lambda item: -item[1])
    ]


def _by_reason(findings: Findings, verdict: Verdict) -> list[dict[str, object]]:
    """The regions with ``verdict``, those with one reason together; its numbers stand beside each."""
    groups = grouped(findings.regions(verdict), lambda region: _NUMBER.sub("…", region.explanation))
    return [
        {
            "reason": reason if len(some) > 1 else some[0].explanation,
            "calls": format_calls(sum(len(region.decisions) for region in some)),
            "rows": [
                [
                    region.place,
                    str(region.choice),
                    f"{region.speedup.estimate:.2f}x" if region.has_evidence else "",
                    region.explanation if _NUMBER.search(region.explanation) else "",
                ]
                for region in some[:_MOST_ROWS]
            ],
            "left_out": max(len(some) - _MOST_ROWS, 0),
        }
        for reason, some in sorted(groups.items(), key=lambda item: -len(item[1]))
    ]


def _failed_rows(findings: Findings) -> list[list[str]]:
    failed = Counter(
        (s.scenario.collective, str(s.choice), s.status.value)
        for s in findings.samples
        if s.status not in (Status.OK, Status.INAPPLICABLE)
    )
    return [[*what, str(count)] for what, count in sorted(failed.items())]
