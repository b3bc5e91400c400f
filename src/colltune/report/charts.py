"""The charts of the report, as Vega-Lite specifications in the colours of ``colltune.report.draw``."""

import math
import textwrap
from collections.abc import Iterable, Sequence
from statistics import median, quantiles
from typing import Any, TypeVar

from colltune.report.curves import CurvePoint, Panel
from colltune.report.findings import Findings, SampleSpread, Slot, knowledge, spreads, timeline

Spec = dict[str, Any]
Item = TypeVar("Item")

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
# Colours that stand for those of the page, which has a light and a dark form.
INK, LINE, DEFAULT_LINE, TUNED_LINE = "#010101", "#020202", "#030303", "#040404"
PALETTE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#c98a00", "#3f9bd1", "#8d6bc9", "#7f7f7f"]
# A panel fits a telephone; a chart over time is scrolled there.
_PANEL_WIDTH, _WIDE = 250, 620
_TITLE_CHARACTERS = 42  # of a headline above one panel
# Marks of one chart at most: more make a blot, and a large page.
_MOST_STEPS, _BINS = 150, 24
_SIZE_LABEL = (
    "datum.value >= 1048576 ? datum.value / 1048576 + ' MiB'"
    " : datum.value >= 1024 ? datum.value / 1024 + ' KiB' : datum.value + ' B'"
)
_TIME_LABEL = (
    "datum.value >= 1 ? datum.value + ' s' : datum.value >= 0.001 ? round(datum.value * 1e3) + ' ms'"
    " : round(datum.value * 1e7) / 10 + ' us'"
)
_SECONDS = {"type": "quantitative", "title": "seconds since the start of measuring", "axis": {"tickCount": 8}}
_COLLECTIVE = {"field": "collective", "type": "nominal", "title": None, "legend": {"symbolLimit": 0, "columns": 6}}


def panel_charts(panels: Sequence[Panel]) -> list[Spec]:
    """Of each panel latency against size, and speed-up below it; on scales that fit its own times and gains."""
    return [_panel(panel, _scales(panel.points)) for panel in panels]


