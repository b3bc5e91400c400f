"""Releases: what an administrator hands to all users. One directory, made of tunings that jobs handed over.

::

    outbox/releases/ID/manifest.json          what is in it, with the checksum of every file; ID ends in its own
    outbox/releases/ID/tunings/MPI/NxP/       a tuning directory for each shape of job
    outbox/releases/ID/modules/               module files for Lmod and Tcl (`colltune.site.knowledge`)
    outbox/releases/ID/SHA256SUMS             of all files; beside it SHA256SUMS.sig, if it is signed
    outbox/active                             a link to the release that modules load now
    outbox/activations.json                   the releases that were activated, the last one last

A release is never changed. What switches is the link, by a rename; who has loaded a release has its own paths. It is
signed by what sites have: ``ssh-keygen -Y``, and a file of allowed signers. What is signed is SHA256SUMS, which names
every file of the release: `sha256sum --check` and `ssh-keygen` verify it.
"""

import hashlib
import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from colltune.core.errors import ColltuneError, InputError, on_os_error
from colltune.core.proven import Verdict
from colltune.machine.compile import OTHERS_WRITE
from colltune.machine.files import LARGEST_BYTES, read_file, read_record, write_atomically
from colltune.site.entry import BadEntryError, Identity, LaterEntryError
from colltune.site.index import Index, Listed, open_index
from colltune.site.knowledge import STALE_S, confirmed_s, not_for_others, tuning_in
from colltune.site.modules import PublishedTuning, module_files
from colltune.site.store import SiteStore
from colltune.store.tuning import MANIFEST as TUNING
from colltune.store.tuning import Tuning, write_files

SUMS, SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"
_NAMESPACE = "colltune"  # a signature for something else is none for a release
_PATIENCE_S = 60.0


def checksums(directory: Path) -> bytes:
    """Of all files in ``directory``, as `sha256sum` writes them. Raises OSError, also for what is no plain file."""
    paths = sorted(path for path in directory.rglob("*") if not path.is_dir() or path.is_symlink())
    named = [(path.relative_to(directory), path) for path in paths if path.name not in (SUMS, SIGNATURE)]
    digests = [(hashlib.sha256(read_file(path, LARGEST_BYTES)).hexdigest(), name) for name, path in named]
    return "".join(f"{digest}  {name}\n" for digest, name in digests).encode()


