"""What a job can begin with: what other jobs of its machine measured and proved, as far as it is not too old."""

import os
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from colltune.core.errors import InputError
from colltune.core.proven import Decision, Verdict, Why
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, grouped
from colltune.machine.files import read_file
from colltune.site.entry import BadEntryError, Identity, LaterEntryError
from colltune.site.index import Index, LatestSamples, Listed, open_index, without_collections
from colltune.site.store import SiteStore
from colltune.store.tuning import MANIFEST, Tuning, load_tuning, write_files

# What is older is measured again, and proves nothing any more.
STALE_S = 90 * 86400.0
# Variables in which schedulers give a job its number.
JOB_NUMBERS = ("SLURM_JOB_ID", "PBS_JOBID", "FLUX_JOB_ID", "LSB_JOBID", "JOB_ID")
_SETTLED = frozenset({Verdict.KEPT, Verdict.REFUSED})


@dataclass(frozen=True)
class Knowledge:
    """``samples``: the newest of each pair. ``date``: of the newest entry.

    ``side_by_side``: of each scenario those of ``samples`` that one job took, the default among them; of several jobs
    the one that took most. ``tuning``: the last that was handed over in a job of this shape, None where there is none;
    ``entry``: which one.
    """

    samples: tuple[Sample, ...] = ()
    date: str = ""
    tuning: Tuning | None = None
    entry: str = ""
    side_by_side: tuple[Sample, ...] = ()

    def holding(self, collectives: Collection[str]) -> "Knowledge":
        """The part of it that is of ``collectives``, those of which a look at a few points found it to hold."""
        held = self.tuning if self.tuning is not None and set(self.tuning.rule_sets) <= set(collectives) else None
        samples = tuple(sample for sample in self.samples if sample.scenario.collective in collectives)
        return replace(self, samples=samples, tuning=held, entry=self.entry if held is not None else "")

    @property
    def settled(self) -> dict[Scenario, Decision]:
        """What is proven or refused in the tuning, by its scenario.

        Not what a cut of a region left over: without it the region of the next claim would be the part that some
        comparisons chose, and the same comparisons would count as evidence for it.
        """
        decisions = () if self.tuning is None else self.tuning.summary.decisions
        settled = (decision for decision in decisions if decision.verdict in _SETTLED)
        return {decision.scenario: decision for decision in settled if decision.why is not Why.CUT_APART}


@without_collections()
def recall(
    store: SiteStore,
    here: Environment,
    collectives: Collection[str],
    shapes: Collection[tuple[int, int]],
    default_of: Callable[[Scenario], Choice] = lambda _scenario: DEFAULT,
) -> tuple[Knowledge, Index]:
    """What a job of ``here`` has to begin with that tunes ``collectives`` on communicators of ``shapes``.

    With the index that says so. ``default_of``: what the default was measured as. Raises InputError where the store is
    unreadable.
    """
    key = Identity.of(here).key
    fresh_s = time.time() - STALE_S
    index = open_index(store, key)
    measured = list(index.measured(collectives, shapes, fresh_s))
    newest_s = max((max(latest_samples.dates_s) for latest_samples in measured), default=0.0)
    date = time.strftime("%Y-%m-%d", time.gmtime(newest_s)) if measured else ""
    listed = newest_tuning(index.of_shape(here.nodes, here.ppn), (here.nodes, here.ppn), fresh_s)
    tuning = None if listed is None else tuning_of(store, key, listed.name)
    name = listed.name if listed is not None and tuning is not None else ""
    samples = tuple(chain.from_iterable(latest.samples for latest in measured))
    return Knowledge(samples, date, tuning, name, _side_by_side(measured, default_of)), index


def _side_by_side(measured: Sequence[LatestSamples], default_of: Callable[[Scenario], Choice]) -> tuple[Sample, ...]:
    """Of each scenario what one job took, if it took the default: without it there is no gain to tell."""
    together: list[Sample] = []
    for latest in measured:
        if len(set(latest.entries)) == len(latest.entries):
            continue  # each sample is of another job
        jobs = grouped(range(len(latest.entries)), latest.entries.__getitem__)
        default = default_of(latest.samples[0].scenario)
        with_default = [
            some for some in jobs.values() if len(some) > 1 and any(latest.samples[k].choice == default for k in some)
        ]
        most = max(with_default, key=lambda some: (len(some), latest.dates_s[some[0]]), default=[])
        together += [latest.samples[k] for k in most]
    return tuple(together)


def newest_tuning(entries: Collection[Listed], shape: tuple[int, int], fresh_s: float) -> Listed | None:
    """The entry with the last tuning of the shape (nodes, ranks per node) that was handed over, or confirmed, since."""
    of_shape = [entry for entry in entries if (entry.nodes, entry.ppn) == shape]
    tuned = (entry for entry in of_shape if entry.tuned)
    newest = max(tuned, key=lambda entry: (entry.began_s, entry.name), default=None)
    return newest if newest is not None and confirmed_s(newest, of_shape) >= fresh_s else None


def confirmed_s(tuned: Listed, entries: Collection[Listed]) -> float:
    """When a job last handed over the tuning of ``tuned`` and found that it holds."""
    return max([tuned.began_s, *(entry.began_s for entry in entries if entry.confirms == tuned.name)])


def tuning_of(store: SiteStore, key: str, name: str) -> Tuning | None:
    """The tuning in an entry; None where it cannot be read."""
    try:
        return tuning_in(store.read(key, name).files)
    except (OSError, BadEntryError, LaterEntryError, InputError):
        return None


def tuning_in(files: Mapping[str, bytes]) -> Tuning:
    """The tuning that ``files``, those of its directory, make. Raises InputError where they make none."""
    with tempfile.TemporaryDirectory(prefix="colltune-") as place:
        try:
            write_files(Path(place), files, durable=False)
            return load_tuning(Path(place))
        except (OSError, InputError) as error:
            why = error.what.replace(place, "its directory") if isinstance(error, InputError) else error.strerror
            raise InputError(f"its files make no tuning: {why}", "Tune again") from error


def files_of(directory: Path, tuning: Tuning) -> dict[str, bytes]:
    """What an entry keeps of a tuning in ``directory``; nothing of one that may not be handed to other jobs."""
    if not_for_others(tuning):
        return {}
    return {**tuning.files, MANIFEST: read_file(directory / MANIFEST)}


def not_for_others(tuning: Tuning) -> str:
    """Why other jobs and users may not be given a tuning, "" where they may."""
    summary = tuning.summary
    if not summary.gated or summary.interrupted or tuning.provisional is not None or summary.prediction is not None:
        return "it is provisional, or not proven"
    if summary.reproducible:
        return f"its {', '.join(summary.reproducible)} is chosen for equal bits, whether it is faster or not"
    return ""


def job_name(environ: Mapping[str, str] = os.environ) -> str:
    """The number that the scheduler gave this job, with its name; "" outside of one."""
    return next((environ[name] for name in JOB_NUMBERS if environ.get(name)), "")
