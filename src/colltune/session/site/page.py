"""The page of a site for its administrator: one HTML file, made of the parts of a tuning's report."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from colltune.core.errors import on_os_error
from colltune.core.units import format_count
from colltune.core.version import __version__
from colltune.report.run_text import ratio_text
from colltune.report.templates import page_template, page_text
from colltune.session.site.canary import CanaryOutlook, outlook
from colltune.session.site.state import SavedBy, ShapeCoverage, SiteMachine, StoreStatus, status
from colltune.site.canary import current
from colltune.site.store import SiteStore

_DAY_S = 86400.0
# What may go wrong, and what undoes it, for who decides; docs/how-to/site-wide.md has the drill.
_RISKS = (
    ("a release slows a program", "colltune site rollback: one rename; jobs that begin later load the release before"),
    ("a release ends a program", "the same; what has loaded it is started anew"),
    ("a wrong or hostile entry is believed", "colltune site revoke USER or ENTRY, then site publish"),
    ("the MPI library is replaced", "nothing to undo: modules and run refuse the old tuning, so jobs run by default"),
    ("colltune itself is to go", "take its modules off MODULEPATH; no program is linked with it"),
)


@dataclass(frozen=True)
class _Table:
    """``numbers``: the columns, from 1, that hold numbers."""

    name: str
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()


def write_site_page(store: SiteStore, out: Path, now_s: float | None = None) -> Path:
    """Writes the page of ``store`` to ``out``. Raises InputError where either cannot be read or written."""
    now_s = time.time() if now_s is None else now_s
    found = status(store, now_s)
    tried = outlook(store) if current(store) is not None else None
    page = page_template("site.html.j2").render(
        title=_headline(found),
        facts=[
            str(store.directory),
            time.strftime("%Y-%m-%d %H:%M", time.localtime(now_s)),
            f"active: {found.active or 'no release'}",
        ],
        steps=list(_steps(found, tried)),
        warnings=[text for machine in found.machines for text in machine.slow],
        tables=list(_tables(found, tried, now_s)),
        version=__version__,
        css=page_text("report.css"),
    )
    with on_os_error(f"cannot write {out}", "Give another file by --out"):
        out.write_text(page, encoding="utf-8")
    return out


def _headline(found: StoreStatus) -> str:
    shapes = [shape for machine in found.machines for shape in machine.shapes]
    tuned = [shape for shape in shapes if shape.tuned_s is not None]
    entries = format_count(sum(machine.entries for machine in found.machines), "entry", "entries")
    return f"{len(tuned)} of {format_count(len(shapes), 'shape')} of jobs tuned, by {entries}"


def _steps(found: StoreStatus, tried: CanaryOutlook | None) -> Iterator[str]:
    """What the administrator may do next."""
    if tried is not None and not tried.obstacles:
        yield f"{tried.canary.release} may go to all jobs: colltune site promote"
    elif tried is not None:
        yield f"{tried.canary.release} is not ready: {'; '.join(tried.obstacles)}"
    elif found.releases and found.releases[-1] != found.active:
        yield f"{found.releases[-1]} is not active: colltune site canary {found.releases[-1]} --share 10%"
    if not found.releases and any(shape.tuned_s is not None for one in found.machines for shape in one.shapes):
        yield "Nothing is published yet: colltune site publish"


def _tables(found: StoreStatus, tried: CanaryOutlook | None, now_s: float) -> Iterator[_Table]:
    yield _Table("decision", "What it brings, and what it costs", ("", ""), [_benefit(found), _cost(found)])
    yield _Table("risks", "What can go wrong", ("what", "what undoes it"), _RISKS)
    head = ("nodes x ppn", "jobs", "measured", "tuned, days ago", "proven", "refused", "open", "the next job would")
    for number, machine in enumerate(found.machines):
        rows = [_shape_row(shape, now_s) for shape in machine.shapes]
        yield _Table(f"machine{number}", _machine_text(machine, now_s), head, rows, (2, 4, 5, 6, 7))
        if machine.saved:
            head_saved = ("by", "runs", "too short", "measured", "saved", "at least", "at most")
            caption = "What applications saved by their own measurements (run --measure), in node-hours"
            saved = [_saved_row(one) for one in machine.saved]
            yield _Table(f"saved{number}", caption, head_saved, saved, (2, 3, 4, 5, 6, 7))
    releases = [(name, "active" if name == found.active else "") for name in reversed(found.releases)]
    yield _Table("releases", "Releases, the latest first", ("release", ""), releases)
    if tried is not None:
        caption = (
            f"{tried.canary.release} in applications: {tried.canary.share}% of the jobs, {tried.jobs} have reported"
        )
        rows = [
            (it.place, str(it.choice), str(it.pairs), ratio_text(it.faster_in_calls), ratio_text(it.faster), it.finding)
            for it in tried.standings
        ]
        columns = ("calls of", "choice", "pairs", "in the calls", "with all between", "says")
        yield _Table("canary", caption, columns, rows, (3,))
    if found.quarantined:
        yield _Table("quarantine", "Entries that cannot be used", ("entry", "why"), found.quarantined)


def _benefit(found: StoreStatus) -> tuple[str, str]:
    saved = [one for machine in found.machines for one in machine.saved if one.runs]
    if not saved:
        return "saved", "not measured yet: colltune site run --measure says it"
    rows = ((one.saved_h, one.low_h, one.high_h, one.measured_h) for one in saved)
    hours, low, high, measured = (f"{sum(column):.3g}" for column in zip(*rows, strict=True))
    runs = format_count(sum(one.runs for one in saved), "measured run")
    return "saved", f"{hours} node-hours (at least {low}, at most {high}) in {runs} of {measured}; no other run counts"


def _cost(found: StoreStatus) -> tuple[str, str]:
    tuned = [one for machine in found.machines for one in machine.shapes if one.tuned_s is not None]
    hours = sum(one.tuning_h for one in tuned)
    return "cost", f"{hours:.3g} node-hours, by the last tuning of {format_count(len(tuned), 'shape')} of jobs"


def _machine_text(machine: SiteMachine, now_s: float) -> str:
    days = (now_s - machine.newest_s) / _DAY_S
    users, entries = format_count(machine.users, "user"), format_count(machine.entries, "entry", "entries")
    return f"{machine.identity}: {entries} of {users}, the last {days:.1f} days ago"


def _shape_row(shape: ShapeCoverage, now_s: float) -> tuple[str, ...]:
    known = ", ".join(
        f"{name} {100 * count // pairs}%" if pairs else f"{name} {count}"
        for name, (count, pairs) in shape.measured.items()
    )
    age = "" if shape.tuned_s is None else f"{(now_s - shape.tuned_s) / _DAY_S:.1f}"
    counts = map(str, (shape.proven, shape.refused, shape.open))
    return f"{shape.nodes} x {shape.ppn}", str(shape.jobs), known, age, *counts, shape.next


def _saved_row(saved: SavedBy) -> tuple[str, ...]:
    hours = (saved.measured_h, saved.saved_h, saved.low_h, saved.high_h)
    return saved.under, str(saved.runs), str(saved.too_short), *(f"{one:.3g}" for one in hours)