def summary_chart(headline: str, facts: Sequence[str], panels: Sequence[Panel]) -> Spec:
    """One picture: ``headline`` and ``facts``, if there are any, above the charts of ``panels``."""
    columns = min(3 if headline else 4, max(len(panels), 1))
    charts = [{key: part for key, part in chart.items() if key != "$schema"} for chart in panel_charts(panels)]
    width = columns * _TITLE_CHARACTERS
    subtitle = [*textwrap.wrap("; ".join(facts), width + width // 3), "dashed: default; solid: tuned"]
    text = textwrap.wrap(headline, width)
    title = {
        "text": text or "latency and speed-up",
        "subtitle": subtitle,
        "anchor": "start",
        "fontSize": 14,
        "offset": 14,
    }
    nothing = {"data": {"values": [{}]}, "mark": "text", "encoding": {}}
    return {"$schema": SCHEMA, "title": title, "columns": columns, "concat": charts or [nothing], "padding": 12}


def _scales(points: Sequence[CurvePoint]) -> tuple[list[float], list[float], list[float]]:
    """The ranges of sizes, of times in seconds and of speed-ups in ``points``."""
    sizes = [max(point.scenario.size_bytes, 1) for point in points] or [1]
    timings = [one for point in points for one in (point.default, point.tuned) if one is not None]
    times_s = [time_s for one in timings for time_s in (one.time_s, one.low_s, one.high_s) if time_s] or [1e-6]
    gains = [1.0, 1.1]
    for point in points:
        gains += [] if point.decision is None else [point.decision.speedup, max(point.decision.low, 0.5)]
        gains += [] if point.decision is None else [min(point.decision.high, 64.0)]
    return (
        [min(sizes), max(max(sizes), 2 * min(sizes))],
        [min(times_s), max(max(times_s), 2 * min(times_s))],
        [min(gains), max(gains)],
    )


def _panel(panel: Panel, scales: tuple[list[float], list[float], list[float]]) -> Spec:
    sizes, times_s, gains = scales
    ticks = [4**power for power in range(16) if sizes[0] <= 4**power <= sizes[1]]
    ticks = ticks[:: -(-len(ticks) // 6)] if ticks else sizes
    size_axis = {"title": None, "values": ticks, "labelExpr": _SIZE_LABEL, "labelOverlap": True}
    x = _quantity("size", sizes, {**size_axis, "labels": False})
    steps = (1.0,) if times_s[1] > 100.0 * times_s[0] else (1.0, 2.0, 5.0)
    decades = [step * 10.0**power for power in range(-8, 4) for step in steps]
    decades = [time_s for time_s in decades if times_s[0] <= time_s <= times_s[1]] or times_s
    y = _quantity("time", times_s, {"title": "latency", "values": decades, "labelExpr": _TIME_LABEL, "minExtent": 48})
    colour = {
        "field": "side",
        "type": "nominal",
        "scale": {"domain": ["default", "tuned"], "range": [DEFAULT_LINE, TUNED_LINE]},
        "legend": None,
    }
    band = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}
    dashed = {"field": "side", "scale": {"domain": ["default", "tuned"], "range": [[4, 3], [1, 0]]}, "legend": None}
    latency = {
        "width": _PANEL_WIDTH,
        "height": 150,
        "data": {"values": _latencies(panel.points)},
        "layer": [
            {"mark": {"type": "area", "opacity": 0.2}, "encoding": band},
            {"mark": {"type": "line"}, "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dashed}},
        ],
    }
    return {
        "$schema": SCHEMA,
        "title": {"text": f"{panel.collective}, {panel.nodes} x {panel.ppn}", "anchor": "start"},
        "spacing": 6,
        "vconcat": [latency, _speedups(panel, _quantity("size", sizes, size_axis), gains)],
    }


def _speedups(panel: Panel, x: Spec, gains: list[float]) -> Spec:
    ticks = [
        tick for tick in (0.5, 0.8, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0) if tick <= gains[1] * 1.05
    ]
    ticks = [tick for tick in ticks if tick >= gains[0] * 0.95]
    if len(ticks) > 6:
        ticks = [tick for tick in ticks if math.log2(tick).is_integer()]
    y = _quantity("speedup", gains, {"title": "of the region", "values": ticks, "format": "~g", "minExtent": 48})
    values = [
        {
            "size": max(point.scenario.size_bytes, 1),
            "speedup": round(point.decision.speedup, 3),
            "low": round(max(point.decision.low, gains[0]), 3),
            "high": round(min(point.decision.high, gains[1]), 3),
            "compared": bool(point.decision.ratios),
        }
        for point in panel.points
        if point.decision is not None
    ]
    filled = {"condition": {"test": "datum.compared", "value": 1.0}, "value": 0.0}
    marks = {"type": "point", "size": 26, "color": TUNED_LINE, "fill": TUNED_LINE}
    bounds = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    return {
        "width": _PANEL_WIDTH,
        "height": 80,
        "data": {"values": values},
        "layer": [
            {
                "data": {"values": [{"one": 1.0}]},
                "mark": {"type": "rule", "color": DEFAULT_LINE},
                "encoding": {"y": {**y, "field": "one"}},
            },
            {"mark": {"type": "rule", "color": TUNED_LINE, "opacity": 0.6}, "encoding": bounds},
            {"mark": marks, "encoding": {"x": x, "y": y, "fillOpacity": filled}},
        ],
    }


def _quantity(field: str, domain: Sequence[float], axis: Spec) -> Spec:
    scale = {"type": "log", "base": 2 if field == "size" else 10, "domain": list(domain), "nice": False}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": axis}


def _latencies(points: Iterable[CurvePoint]) -> list[Spec]:
    """Rows of the curves. The tuned one is the default's where nothing departs from it."""
    return [
        {
            "size": max(point.scenario.size_bytes, 1),
            "side": side,
            "time": one.time_s,
            "low": one.low_s,
            "high": one.high_s,
        }
        for point in points
        for side, one in (("default", point.default), ("tuned", point.tuned))
        if one is not None
    ]


def time_charts(findings: Findings) -> dict[str, Spec]:
    """What happened when, by name; a chart without data is left out."""
    found = {"convergence": _convergence(findings), "timeline": _timeline(findings), "noise": _noise(findings)}
    return {name: chart for name, chart in found.items() if chart is not None}


def _convergence(findings: Findings) -> Spec | None:
    steps = knowledge(findings)
    values = [
        {"collective": step.collective, "seconds": round(step.elapsed_s, 4), "slowdown": round(step.slowdown, 4)}
        for name in findings.rule_sets
        for step in _thinned([one for one in steps if one.collective == name])
    ]
    if not values:
        return None
    y = {"field": "slowdown", "type": "quantitative", "title": "average slowdown", "scale": {"zero": False}}
    return {
        "$schema": SCHEMA,
        "width": _WIDE,
        "height": 180,
        "data": {"values": values},
        "mark": {"type": "line", "interpolate": "step-after"},
        "encoding": {"x": {"field": "seconds", **_SECONDS}, "y": y, "color": _COLLECTIVE, "strokeDash": _COLLECTIVE},
    }


def _timeline(findings: Findings) -> Spec | None:
    slots = timeline(findings)
    if not slots:
        return None
    values = [
        {"collective": name, "start": round(start_s, 3), "end": round(end_s, 3), "lane": f"group {lane + 1}"}
        for name, lane, start_s, end_s in _stretches(slots)
    ]
    return {
        "$schema": SCHEMA,
        "width": _WIDE,
        "height": max(40, 22 * len({slot.lane for slot in slots})),
        "data": {"values": values},
        "mark": {"type": "bar", "height": 14},
        "encoding": {
            "x": {"field": "start", **_SECONDS},
            "x2": {"field": "end"},
            "y": {"field": "lane", "type": "nominal", "title": None, "sort": None},
            "color": _COLLECTIVE,
        },
    }


def _stretches(slots: Sequence[Slot]) -> list[tuple[str, int, float, float]]:
    """Collective, lane, start and end in seconds; what no eye tells apart is one stretch."""
    gap_s = max(slot.end_s for slot in slots) / _WIDE
    last: dict[int, tuple[str, int, float, float]] = {}
    done = []
    for slot in slots:
        name = slot.scenario.collective
        before = last.get(slot.lane)
        if before is not None and before[0] == name and slot.start_s - before[3] <= gap_s:
            last[slot.lane] = (*before[:3], slot.end_s)
            continue
        done += [] if before is None else [before]
        last[slot.lane] = (name, slot.lane, slot.start_s, slot.end_s)
    return _thinned([*done, *last.values()])


def _noise(findings: Findings) -> Spec | None:
    scatter = spreads(findings)
    if not scatter:
        return None
    panels = [
        _quantile_panel(_binned(scatter, "relative_iqr"), "IQR / median"),
        _quantile_panel(_binned([one for one in scatter if one.drift is not None], "drift"), "median / usual"),
    ]
    return {"$schema": SCHEMA, "vconcat": panels}


def _binned(scatter: Sequence[SampleSpread], name: str) -> list[Spec]:
    """Quantiles over stretches of time with equally many measurements."""
    size = max(-(-len(scatter) // _BINS), 10)
    found = []
    for start in range(0, len(scatter), size):
        some = scatter[start : start + size]
        if len(some) >= 2:
            cuts = quantiles((getattr(one, name) for one in some), n=10, method="inclusive")
            middle = median(getattr(one, name) for one in some)
            found.append({"seconds": some[0].elapsed_s, "low": cuts[0], "middle": middle, "high": cuts[-1]})
    return found


def _quantile_panel(values: list[Spec], title: str) -> Spec:
    x = {"field": "seconds", **_SECONDS, "title": "seconds since the start, proof included"}
    y = {"type": "quantitative", "title": title, "scale": {"zero": False}}
    band = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    return {
        "width": _WIDE,
        "height": 110,
        "data": {"values": values},
        "layer": [
            {"mark": {"type": "area", "opacity": 0.25, "color": TUNED_LINE}, "encoding": band},
            {"mark": {"type": "line", "color": TUNED_LINE}, "encoding": {"x": x, "y": {**y, "field": "middle"}}},
        ],
    }


def _thinned(values: Sequence[Item]) -> list[Item]:
    step = max(-(-len(values) // _MOST_STEPS), 1)
    return [*values[:-1:step], *values[-1:]]
