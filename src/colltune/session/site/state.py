"""What `colltune site` does: coverage of a store, its releases, and what jobs and people add to it.

While the store takes nothing, a job keeps what it has to add beside its tuning.
"""

import getpass
import os
import pwd
import shlex
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from colltune.catalog import load
from colltune.core.errors import ColltuneError, InputError
from colltune.core.proven import Verdict
from colltune.core.sample import Scenario, grouped
from colltune.core.space import message_sizes, shapes
from colltune.core.units import format_count
from colltune.machine.files import read_file
from colltune.site.entry import BadEntryError, Entry, Identity, LaterEntryError, Provenance, name_of, pack, unpack
from colltune.site.index import job_of, open_index, without_collections
from colltune.site.knowledge import STALE_S, confirmed_s, files_of, newest_tuning, tuning_of
from colltune.site.release import active, releases
from colltune.site.store import VARIABLE, Revoked, SiteStore
from colltune.store.earlier import measurements
from colltune.store.journal import read_journal
from colltune.store.tuning import JOURNAL, load_tuning, write_files

COMMANDS = "COLLTUNE_STORE_COMMANDS"  # "1": entries hold the arguments of commands too
PENDING = "pending"  # in a tuning directory: entries that could not be added to the store


def add_or_put_by(store: SiteStore, entry: Entry, out: Path, note: Callable[[str], None]) -> bool:
    """Adds ``entry``, or keeps it in ``out`` until the store takes it (False); a tuning does not fail for that."""
    data = pack(entry)
    try:
        store.add_packed(entry.identity, data)
    except ColltuneError as error:
        name = f"{PENDING}/{entry.identity.key}-{name_of(data)}"
        try:
            write_files(out, {name: data})
        except OSError as full:
            note(f"nothing was added to the store: {error.what}; nor is there room in {out}: {full.strerror}")
            return False
        note(f"{error.what}; `colltune site add {out}` adds it later, or the next tuning there")
        return False
    return True


def add_pending(store: SiteStore, out: Path, note: Callable[[str], None]) -> int:
    """Adds what could not be added before, and returns how many entries that were."""
    count = 0
    for path in sorted((out / PENDING).glob("*-*")):
        try:
            entry = unpack(read_file(path), path.name.partition("-")[2])
            store.add(replace(entry, uid=None))  # whoever adds it stands for it
            path.unlink()
            count += 1
        except (OSError, BadEntryError, LaterEntryError) as error:
            note(f"{path} is not added to the store: {error}")
        except ColltuneError as error:
            note(f"{path} is not added to the store yet: {error.what}")
    return count


def command_text(words: Sequence[str], environ: Mapping[str, str] = os.environ) -> str:
    """What an entry says of a command: its program alone, for arguments hold secrets, and others read entries.

    All of it where whoever runs it asks for that, by COLLTUNE_STORE_COMMANDS=1.
    """
    return shlex.join(words) if environ.get(COMMANDS) == "1" else Path(words[0] if words else "").name


