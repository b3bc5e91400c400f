"""What a tuning directory keeps of earlier campaigns and runs: a folder ``history/DATE/`` of each."""

import os
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from colltune.core.errors import ColltuneError, EnvironmentMismatchError, InputError
from colltune.core.sample import Choice, Environment, Sample, Scenario
from colltune.store.journal import read_journal, require_idle, require_same
from colltune.store.tuning import CONFIRMATION, JOURNAL, MANIFEST, load_tuning

HISTORY = "history"
PROFILE = "profile.json"
GAIN = "application.json"
GAIN_PAGE = "application.txt"


@dataclass(frozen=True)
class Earlier:
    """Samples of one or more past campaigns: those of a scenario come from the latest campaign that measured it.

    ``side_by_side``: where they may come from several campaigns, those that can be compared with one another.
    ``proven``: where it is known, the choices that were proven; None: all gains count as promised. ``compared``: the
    logarithms of the gains of these, of each launch that compared them.
    """

    date: str
    samples: tuple[Sample, ...]
    side_by_side: tuple[Sample, ...] | None = None
    proven: Mapping[Scenario, Choice] | None = None
    compared: Mapping[tuple[Scenario, Choice], Sequence[float]] = field(default_factory=dict)


def new_entry(directory: Path, when_s: float) -> Path:
    """Makes a folder of the history, named after ``when_s`` (seconds since the epoch). Raises ColltuneError."""
    date = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime(when_s))
    for name in (date, *(f"{date}-{number}" for number in range(2, 1000))):
        place = directory / HISTORY / name
        try:
            place.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise ColltuneError(f"cannot make {place}: {error.strerror}", "Give a writable directory") from error
        return place
    raise ColltuneError(f"{directory / HISTORY} holds a thousand campaigns of {date}", "Move some of them away")


def archive(directory: Path) -> Path | None:
    """Moves the measurements of ``directory`` into its history and returns the new folder; None without measurements.

    The tuning itself stays valid until another one replaces it. Raises InputError while another process measures.
    """
    journal = directory / JOURNAL
    if not journal.exists():
        return None
    require_idle(journal)
    place = new_entry(directory, journal.stat().st_mtime)
    try:
        if (directory / MANIFEST).exists():
            shutil.copy2(directory / MANIFEST, place / MANIFEST)
        for name in (CONFIRMATION, JOURNAL):  # the journal last: without it the folder is not read
            if (directory / name).exists():
                os.replace(directory / name, place / name)
    except OSError as error:
        raise ColltuneError(f"cannot move {error.filename}: {error.strerror}", "Give another directory") from error
    return place


def entries(directory: Path) -> Iterator[Path]:
    """The folders of the history, the latest first."""
    place = directory / HISTORY
    yield from sorted((path for path in place.glob("*") if path.is_dir()), reverse=True)


def recall(directory: Path, environment: Environment) -> Path | None:
    """Moves the last campaign of ``environment`` from the history back to the top of ``directory``.

    A campaign of another shape of job at the top goes into the history. One of another MPI or machine stays there, and
    opening it raises an error. Returns the folder that was moved; None if none was.
    """
    if (directory / JOURNAL).exists():
        try:
            there = read_journal(directory / JOURNAL).environment
        except InputError:
            return None  # opening it repairs it, or raises an error
        if there == environment or replace(there, nodes=environment.nodes, ppn=environment.ppn) != environment:
            return None
    folder = next((place for place in entries(directory) if measured_in(place) == environment), None)
    archive(directory)
    if folder is not None:
        for name in (CONFIRMATION, JOURNAL):
            if (folder / name).exists():
                os.replace(folder / name, directory / name)
    return folder


def measurements(directory: Path, name: str = JOURNAL) -> tuple[Sample, ...]:
    """The samples of all campaigns of ``directory`` with one MPI: of each scenario, those of the latest that has it.

    ``name``: JOURNAL, or CONFIRMATION for the samples of the proofs.
    """
    samples: list[Sample] = []
    seen: set[object] = set()
    kind: Environment | None = None
    for place in (directory, *entries(directory)):
        if not (place / name).exists():
            continue
        try:
            journal = read_journal(place / name)
        except InputError:
            if place == directory:
                raise
            continue
        here = replace(journal.environment, nodes=1, ppn=1)
        kind = kind or here
        if here == kind:
            new = [sample for sample in journal.samples if sample.scenario not in seen]
            seen |= {sample.scenario for sample in new}
            samples += new
    return tuple(samples)


def tuned_sizes(directory: Path) -> dict[str, list[int]]:
    """The message sizes in bytes that the campaigns of ``directory`` measured, ascending, by collective.

    A prediction has measured none; then the sizes that it was made for.
    """
    if not (directory / JOURNAL).exists():
        predicted = load_tuning(directory).summary.prediction
        return {} if predicted is None else {name: list(some) for name, some in predicted.sizes.items()}
    sizes: defaultdict[str, set[int]] = defaultdict(set)
    for sample in measurements(directory):
        sizes[sample.scenario.collective].add(sample.scenario.size_bytes)
    return {name: sorted(some) for name, some in sizes.items()}


def measured_in(place: Path) -> Environment | None:
    """The environment of the campaign in a folder; None where no journal can be read: whoever opens it says so."""
    try:
        return read_journal(place / JOURNAL).environment
    except InputError:
        return None


def read_history(directory: Path, environment: Environment) -> tuple[Earlier | None, list[str]]:
    """The samples of earlier campaigns in the same environment, and for each other campaign why it is not used."""
    samples: list[Sample] = []
    seen: set[object] = set()
    dates, remarks = [], []
    for place in entries(directory):
        if not (place / JOURNAL).exists():
            continue
        try:
            journal = read_journal(place / JOURNAL)
            require_same(journal.environment, environment, place / JOURNAL)
        except (EnvironmentMismatchError, InputError) as error:
            remarks.append(f"not used: {error.what}")
            continue
        new = [sample for sample in journal.samples if sample.scenario not in seen]
        seen |= {sample.scenario for sample in new}
        if new:
            samples += new
            dates.append(place.name)
    return (Earlier(dates[0], tuple(samples)) if samples else None), remarks


def latest_profile(directory: Path) -> Path:
    """The profile that was taken last. Raises InputError where there is none."""
    for place in entries(directory):
        if (place / PROFILE).exists():
            return place / PROFILE
    raise InputError(
        f"{directory / HISTORY} holds no profile", f"Take one: colltune run --profile {directory} -- mpiexec -n 4 ./app"
    )
