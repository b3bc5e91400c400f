"""The charts of the report, as Vega-Lite specifications without colours: the page sets those for light and dark."""

from __future__ import annotations

from typing import Any

from colltune.core.proven import ProvenDecision
from colltune.core.units import format_duration, format_size
from colltune.report.findings import Findings, knowledge, spreads, timeline

Spec = dict[str, Any]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_MOST_MARKS = 3000  # beyond this a browser stutters and an eye sees a blot: every k-th mark is drawn then
_SIZE_LABEL = (
    "datum.value >= 1048576 ? datum.value / 1048576 + ' MiB'"
    " : datum.value >= 1024 ? datum.value / 1024 + ' KiB' : datum.value + ' B'"
)
_SIZE_AXIS = {"title": "message size", "labelExpr": _SIZE_LABEL, "labelOverlap": True, "tickCount": 6}
_SECONDS_AXIS = {"tickCount": 10, "labelOverlap": True}
_COLLECTIVE = {"field": "collective", "type": "nominal", "title": "collective"}


def all_charts(findings: Findings) -> dict[str, Spec]:
    """The charts by name; a chart without data is left out."""
    charts = {
        "speedup": _speedup(findings),
        "convergence": _convergence(findings),
        "timeline": _timeline(findings),
        "noise": _noise(findings),
    }
    return {name: chart for name, chart in charts.items() if chart["data"]["values"]}


def _speedup(findings: Findings) -> Spec:
    size = {"field": "size", "type": "quantitative", "scale": {"type": "log", "base": 2}, "axis": _SIZE_AXIS}
    status = {
        "field": "proof",
        "type": "nominal",
        "scale": {"domain": ["kept", "provisional", "refused", "not tried"]},
        "title": "proof",
    }
    low = {"field": "low", "type": "quantitative"}
    speedup = {
        "field": "speedup",
        "type": "quantitative",
        "title": "speed-up over the default",
        "scale": {"zero": False},
    }
    tooltip = _tooltip("collective", "shape", "message", "choice", "speedup", "low", "high", "compared", "proof")
    layers = [
        {"mark": {"type": "rule", "strokeDash": [4, 3]}, "encoding": {"y": {"datum": 1.0}}},
        {"mark": {"type": "rule"}, "encoding": {"x": size, "y": low, "y2": {"field": "high"}, "color": status}},
        {
            "mark": {"type": "point", "filled": True, "size": 55},
            "encoding": {
                "x": size,
                "y": speedup,
                "color": status,
                "shape": status,
                "fillOpacity": {"condition": {"test": "datum.compared == 'here'", "value": 1.0}, "value": 0.0},
                "tooltip": tooltip,
            },
        },
    ]
    return {
        "$schema": _SCHEMA,
        "data": {"values": [_proved(decision) for decision in findings.decisions if decision.has_evidence]},
        "facet": {"field": "collective", "type": "nominal", "title": None, "columns": 2},
        "columns": 2,
        "spec": {"width": 300, "height": 170, "layer": layers},
        "resolve": {"scale": {"y": "independent"}},
    }


def _proved(decision: ProvenDecision) -> dict[str, object]:
    """A row of the chart of speed-ups: a decision with the interval of its region, or the range of its ratios."""
    scenario = decision.scenario
    low, high = (min(decision.ratios), max(decision.ratios)) if decision.region is None else decision.region[1:]
    return {
        "collective": scenario.collective,
        "size": max(scenario.size_bytes, 1),
        "message": format_size(scenario.size_bytes),
        "shape": f"{scenario.nodes} x {scenario.ppn}",
        "choice": str(decision.choice),
        "speedup": round(decision.speedup, 3),
        "low": round(low, 3),
        "high": round(high, 3),
        "compared": "here" if decision.ratios else "in its region",
        "proof": decision.verdict.value,
    }


def _convergence(findings: Findings) -> Spec:
    values = [
        {"collective": k.collective, "seconds": round(k.elapsed_s, 4), "slowdown": round(k.slowdown, 4)}
        for k in knowledge(findings)
    ]
    return {
        "$schema": _SCHEMA,
        "width": "container",
        "height": 220,
        "data": {"values": _thinned(values)},
        "mark": {"type": "line", "interpolate": "step-after", "point": {"size": 18}},
        "encoding": {
            "x": {
                "field": "seconds",
                "type": "quantitative",
                "title": "seconds since the start of measuring",
                "axis": _SECONDS_AXIS,
            },
            "y": {
                "field": "slowdown",
                "type": "quantitative",
                "title": "average slowdown of the selection",
                "scale": {"zero": False},
            },
            "color": _COLLECTIVE,
            "strokeDash": _COLLECTIVE,
            "tooltip": _tooltip("collective", "seconds", "slowdown"),
        },
    }


def _timeline(findings: Findings) -> Spec:
    values = [
        {
            "collective": slot.scenario.collective,
            "start": round(slot.start_s, 4),
            "end": round(slot.end_s, 4),
            "lane": f"group {slot.lane + 1}",
            "shape": f"{slot.scenario.nodes} x {slot.scenario.ppn}",
            "message": format_size(slot.scenario.size_bytes),
            "choices": slot.choices,
            "took": format_duration(slot.end_s - slot.start_s),
        }
        for slot in timeline(findings)
    ]
    lanes = len({value["lane"] for value in values})
    return {
        "$schema": _SCHEMA,
        "width": "container",
        "height": max(40, 22 * lanes),
        "data": {"values": _thinned(values)},
        "mark": {"type": "bar", "height": 14},
        "encoding": {
            "x": {
                "field": "start",
                "type": "quantitative",
                "title": "seconds since the start of measuring",
                "axis": _SECONDS_AXIS,
            },
            "x2": {"field": "end"},
            "y": {"field": "lane", "type": "nominal", "title": None, "sort": None},
            "color": _COLLECTIVE,
            "tooltip": _tooltip("collective", "shape", "message", "choices", "took"),
        },
    }


def _noise(findings: Findings) -> Spec:
    values = []
    for spread in spreads(findings):
        values.append(
            {
                "collective": spread.scenario.collective,
                "seconds": round(spread.elapsed_s, 3),
                "spread": round(spread.relative_iqr, 4),
                "moved": None if spread.drift is None else round(spread.drift, 4),
                "choice": str(spread.choice),
                "message": format_size(spread.scenario.size_bytes),
            }
        )
    across = {
        "field": "seconds",
        "type": "quantitative",
        "title": "seconds since the start, proof included",
        "axis": _SECONDS_AXIS,
    }
    tooltip = _tooltip("collective", "message", "choice", "spread", "moved")
    panels = []
    for field, title, scale in (
        ("spread", "interquartile range / median", {"zero": True}),
        ("moved", "median / median of all launches", {"zero": False}),
    ):
        panels.append(
            {
                "width": 620,
                "height": 130,
                "mark": {"type": "point", "size": 12, "opacity": 0.7},
                "encoding": {
                    "x": across,
                    "y": {"field": field, "type": "quantitative", "title": title, "scale": scale},
                    "color": _COLLECTIVE,
                    "shape": _COLLECTIVE,
                    "tooltip": tooltip,
                },
            }
        )
    return {"$schema": _SCHEMA, "data": {"values": _thinned(values)}, "vconcat": panels}


def _tooltip(*fields: str) -> list[dict[str, str]]:
    return [{"field": field} for field in fields]


def _thinned(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    step = -(-len(values) // _MOST_MARKS)
    return values[::step] if step > 1 else values
