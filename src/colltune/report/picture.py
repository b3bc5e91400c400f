"""Charts as SVG, for the page in its own colours, light or dark, and for a picture that stands alone.

Such a picture is for a notebook, a ticket or a paper. Vega-Lite comes with vl-convert-python, which draws without a
browser: a page needs no script for its charts. It is an extra (`report`), for it is larger than all else of a plain
install that is not numpy or scipy.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from colltune.core.errors import InputError, on_os_error
from colltune.core.extras import extra
from colltune.report.charts import DEFAULT_LINE, INK, LINE, TUNED_LINE, Spec, chart, summary_chart
from colltune.report.curves import Panel, panels
from colltune.report.ending import facts, headline
from colltune.report.findings import Findings

# What a colour of the charts is on the page, and in a picture.
_ON_PAGE = {INK: "var(--ink)", LINE: "var(--line)", DEFAULT_LINE: "var(--soft)", TUNED_LINE: "var(--tuned)"}
_IN_PICTURE = {INK: "#1b1f24", LINE: "#c9d0d8", DEFAULT_LINE: "#5c6670", TUNED_LINE: "#0b6e99"}
# What the drawing of a chart holds that no page needs.
_EXCESS = re.compile(
    r' (?:aria-[a-z]+|role|class|pointer-events|stroke-miterlimit|xmlns:xlink|version)="[^"]*"'
    r'| (?:opacity|stroke-width)="1"| font-family="[^"]*"'
)
_LONG_NUMBER = re.compile(r"(\d+\.\d\d)\d+")
_EMPTY = re.compile(r'<g></g>|<path d="M0,0h0v0h0Z"/>|<path d=""/>')


def can_draw() -> bool:
    """Whether what draws is installed."""
    return find_spec("vl_convert") is not None


def drawn_for_page(spec: Spec, description: str) -> str:
    """An SVG element named by ``description``. Raises InputError where what draws is not installed."""
    svg = _as_svg(spec, _ON_PAGE)
    for pattern, by in ((_EXCESS, ""), (_LONG_NUMBER, r"\1"), (_EMPTY, ""), (_EMPTY, "")):
        svg = pattern.sub(by, svg)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(description)}" ', 1)


def require_picture(path: Path) -> None:
    """Raises InputError where ``path`` names no picture that can be made."""
    if path.suffix not in (".svg", ".png"):
        raise InputError(f"cannot make the picture {path}", "Give a file that ends in .svg or .png")


def _as_svg(spec: Spec, colours: Mapping[str, str]) -> str:
    config = {**chart("config"), **({"background": spec["background"]} if "background" in spec else {})}
    svg: str = _converter().vegalite_to_svg({**spec, "config": config})
    for colour, other in colours.items():
        svg = svg.replace(colour, other)
    return svg


def _converter() -> Any:
    return extra("vl_convert", "drawing charts")


# Panels in one picture: more cannot be read.
MOST_PANELS = 6


@dataclass(frozen=True)
class Picture:
    """An SVG picture on white. A notebook shows it."""

    svg: str

    def _repr_html_(self) -> str:
        return self.svg

    def save(self, path: Path | str) -> Path:
        """Writes it as an .svg or .png file, and returns where it is. Raises InputError where that is impossible."""
        path = Path(path)
        require_picture(path)
        with on_os_error(f"cannot write {path}", "Give another file by --picture"):
            if path.suffix == ".svg":
                path.write_text(self.svg, encoding="utf-8")
            else:
                path.write_bytes(_converter().svg_to_png(self.svg, scale=2.0))
        return path


def curves_picture(
    findings: Findings,
    collectives: Sequence[str] = (),
    nodes: int | None = None,
    ppn: int | None = None,
    *,
    heading: bool = True,
) -> Picture:
    """Latency and speed-up of ``collectives``, all if none is named, below the headline and the facts.

    ``nodes``, ``ppn``: of the largest shape by default. Raises InputError where nothing of that was measured.
    """
    there = panels(findings)
    chosen: dict[str, Panel] = {}
    for panel in there:
        asked = (not collectives or panel.collective in collectives) and nodes in (None, panel.nodes)
        if asked and ppn in (None, panel.ppn):
            chosen.setdefault(panel.collective, panel)
    if not chosen and (collectives or nodes is not None or ppn is not None):
        drawn = ", ".join(f"{panel.collective} on {panel.nodes} x {panel.ppn}" for panel in there)
        raise InputError("nothing of that was measured", f"There is {drawn}" if drawn else "Tune first")
    shown = list(chosen.values())[:MOST_PANELS]
    title, beside = (headline(findings), facts(findings)) if heading else ("", [])
    return Picture(_as_svg({**summary_chart(title, beside, shown), "background": "white"}, _IN_PICTURE))
