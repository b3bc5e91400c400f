"""The page of a site for its administrator: one HTML file, whose text is in report/page/site.html.j2."""

import time
from pathlib import Path

from colltune.core.errors import on_os_error
from colltune.core.units import format_count
from colltune.core.version import __version__
from colltune.judge import wording
from colltune.report.templates import page_template, page_text
from colltune.session.site.canary import outlook
from colltune.session.site.state import status
from colltune.site.canary import current
from colltune.site.store import SiteStore

_DAY_S = 86400.0


def write_site_page(store: SiteStore, out: Path, now_s: float | None = None) -> Path:
    """Writes the page of ``store`` to ``out``. Raises InputError where either cannot be read or written."""
    now_s = time.time() if now_s is None else now_s
    found = status(store, now_s)
    shapes = [shape for machine in found.machines for shape in machine.shapes]
    saved = [one for machine in found.machines for one in machine.saved if one.runs]
    page = page_template("site.html.j2", count=format_count, ratio=wording.text).render(
        found=found,
        tried=outlook(store) if current(store) is not None else None,
        shapes=shapes,
        tuned=[shape for shape in shapes if shape.tuned_s is not None],
        saved=saved,
        saved_h={
            name: sum(getattr(one, name) for one in saved) for name in ("saved_h", "low_h", "high_h", "measured_h")
        },
        days=lambda then_s: f"{(now_s - then_s) / _DAY_S:.1f}",
        facts=[str(store.directory), time.strftime("%Y-%m-%d %H:%M", time.localtime(now_s))],
        version=__version__,
        css=page_text("report.css"),
    )
    with on_os_error(f"cannot write {out}", "Give another file by --out"):
        out.write_text(page, encoding="utf-8")
    return out
