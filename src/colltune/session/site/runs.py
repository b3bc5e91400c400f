"""Programs under the releases of a site: the tuning that a job gets, and copies to which runs may add."""

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from colltune.core.errors import ColltuneError, InputError, on_os_error
from colltune.machine.files import read_file
from colltune.mpi.detect import ask_flux, find_mpi
from colltune.mpi.job import find_job
from colltune.site.modules import PublishedTuning
from colltune.site.release import MANIFEST as RELEASE_MANIFEST
from colltune.site.release import RELEASES, Release, active, read_release
from colltune.site.store import SiteStore
from colltune.store.tuning import MANIFEST

COPIES = Path("colltune-release")  # where a job keeps its copies of tunings of a release


@dataclass(frozen=True)
class Given:
    """What a job gets. ``release``: the one that has its ``tuning``; None where that was predicted for the MPI."""

    release: Release | None
    tuning: Path


def given_here(store: SiteStore, out: Path) -> Given | None:
    """What this job gets, the tuning copied into ``out``: it stays, whatever the administrator does. None for nothing.

    What was predicted for the MPI is for jobs of which the active release has no tuning. Raises InputError where there
    is neither, and ColltuneError where ``out`` cannot be written.
    """
    name, predicted, environ = active(store), predicted_here(), os.environ
    if name:
        release = read_release(store.outbox / RELEASES / name)
        job = find_job(environ, flux_resources=ask_flux(environ))
        chosen = _fitting(release, find_mpi(None, environ, compiles=False).build, len(job.nodes), job.ppn)
        if chosen is not None:
            return Given(release, copied(release.place / chosen.directory, name, out))
    elif predicted is None:
        raise InputError("no release of this site is active", "colltune site activate RELEASE")
    return None if predicted is None else Given(None, _own_copy(predicted, out))


def predicted_here() -> Path | None:
    """The tuning that was predicted for the MPI at hand when that was installed; None where none was."""
    try:
        place = find_mpi(None, os.environ, compiles=False).predicted
    except InputError:
        return None
    return place if (place / MANIFEST).exists() else None


def _fitting(release: Release, build: str, nodes: int, ppn: int) -> PublishedTuning | None:
    """Of this MPI, the smallest that holds the job."""
    mine = [tuning for tuning in release.tunings if tuning.identity.mpi_build == build]
    holding = [tuning for tuning in mine if tuning.nodes >= nodes and tuning.ppn >= ppn]
    return min(holding, key=lambda tuning: (tuning.nodes * tuning.ppn, tuning.nodes), default=None)


def copied_if_shared(directory: Path, note: Callable[[str], None], out: Path = COPIES) -> Path:
    """``directory``; if it is part of a release, or a tuning that we may not write to, a copy of it below ``out``."""
    place = directory.resolve()
    if len(place.parts) > 4 and (place.parents[2] / RELEASE_MANIFEST).exists():
        made = copied(place, place.parents[2].name, out)
    elif (place / MANIFEST).exists() and not os.access(place, os.W_OK):
        made = _own_copy(place, out)
    else:
        return directory
    note(f"what is measured is kept in {made}")
    return made


def _own_copy(tuning: Path, out: Path) -> Path:
    """A copy of ``tuning``, and another one when that has changed. Raises ColltuneError."""
    return copied(tuning, hashlib.sha256(read_file(tuning / MANIFEST)).hexdigest()[:12], out)


def copied(tuning: Path, release: str, out: Path) -> Path:
    """A copy of ``tuning``, a directory of ``release``, to which runs may add. Raises ColltuneError."""
    place = out / release / tuning.name
    with on_os_error(f"cannot write {place}", "Give another directory by --out", ColltuneError):
        if not place.exists():
            shutil.copytree(tuning, place)
            for path in (place, *place.rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o644)  # those of a release are read-only
    return place