def sign(directory: Path, key: Path) -> None:
    """Signs the release in ``directory`` with the private ``key``, or with that of an agent. Raises ColltuneError."""
    command = ["ssh-keygen", "-Y", "sign", "-f", str(key), "-n", _NAMESPACE]
    try:
        done = subprocess.run(
            command, input=(directory / SUMS).read_bytes(), capture_output=True, timeout=_PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ColltuneError(f"ssh-keygen cannot be run: {error}", "Install OpenSSH 8.2 or later") from error
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        said = lines[0] if lines else f"ssh-keygen ended with exit code {done.returncode}"
        raise ColltuneError(f"{directory.name} is published and not signed: {said}", "Check --sign KEY")
    (directory / SIGNATURE).write_bytes(done.stdout)
    (directory / SIGNATURE).chmod(0o444)


MANIFEST, ACTIVE, ACTIVATIONS, RELEASES = "manifest.json", "active", "activations.json", "releases"
LOADED = "COLLTUNE_RELEASE"  # names the directory of the release that a job has loaded
SCHEMA = 1
_DIGITS = 8
_WRITERS = 2  # so many users have to say a tuning that is of nobody who is trusted
# Finds what is wrong in the files of a tuning, a line each.
Lint = Callable[[Tuning], Iterable[str]]


@dataclass(frozen=True)
class _Versioned:
    schema: int


@dataclass(frozen=True)
class _Manifest:
    """``refused``: what was left out when it was made, and why."""

    made_s: float
    by: str
    colltune: str
    tunings: tuple[PublishedTuning, ...]
    refused: tuple[str, ...]


@dataclass(frozen=True)
class Release(_Manifest):
    """``place``: its directory."""

    place: Path

    @property
    def name(self) -> str:
        return self.place.name


def publish(
    store: SiteStore, by: str, colltune: str, lint: Lint, now_s: float | None = None, trusted: Collection[int] = ()
) -> Release:
    """Makes a release of the last tuning of each identity and shape. Raises ColltuneError where there is none to make.

    A tuning is handed out if it comes from whoever publishes or from a user in ``trusted`` (by number), or if jobs of
    two users say it. Nothing is activated. What is stale, simulated, or would not be read is left out, with the reason.
    Every entry is read and verified anew: the index only says which.
    """
    now_s = time.time() if now_s is None else now_s
    made = store.outbox / RELEASES / f".{secrets.token_hex(4)}.new"
    refused: list[str] = []
    tunings: list[PublishedTuning] = []
    making = _Making(store, made, lint, now_s, {os.geteuid(), *trusted}, refused)
    try:
        if not made.parent.is_dir():
            made.parent.mkdir(parents=True)
            made.parent.chmod(0o755)
        made.mkdir()
        for key, names in sorted(store.names().items()):
            tunings += making.of_identity(open_index(store, key, names=names), key)
        if not tunings:
            why = "; ".join(refused) or "no job has handed over a tuning yet"
            raise InputError(f"there is nothing to publish: {why}", "Run `colltune tune --store` in jobs first")
        document = asdict(_Manifest(now_s, by, colltune, tuple(tunings), tuple(refused)))
        data = (json.dumps({"schema": SCHEMA, **document}, indent=1) + "\n").encode()
        name = f"{time.strftime('%Y-%m-%d', time.gmtime(now_s))}-{hashlib.sha256(data).hexdigest()[:_DIGITS]}"
        place = store.outbox / RELEASES / name
        write_files(made, {MANIFEST: data, **module_files(place, tunings)})
        write_files(made, {SUMS: checksums(made)})
        _readable(made)
        os.rename(made, place)
    except OSError as error:
        raise ColltuneError(
            f"cannot write the release: {error}", "Make room, or check who may write to the outbox"
        ) from error
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return read_release(place)


@dataclass(frozen=True)
class _Making:
    """A release while it is made in ``made``; ``refused`` hears why a tuning is left out."""

    store: SiteStore
    made: Path
    lint: Lint
    now_s: float
    trusted: Collection[int]
    refused: list[str]

    def of_identity(self, index: Index, key: str) -> list[PublishedTuning]:
        tunings = []
        for shape in sorted({(entry.nodes, entry.ppn) for entry in index.entries if entry.tuned}):
            try:
                of_shape = [entry for entry in index.entries if (entry.nodes, entry.ppn) == shape]
                tunings.append(self._of_shape(of_shape, key))
            except (BadEntryError, LaterEntryError, ColltuneError) as error:
                why = error.what if isinstance(error, ColltuneError) else error
                self.refused.append(f"{shape[0]} x {shape[1]}: {why}")
        return tunings

    def _of_shape(self, entries: Sequence[Listed], key: str) -> PublishedTuning:
        """The last tuning of one shape that enough users say. Raises InputError where there is none to hand out."""
        listed, writers = self._last(entries)
        when_s = confirmed_s(listed, entries)
        if when_s < self.now_s - STALE_S:
            days = (self.now_s - when_s) / 86400
            raise InputError(f"stale, no job has confirmed it for {days:.0f} days", "Tune again")
        entry = self.store.read(key, listed.name)
        if entry.uid != listed.uid:
            raise BadEntryError(f"its file was user {listed.uid}'s, and is user {entry.uid}'s")
        tuning, here = tuning_in(entry.files), entry.identity
        if why := _obstacle(tuning, here, self.lint):
            raise InputError(why, "Tune again")
        shape = listed.nodes, listed.ppn
        directory = f"tunings/{here.label}-{key[:_DIGITS]}/{shape[0]}x{shape[1]}"
        files = {**tuning.files, TUNING: entry.files[TUNING]}  # what the tuning does not name is not handed out
        write_files(self.made / directory, files)
        return PublishedTuning(
            directory,
            here,
            *shape,
            listed.name,
            when_s,
            collectives=tuple(sorted(name for name, rules in tuning.rule_sets.items() if rules.departs)),
            proven=len(tuning.summary.having(Verdict.KEPT)),
            variables=dict(tuning.variables),
            libmpi=self._library(tuning.environment.libmpi),
            files={name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())},
            writers=tuple(sorted(writers)),
        )

    def _last(self, entries: Sequence[Listed]) -> tuple[Listed, set[int]]:
        """The last tuning that is believed, with the users who say it."""
        alone = -1
        tuned = (entry for entry in entries if entry.tuned)
        for entry in sorted(tuned, key=lambda entry: (entry.began_s, entry.name), reverse=True):
            writers = {entry.uid, *(later.uid for later in entries if later.confirms == entry.name)}
            if len(writers) >= _WRITERS or writers & set(self.trusted):
                return entry, writers
            alone = entry.uid if alone < 0 else alone
        raise InputError(
            f"user {alone} alone says it; a job of another user has to confirm it, or: --trust {alone}", "Tune again"
        )

    def _library(self, named: str) -> str:
        """By which modules know the MPI again: ``named``, unless others may change what lies there, or put it there."""
        place = Path(named)
        there = next((path for path in (place, *place.parents) if path.exists()), Path("/")).stat()
        if place.is_absolute() and there.st_uid in {0, *self.trusted} and not there.st_mode & OTHERS_WRITE:
            return named
        self.refused.append(f"modules do not check the library {named!r}: others may change it")
        return ""


