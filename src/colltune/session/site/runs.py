"""Programs under the releases of a site: the tuning that a job gets, and what `run --measure` adds to the store."""

import hashlib
import math
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from colltune.core.errors import ColltuneError, InputError, on_os_error
from colltune.core.sample import Environment
from colltune.machine.files import read_file
from colltune.mpi.detect import ask_flux, find_mpi
from colltune.mpi.job import find_job
from colltune.session.application_gain import gain_of
from colltune.session.site.state import add_or_put_by, add_pending, command_text, user_name
from colltune.site.entry import Entry, Provenance, Saved
from colltune.site.knowledge import job_name
from colltune.site.modules import PublishedTuning
from colltune.site.release import LOADED, RELEASES, Release, active, read_release, releases
from colltune.site.release import MANIFEST as RELEASE_MANIFEST
from colltune.site.store import VARIABLE, SiteStore
from colltune.store.applications import RUN, ApplicationRun, read_run
from colltune.store.tuning import MANIFEST

COPIES = Path("colltune-release")  # where a job keeps its copies of tunings of a release


@dataclass(frozen=True)
class Given:
    """A release that a job gets. ``tuning``: its directory, None where the release has none for the job's shape."""

    release: Release
    tuning: Path | None


def given_here(store: SiteStore, out: Path, environ: Mapping[str, str] = os.environ) -> Given:
    """What this job gets, the tuning copied into ``out``: it stays, whatever the administrator does.

    Raises InputError where no release is active, and ColltuneError where ``out`` cannot be written.
    """
    name = active(store)
    if not name:
        raise InputError("no release of this site is active", "colltune site activate RELEASE")
    release = read_release(store.outbox / RELEASES / name)
    job = find_job(environ, flux_resources=ask_flux(environ))
    chosen = _fitting(release, find_mpi(None, environ, compiles=False).build, len(job.nodes), job.ppn)
    return Given(release, None if chosen is None else copied(release.place / chosen.directory, name, out))


def _fitting(release: Release, build: str, nodes: int, ppn: int) -> PublishedTuning | None:
    """Of this MPI, the smallest that holds the job."""
    mine = [tuning for tuning in release.tunings if tuning.identity.mpi_build == build]
    holding = [tuning for tuning in mine if tuning.nodes >= nodes and tuning.ppn >= ppn]
    return min(holding, key=lambda tuning: (tuning.nodes * tuning.ppn, tuning.nodes), default=None)


def store_for_runs(given: Path | None, environ: Mapping[str, str], note: Callable[[str], None]) -> SiteStore | None:
    """Where measured runs are reported: to the store that is named, else to that of the site, if there is one.

    Raises InputError where the one that is named cannot be used. No application fails for the site's own: ``note``
    hears of it.
    """
    named = given or environ.get(VARIABLE)
    if not named:
        return None
    try:
        return SiteStore.opened(Path(named))
    except InputError as error:
        if given is not None:
            raise
        note(f"warning: what this run measures is not added to the store: {error.what}")
        return None


def copied_if_released(directory: Path, note: Callable[[str], None], out: Path = COPIES) -> Path:
    """``directory``; if it is part of a release, which nobody may write to, a copy of it below ``out``."""
    place = directory.resolve()
    if len(place.parts) <= 4 or not (place.parents[2] / RELEASE_MANIFEST).exists():
        return directory
    made = copied(place, place.parents[2].name, out)
    note(f"what is measured is kept in {made}")
    return made


def copied(tuning: Path, release: str, out: Path) -> Path:
    """A copy of ``tuning``, a directory of ``release``, to which runs may add. Raises ColltuneError."""
    place = out / release / tuning.name
    with on_os_error(f"cannot write {place}", "Give another directory by --out", ColltuneError):
        if not place.exists():
            shutil.copytree(tuning, place)
            for path in (place, *place.rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o644)  # those of a release are read-only
    return place


def add_run(
    store: SiteStore, directory: Path, place: Path, note: Callable[[str], None], environ: Mapping[str, str] = os.environ
) -> bool:
    """Adds the run in ``place``, of the history of the tuning in ``directory``; whether the store has taken it.

    Also what the store could not take before. A run in which nothing was measured adds nothing.
    """
    add_pending(store, directory, note)
    if not (place / RUN).exists():
        return False
    run = read_run(place)
    if not run.jobs:
        return False
    name, published = _release_of(store, directory, environ)
    began_s = (place / RUN).stat().st_mtime
    ended_s = max(path.stat().st_mtime for path in place.iterdir())
    said = Provenance(
        command_text(run.record.application.command, environ), user_name(), job_name(environ), (), began_s, ended_s
    )
    entry = Entry(_environment_of(run, published), said, release=name, saved=saved_by(run.proven_alone))
    return add_or_put_by(store, entry, directory, note)


def _release_of(store: SiteStore, directory: Path, environ: Mapping[str, str]) -> tuple[str, PublishedTuning | None]:
    """The release that holds the tuning in ``directory``, by its checksum: that which the job has loaded, else the
    active one, else the latest. "" where none does: then it is the user's own.
    """
    try:
        checksum = hashlib.sha256(read_file(directory / MANIFEST)).hexdigest()
    except OSError:
        return "", None
    there = releases(store)
    asked = (Path(environ.get(LOADED, "")).name, active(store), *reversed(there))
    for name in dict.fromkeys(name for name in asked if name in there):
        try:
            tunings = read_release(store.outbox / RELEASES / name).tunings
        except InputError:
            continue
        for one in tunings:
            if one.files.get(MANIFEST) == checksum:
                return name, one
    return "", None


def _environment_of(run: ApplicationRun, published: PublishedTuning | None) -> Environment:
    """The one that was tuned. A directory may not say its fabric; the entry of which the release was made does."""
    here = run.record.environment
    if published is None or not published.identity.fabric:
        return here
    return here.with_fabric(published.identity.fabric)


def saved_by(run: ApplicationRun) -> Saved:
    """What the tuning saved in all MPI jobs of ``run``; without a bound where one of them has none."""
    gains = [(job.nodes, gain_of(job, run.record.choices, run.record.is_candidate)) for job in run.jobs]
    low, high = (sum(nodes * getattr(one.saved_s, end) for nodes, one in gains) for end in ("low", "high"))
    return Saved(
        run=sum(nodes * one.elapsed_s for nodes, one in gains),
        saved=sum(nodes * one.saved_s.estimate for nodes, one in gains),
        low=low if math.isfinite(low) else None,
        high=high if math.isfinite(high) else None,
    )
