"""The charts of the report, as Vega-Lite specifications in the colours of ``colltune.report.picture``.

They and the pages stand beside this module, in ``page/``: templates of Jinja, and what they embed.
"""

import json
import math
import textwrap
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from colltune.report.curves import CurvePoint, Panel

if TYPE_CHECKING:
    from jinja2 import Template


def page_text(name: str) -> str:
    """A file of the pages as it is."""
    return resources.files("colltune.report").joinpath("page", name).read_text(encoding="utf-8")


def page_template(name: str, **known: object) -> "Template":
    """A template, in which ``known`` are variables; what is put into it is escaped for HTML, but in metrics (.prom)."""
    from jinja2 import Environment  # late: few commands make a page

    return Environment(autoescape=".prom." not in name, trim_blocks=True, lstrip_blocks=True).from_string(
        page_text(name), known
    )


Spec = dict[str, Any]

# Colours that stand for those of the page, which has a light and a dark form.
INK, LINE, DEFAULT_LINE, TUNED_LINE = "#010101", "#020202", "#030303", "#040404"
_TITLE_CHARACTERS = 42  # of a headline above one panel
_GAIN_TICKS = (0.5, 0.8, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0)


@cache
def _charts() -> Any:
    colours = {"ink": INK, "line": LINE, "default_line": DEFAULT_LINE, "tuned_line": TUNED_LINE}
    return page_template("charts.json.j2", **colours).module


def chart(name: str, **values: object) -> Spec:
    """The chart ``name`` of page/charts.json.j2, of ``values``."""
    spec: Spec = json.loads(getattr(_charts(), name)(**values))
    return spec


def panel_charts(panels: Sequence[Panel]) -> list[Spec]:
    """Of each panel latency against size, and speed-up below it; on scales that fit its own times and gains."""
    return [_panel(panel, _scales(panel.points)) for panel in panels]


def summary_chart(headline: str, facts: Sequence[str], panels: Sequence[Panel]) -> Spec:
    """One picture: ``headline`` and ``facts``, if there are any, above the charts of ``panels``."""
    columns = min(3 if headline else 4, max(len(panels), 1))
    charts = [{key: part for key, part in chart.items() if key != "$schema"} for chart in panel_charts(panels)]
    width = columns * _TITLE_CHARACTERS
    subtitle = [*textwrap.wrap("; ".join(facts), width + width // 3), "dashed: default; solid: tuned"]
    text = textwrap.wrap(headline, width) or "latency and speed-up"
    return chart("summary", text=text, subtitle=subtitle, columns=columns, charts=charts)


def _scales(points: Sequence[CurvePoint]) -> tuple[list[float], list[float], list[float]]:
    """The ranges of sizes, of times in seconds and of speed-ups in ``points``."""
    sizes = [max(point.scenario.size_bytes, 1) for point in points] or [1]
    timings = [side for point in points for side in (point.default, point.tuned) if side is not None]
    times_s = [time_s for side in timings for time_s in (side.time_s, side.low_s, side.high_s) if time_s] or [1e-6]
    gains = [1.0, 1.1]
    for speedup in (point.decision.speedup for point in points if point.decision is not None):
        gains += [speedup.estimate, max(speedup.low, 0.5), min(speedup.high, 64.0)]
    return (
        [min(sizes), max(max(sizes), 2 * min(sizes))],
        [min(times_s), max(max(times_s), 2 * min(times_s))],
        [min(gains), max(gains)],
    )


def _panel(panel: Panel, scales: tuple[list[float], list[float], list[float]]) -> Spec:
    sizes, times_s, gains = scales
    ticks = [4**power for power in range(16) if sizes[0] <= 4**power <= sizes[1]]
    ticks = ticks[:: -(-len(ticks) // 6)] if ticks else sizes
    steps = (1.0,) if times_s[1] > 100.0 * times_s[0] else (1.0, 2.0, 5.0)
    decades = [step * 10.0**power for power in range(-8, 4) for step in steps]
    decades = [time_s for time_s in decades if times_s[0] <= time_s <= times_s[1]] or times_s
    gain_ticks = [tick for tick in _GAIN_TICKS if gains[0] * 0.95 <= tick <= gains[1] * 1.05]
    if len(gain_ticks) > 6:
        gain_ticks = [tick for tick in gain_ticks if math.log2(tick).is_integer()]
    return chart(
        "panel",
        title=f"{panel.collective}, {panel.nodes} x {panel.ppn}",
        sizes=sizes,
        size_ticks=ticks,
        times=times_s,
        time_ticks=decades,
        latencies=_latencies(panel.points),
        gains=gains,
        gain_ticks=gain_ticks,
        speedups=_speedups(panel.points, gains),
    )


def _speedups(points: Iterable[CurvePoint], gains: Sequence[float]) -> list[Spec]:
    """Rows of the speed-ups, within ``gains``."""
    return [
        {
            "size": max(point.scenario.size_bytes, 1),
            "speedup": round(point.decision.speedup.estimate, 3),
            "low": round(max(point.decision.speedup.low, gains[0]), 3),
            "high": round(min(point.decision.speedup.high, gains[1]), 3),
            "compared": bool(point.decision.ratios),
        }
        for point in points
        if point.decision is not None
    ]


def _latencies(points: Iterable[CurvePoint]) -> list[Spec]:
    """Rows of the curves. The tuned one is the default's where nothing departs from it."""
    return [
        {
            "size": max(point.scenario.size_bytes, 1),
            "side": side,
            "time": latency.time_s,
            "low": latency.low_s,
            "high": latency.high_s,
        }
        for point in points
        for side, latency in (("default", point.default), ("tuned", point.tuned))
        if latency is not None
    ]