def _obstacle(tuning: Tuning, identity: Identity, lint: Lint) -> str:
    """Why a tuning may not be handed to all users, "" where it may."""
    if not tuning.environment.has_mpi:
        return "it is of a simulated cluster"
    there = replace(Identity.of(tuning.environment), fabric=identity.fabric)  # a directory may not say its fabric
    if there != identity:
        return f"its files are of {there}"
    if why := not_for_others(tuning):
        return why
    try:
        return "; ".join(lint(tuning))
    except ColltuneError as error:
        return error.what


def _readable(directory: Path) -> None:
    """For all users, whatever the umask of whoever publishes."""
    for path in (directory, *directory.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o444)


def read_release(place: Path) -> Release:
    """Raises InputError where it is none, or a file of it is missing or was changed."""
    again = "Publish anew, or roll back to another release"
    try:
        data = read_file(place / MANIFEST)
        if not place.name.endswith(hashlib.sha256(data).hexdigest()[:_DIGITS]):
            raise InputError(f"{place / MANIFEST} was changed after it was written", again)
        if (schema := read_record(data, _Versioned).schema) != SCHEMA:
            raise InputError(f"{place} has schema {schema}", "Use the colltune that wrote it")
        held = read_record(data, _Manifest)
        for tuning in held.tunings:
            for name, checksum in tuning.files.items():
                path = place / tuning.directory / name
                if hashlib.sha256(read_file(path)).hexdigest() != checksum:
                    raise InputError(f"{path} was changed after it was published", again)
        return Release(**vars(held), place=place)
    except OSError as error:
        raise InputError(f"{place} is no whole release: {error.filename}: {error.strerror}", again) from error
    except ValueError as error:
        raise InputError(f"{place} is no release: {error}", again) from error


def releases(store: SiteStore) -> list[str]:
    """The names of all releases, the oldest first."""
    places = [path.parent for path in (store.outbox / RELEASES).glob(f"*/{MANIFEST}") if path.parent.name[0] != "."]
    return [place.name for place in sorted(places, key=lambda place: (_changed_s(place / MANIFEST), place.name))]


def active(store: SiteStore) -> str:
    """The name of the release that modules load now; "" where none is active."""
    try:
        return Path(os.readlink(store.outbox / ACTIVE)).name
    except OSError:
        return ""


def activations(store: SiteStore) -> list[str]:
    """The names of the releases that were activated and not rolled back, the last one last."""
    try:
        return [row["release"] for row in read_record(read_file(store.outbox / ACTIVATIONS), list[dict[str, str]])]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{store.outbox / ACTIVATIONS} cannot be read: {error!r}", "Name a release to activate"
        ) from None


def activate(store: SiteStore, name: str) -> Release:
    """Makes the release ``name`` the one that is loaded, in one step. Raises InputError where it is not whole."""
    release = read_release(store.outbox / RELEASES / name)
    if active(store) != name:
        _write_activations(store, [*activations(store), name])
        _switch(store, name)
    return release


def rollback(store: SiteStore) -> Release:
    """Goes back to the release that was active before. Raises InputError where there was none."""
    before = [activation for activation in activations(store) if activation != active(store)]
    if not before:
        raise InputError("no release was active before this one", "Name one: colltune site activate RELEASE")
    release = read_release(store.outbox / RELEASES / before[-1])
    _switch(store, release.name)
    _write_activations(store, before)
    return release


def _switch(store: SiteStore, name: str) -> None:
    beside = store.outbox / f".{ACTIVE}.{secrets.token_hex(4)}.new"
    try:
        beside.symlink_to(Path(RELEASES) / name)
        beside.rename(store.outbox / ACTIVE)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise ColltuneError(f"cannot activate {name}: {error.strerror}", "Check who may write to the outbox") from error


def _write_activations(store: SiteStore, names: Sequence[str]) -> None:
    with on_os_error(f"cannot write to {store.outbox}", "Check who may write to the outbox", ColltuneError):
        document = [{"release": name} for name in names]
        write_atomically(store.outbox / ACTIVATIONS, (json.dumps(document, indent=1) + "\n").encode(), mode=0o644)


def _changed_s(path: Path) -> float:
    """When it was changed, of a link the link itself; now where it is gone."""
    try:
        return path.lstat().st_mtime
    except OSError:
        return time.time()
