"""Jobs under the releases of a site: which one a job gets, what it reports of it, and whether a candidate may go on."""

import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from colltune.core.errors import InputError
from colltune.core.interval import Interval, SpeedVerdict
from colltune.core.switchback import Standing
from colltune.core.units import format_count
from colltune.judge import wording
from colltune.judge.evidence import ALPHA, FEWEST_LAUNCHES, interval_of, pooled_scale
from colltune.mpi.detect import ask_flux, find_mpi
from colltune.mpi.job import find_job
from colltune.prove.audit.effects import GREATEST
from colltune.prove.audit.harm import SLOWER
from colltune.prove.in_run.in_application import alike, in_calls, log_ratios, standings
from colltune.session.site.runs import copied
from colltune.site.canary import Canary, Report, current, release_of, reports_of, stop, witnesses_of
from colltune.site.knowledge import job_name
from colltune.site.modules import PublishedTuning
from colltune.site.release import RELEASES, Release, activate, read_release
from colltune.site.store import SiteStore
from colltune.store.applications import ApplicationRun


@dataclass(frozen=True)
class Given:
    """A release that a job gets. ``tuning``: its directory, None where the release has none for the job's shape."""

    release: Release
    tuning: Path | None


def given_here(store: SiteStore, out: Path, environ: Mapping[str, str] = os.environ) -> Given:
    """What this job gets, the tuning copied into ``out``: it stays, whatever the administrator does.

    Raises InputError where no release is active, and ColltuneError where ``out`` cannot be written.
    """
    name = release_of(store, job_name(environ))
    if not name:
        raise InputError("no release of this site is active", "colltune site activate RELEASE")
    release = read_release(store.outbox / RELEASES / name)
    job = find_job(environ, flux_resources=ask_flux(environ))
    chosen = _fitting(release, find_mpi(None, environ, compiles=False).build, len(job.nodes), job.ppn)
    if chosen is None:
        return Given(release, None)
    return Given(release, copied(release.place / chosen.directory, name, out))


def _fitting(release: Release, build: str, nodes: int, ppn: int) -> PublishedTuning | None:
    """Of this MPI, the smallest that holds the job."""
    mine = [one for one in release.tunings if one.identity.mpi_build == build]
    holding = [one for one in mine if one.nodes >= nodes and one.ppn >= ppn]
    return min(holding, key=lambda one: (one.nodes * one.ppn, one.nodes), default=None)


@dataclass(frozen=True)
class CanaryOutlook:
    """What speaks for a candidate. ``faster``: time of the calls by default over tuned, the mean over ``jobs``.

    ``jobs``: each of a user who is trusted, and all of any other user together as one.

    ``obstacles``: why it may not be promoted, a sentence each; none where it may.
    """

    canary: Canary
    jobs: int
    faster: Interval
    standings: Sequence[Standing]
    obstacles: Sequence[str]


def outlook(store: SiteStore, trusted: Collection[int] = ()) -> CanaryOutlook:
    """Of the candidate that is tried now; whoever asks is ``trusted``. Raises InputError where none is."""
    canary = current(store)
    if canary is None:
        raise InputError("no candidate is tried", "Begin: colltune site canary RELEASE --share 10%")
    return judged(canary, reports_of(store, canary.release, canary.since_s), {os.geteuid(), *trusted})


def judged(canary: Canary, reports: Sequence[Report], trusted: Collection[int]) -> CanaryOutlook:
    """What ``reports`` say of the candidate, where each job of the users ``trusted`` counts."""
    # What a user tried beside the release (`run --auto`) is not the release.
    reports = [replace(one, run=one.run.proven_alone) for one in reports]
    found = standings([one.run for one in reversed(reports)])
    # One run with a delay that has other reasons is not to count for many.
    values = []
    for witness in witnesses_of(reports, trusted):
        said = [value for one in witness if (value := _value_of(one.run)) is not None]
        values += [min(max(sum(said) / len(said), -GREATEST), GREATEST)] if said else []
    faster = Interval(1.0)
    if values:
        faster = interval_of(values, pooled_scale([values]), ALPHA).scaled(math.exp)
    return CanaryOutlook(canary, len(values), faster, found, _obstacles(len(values), faster, found))


def _value_of(run: ApplicationRun) -> float | None:
    """The mean log(default / tuned) of the calls of a run; None where it has too few pairs."""
    logs = [one for job in run.jobs for cell in job.cells for one in log_ratios(alike(cell.pairs), in_calls)]
    return sum(logs) / len(logs) if len(logs) >= FEWEST_LAUNCHES else None


def _obstacles(jobs: int, faster: Interval, found: Sequence[Standing]) -> list[str]:
    if jobs < FEWEST_LAUNCHES:
        reported = "no job has" if jobs == 0 else f"{format_count(jobs, 'job')} {'has' if jobs == 1 else 'have'}"
        return [f"{reported} reported measurements of it, and it takes {FEWEST_LAUNCHES} at least"]
    slower = [one for one in found if one.verdict is SpeedVerdict.SLOWER]
    told = [f"{one.place}: {one.choice} is slower in applications: {wording.text(one.faster)}" for one in slower]
    if faster.low < 1.0 / SLOWER:
        told.append(
            f"the speed-up of its calls over the default in {format_count(jobs, 'job')} is {wording.text(faster)}: not"
            " enough to exclude that it is slower"
        )
    return told


def promote(store: SiteStore, trusted: Collection[int] = ()) -> Release:
    """Makes the candidate the active release. Raises InputError with each reason why its evidence is not enough."""
    found = outlook(store, trusted)
    if found.obstacles:
        raise InputError(
            f"{found.canary.release} is not promoted: {'; '.join(found.obstacles)}",
            "Let more jobs run it: colltune site run --measure -- mpiexec ...; or end it: colltune site canary --stop",
        )
    release = activate(store, found.canary.release)
    stop(store)
    return release
