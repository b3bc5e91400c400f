"""Programs under the releases of a site: the tuning that a job gets, and copies to which runs may add."""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from colltune.core.errors import ColltuneError, InputError, on_os_error
from colltune.mpi.detect import ask_flux, find_mpi
from colltune.mpi.job import find_job
from colltune.site.modules import PublishedTuning
from colltune.site.release import MANIFEST as RELEASE_MANIFEST
from colltune.site.release import RELEASES, Release, active, read_release
from colltune.site.store import SiteStore

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
