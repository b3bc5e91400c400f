"""The curves of a tuning as a picture that stands alone: for a notebook, a ticket or a paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from colltune.core.errors import InputError
from colltune.report.charts import summary_chart
from colltune.report.curves import Panel, panels
from colltune.report.draw import drawn_alone, save_picture
from colltune.report.findings import Findings
from colltune.report.headline import facts, headline

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
        save_picture(self.svg, Path(path))
        return Path(path)


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
        wanted = (not collectives or panel.collective in collectives) and nodes in (None, panel.nodes)
        if wanted and ppn in (None, panel.ppn):
            chosen.setdefault(panel.collective, panel)
    if not chosen and (collectives or nodes is not None or ppn is not None):
        found = ", ".join(f"{panel.collective} on {panel.nodes} x {panel.ppn}" for panel in there)
        raise InputError("nothing of that was measured", f"There is {found}" if found else "Tune first")
    shown = list(chosen.values())[:MOST_PANELS]
    title, beside = (headline(findings), facts(findings)) if heading else ("", [])
    return Picture(drawn_alone(summary_chart(title, beside, shown)))