def user_name() -> str:
    """Of whoever runs this; the number where the machine has no name for it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


_LARGEST_BYTES = 1 << 20


def store_of(given: Path | None) -> SiteStore:
    """The store that is named, or that of the site. Raises InputError where there is none."""
    named = given or os.environ.get(VARIABLE)
    if not named:
        raise InputError("no store is named", f"Give --store DIRECTORY, or set {VARIABLE}")
    return SiteStore.opened(Path(named))


@dataclass(frozen=True)
class ShapeCoverage:
    """Coverage of one shape of job. ``tuned_s``: since the epoch; None where nothing was handed over.

    ``measured`` of ``pairs`` (scenario, choice) are known, by collective. ``proven`` counts decisions. ``next``: what a
    job of this shape would do.
    """

    nodes: int
    ppn: int
    jobs: int
    measured: dict[str, tuple[int, int]]
    tuned_s: float | None
    proven: int
    next: str


@dataclass(frozen=True)
class SiteMachine:
    """One identity. ``newest_s``: when its last entry began, since the epoch."""

    identity: Identity
    entries: int
    users: int
    newest_s: float
    shapes: Sequence[ShapeCoverage]


@dataclass(frozen=True)
class StoreStatus:
    """What a store holds. ``quarantined``: (entry, reason). ``active``: the release in use, "" for none."""

    machines: Sequence[SiteMachine]
    quarantined: Sequence[tuple[str, str]]
    releases: Sequence[str]
    active: str


@without_collections()
def status(store: SiteStore) -> StoreStatus:
    """Raises InputError where the store cannot be read."""
    each = (_machine(store, key, names, time.time()) for key, names in sorted(store.names().items()))
    machines = [machine for machine in each if machine is not None]
    return StoreStatus(machines, list(store.quarantined()), releases(store), active(store))


def _machine(store: SiteStore, key: str, names: set[str], now_s: float) -> SiteMachine | None:
    index = open_index(store, key, names=names)
    entries = index.entries
    if not entries:
        return None
    identity = Identity.of(store.read(key, entries[0].name).environment)
    of_shape = grouped(entries, lambda entry: (entry.nodes, entry.ppn))
    known: defaultdict[tuple[int, int], dict[str, int]] = defaultdict(dict)
    for name, nodes, ppn, count in index.coverage():
        known[nodes, ppn][name] = count
    possible = cache(partial(_pairs, identity))
    made = []
    for shape, mine in sorted(of_shape.items()):
        listed = newest_tuning(mine, shape, -1.0)
        tuning = None if listed is None else tuning_of(store, key, listed.name)
        when_s = None if listed is None else confirmed_s(listed, mine)
        measured = _measured_in(known, shape, possible)
        verdicts = Counter(decision.verdict for decision in (() if tuning is None else tuning.summary.decisions))
        jobs = len({job_of(entry.uid, entry.job, entry.began_s, entry.hosts) for entry in mine})
        then = _next(measured, when_s, verdicts[Verdict.NOT_TRIED], now_s)
        made.append(ShapeCoverage(*shape, jobs, measured, when_s, verdicts[Verdict.KEPT], then))
    users = len({entry.uid for entry in entries})
    return SiteMachine(identity, len(entries), users, entries[0].began_s, made)


def _measured_in(
    known: Mapping[tuple[int, int], Mapping[str, int]],
    shape: tuple[int, int],
    possible: Callable[[str, tuple[int, int]], int],
) -> dict[str, tuple[int, int]]:
    """By collective: the pairs that are measured in the parts of a job of ``shape``, and those that are possible."""
    parts = shapes(*shape)
    names = sorted({name for part in parts for name in known.get(part, {})})
    counts = {name: sum(known.get(part, {}).get(name, 0) for part in parts) for name in names}
    return {name: (count, sum(possible(name, part) for part in parts)) for name, count in counts.items()}


def _pairs(identity: Identity, collective: str, shape: tuple[int, int]) -> int:
    """How many (scenario, choice) pairs there are on all of the shape, 1 B to 1 MiB; 0 where that is not known."""
    try:
        catalogue = load(identity.mpi, identity.mpi_version)
    except InputError:
        return 0
    if collective not in catalogue.entries:
        return 0
    grid = [Scenario(collective, *shape, size) for size in message_sizes(collective, 1, _LARGEST_BYTES)]
    return sum(len(catalogue.legal(scenario, identity.thread_level)) for scenario in grid)


def _next(measured: dict[str, tuple[int, int]], tuned_s: float | None, untried: int, now_s: float) -> str:
    if tuned_s is None:
        return "measure and prove: no job has handed over a tuning"
    if tuned_s < now_s - STALE_S:
        return "measure anew: its tuning is stale"
    left = sum(max(pairs - count, 0) for count, pairs in measured.values())
    if untried:
        return f"prove {untried} decisions that no job had time for"
    return f"measure what is unknown, {left} pairs at most" if left else "look whether it still holds"


def add(store: SiteStore, directory: Path, note: Callable[[str], None]) -> int:
    """Adds a tuning directory that was made without the store, and what is pending there; how many entries that were.

    Raises InputError where there is nothing to add.
    """
    pending = add_pending(store, directory, note)
    if pending:
        return pending
    tuning = load_tuning(directory)
    if not tuning.environment.has_mpi or tuning.summary.prediction is not None:
        what = tuning.summary.predicted_text or "it is of a simulated cluster"
        raise InputError(
            f"{directory} was not measured on a machine: {what}", "Add a directory that `colltune tune` wrote"
        )
    environment = read_journal(directory / JOURNAL).environment
    ended_s = (directory / JOURNAL).stat().st_mtime
    began_s = tuning.summary.since_s or ended_s - tuning.summary.total_s
    facts = Provenance(command_text(["colltune", "site", "add", str(directory)]), user_name(), "", (), began_s, ended_s)
    entry = Entry(environment, facts, measurements(directory), (), files_of(directory, tuning))
    return int(add_or_put_by(store, entry, directory, note))


def user_number(user: str) -> int:
    """Of a user by name or number. Raises InputError where there is no such user."""
    try:
        return int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid
    except KeyError:
        raise InputError(f"there is no user {user!r} here", "Give a name, or a number as `ls -n` shows it") from None


def user_text(number: int) -> str:
    """A user for readers, by number, and by name where there is one here."""
    try:
        return f"{number} ({pwd.getpwuid(number).pw_name})"
    except KeyError:
        return str(number)


def revoke(store: SiteStore, what: str) -> str:
    """Takes a user, or an entry by the beginning of its name, out of belief; says what. Raises ColltuneError."""
    names = [name for some in store.names().values() for name in some if len(what) >= 8 and name.startswith(what)]
    if names:
        store.revoke(Revoked(entries=tuple(names)))
        return format_count(len(names), "entry", "entries")
    number = user_number(what)
    store.revoke(Revoked(users=(number,)))
    return f"all that user {user_text(number)} said"
