"""A candidate release that a share of jobs gets, and what their applications say of it.

``outbox/canary.json`` names the release and the share. Which job gets it is decided by a hash of the job's number and
the release, so that all ranks and steps of one job agree, and every candidate is tried by other jobs.
"""

import hashlib
import json
import shlex
import tempfile
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from colltune.core.errors import ColltuneError, InputError, on_os_error
from colltune.core.grouping import grouped
from colltune.machine.files import read_file, read_record, write_atomically
from colltune.mpi.application import Application
from colltune.site.entry import BadEntryError, Entry, LaterEntryError, Provenance
from colltune.site.release import RELEASES, active, read_release
from colltune.site.store import SiteStore
from colltune.store.applications import RUN, ApplicationRun, read_run, record_file
from colltune.store.tuning import write_files

CANARY = "canary.json"
_DIGITS = 8
# Files of a run that an entry holds are this large together at most.
_MOST_BYTES = 32 << 20


@dataclass(frozen=True)
class Canary:
    """``share``: percent of the jobs. ``since_s``: seconds since the epoch."""

    release: str
    share: int
    since_s: float


@dataclass(frozen=True)
class Report:
    """A run of an application under a release, as its job reported it. ``uid``: of the user who did."""

    provenance: Provenance
    run: ApplicationRun
    uid: int


def begin(store: SiteStore, release: str, share: int, now_s: float | None = None) -> Canary:
    """Gives ``release`` to ``share`` percent of the jobs from now on. Raises InputError where it is not whole."""
    if not 1 <= share <= 99:
        raise InputError(f"a share of {share}% is none", "Give 1% to 99%; `site activate` gives it to all")
    read_release(store.outbox / RELEASES / release)
    if active(store) == release:
        raise InputError(f"{release} is active already: all jobs have it", "Name another release")
    made = Canary(release, share, time.time() if now_s is None else now_s)
    document = {"release": made.release, "share": made.share, "since_s": made.since_s}
    with on_os_error(f"cannot write to {store.outbox}", "Check who may write to the outbox", ColltuneError):
        write_atomically(store.outbox / CANARY, (json.dumps(document) + "\n").encode(), mode=0o644)
    return made


def current(store: SiteStore) -> Canary | None:
    """The one that is tried now, None where none is. Raises InputError where that cannot be read."""
    path = store.outbox / CANARY
    try:
        return read_record(read_file(path), Canary)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}", "End it: colltune site canary --stop") from None


def stop(store: SiteStore) -> None:
    """No job gets the candidate any more; those that run keep it."""
    with on_os_error(f"cannot write to {store.outbox}", "Check who may write to the outbox", ColltuneError):
        (store.outbox / CANARY).unlink(missing_ok=True)


def is_drawn(job: str, canary: Canary) -> bool:
    """Whether the job with this number gets the candidate; never where it has none, so that its steps would differ."""
    digits = hashlib.sha256(f"{job} {canary.release}".encode()).hexdigest()[:_DIGITS]
    return bool(job) and int(digits, 16) % 100 < canary.share


def release_of(store: SiteStore, job: str) -> str:
    """The name of the release that a job gets, "" where none is active."""
    canary = current(store)
    return canary.release if canary is not None and is_drawn(job, canary) else active(store)


def files_of_run(run: ApplicationRun, command: str) -> dict[str, bytes]:
    """What an entry holds of a run, with ``command`` in place of its own. Raises InputError for too large a one."""
    files = {path.name: read_file(path) for path in sorted(run.place.iterdir()) if path.is_file()}
    files[RUN] = record_file(replace(run.record, application=Application(tuple(shlex.split(command)))))
    if sum(map(len, files.values())) > _MOST_BYTES:
        raise InputError(f"{run.place} is larger than an entry may be", "Measure a shorter run")
    return files


def reports_of(store: SiteStore, release: str, since_s: float) -> list[Report]:
    """What jobs reported of ``release`` since; the earliest first. Entries that cannot be read are left out."""
    found = []
    for key, names in store.names().items():
        for name in names:
            try:
                # The entries of 10,000 jobs are not read for it: what was added before does not speak of it.
                if store.place(key, name).stat().st_mtime < since_s - 1.0:
                    continue
                entry = store.read(key, name)
                if entry.release == release and entry.run:
                    found.append(
                        Report(entry.provenance, _run_in(entry, name), entry.uid if entry.uid is not None else -1)
                    )
            except (OSError, BadEntryError, LaterEntryError, InputError):
                continue
    return sorted(found, key=lambda one: one.provenance.began_s)


def _run_in(entry: Entry, name: str) -> ApplicationRun:
    with tempfile.TemporaryDirectory(prefix="colltune-") as place:
        date = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime(entry.provenance.began_s))
        folder = Path(place) / f"{date}-{name[:_DIGITS]}"
        write_files(folder, entry.run)
        return read_run(folder)


def witnesses_of(reports: Sequence[Report], trusted: Collection[int]) -> list[list[Report]]:
    """``reports``, those of one witness together: of a job of a ``trusted`` user, and of any other user as a whole.

    The number of a job is what its user wrote, so many jobs of one user may be one.
    """

    def witness(one: Report) -> tuple[object, ...]:
        return one.uid, (one.provenance.job or one.provenance.began_s) if one.uid in trusted else ""

    return list(grouped(reports, witness).values())
