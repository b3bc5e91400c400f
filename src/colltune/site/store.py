"""The directory that the jobs of a site share: who writes what into it, and how nobody ever reads half of anything.

::

    site.json            says that this is a store
    inbox/IDENTITY-SHA256.jsonl.gz   entries; whoever is in the group may add and read them, and nobody changes one
    quarantine/                      entries that cannot be used, each with a file that says why
    outbox/                          releases, which the administrator alone writes, and what he revoked

No file is ever changed: each is written under another name, flushed and renamed. So there are no locks to be kept.
"""

import contextlib
import errno
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from colltune.core.errors import ColltuneError, InputError, on_os_error
from colltune.machine import files
from colltune.machine.compile import cache_or_nowhere
from colltune.machine.file_formats import described
from colltune.site.entry import MOST_BYTES, SUFFIX, BadEntryError, Entry, Identity, RevokedError, name_of, pack, unpack

VARIABLE = "COLLTUNE_STORE"  # names the store of a site
MARK = "site.json"
INBOX, QUARANTINE, OUTBOX = "inbox", "quarantine", "outbox"
REVOKED = "revoked.json"  # in the outbox: whom and what the administrator does not believe
SCHEMA = 1
# Whoever is in the group adds entries; with the sticky bit nobody removes those of another.
_MODES = {INBOX: 0o3770, QUARANTINE: 0o3770, OUTBOX: 0o2755}
_FOR_THE_GROUP = 0o440  # of a file there: the group reads it, and nobody changes it
_CLOCKS_DIFFER_S = 3600.0
_NO_ENTRY = frozenset({errno.ELOOP, errno.EINVAL, errno.EFBIG})
_REASON_TEXT, _REASON_BYTES = 500, 1 << 12
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass(frozen=True)
class Revoked:
    """``users``: by their numbers; ``entries``: by their names."""

    users: tuple[int, ...] = ()
    entries: tuple[str, ...] = ()


@dataclass(frozen=True)
class SiteStore:
    """The store in ``directory``, which ``opened`` or ``made`` has looked at."""

    directory: Path

    @classmethod
    def opened(cls, directory: Path) -> "SiteStore":
        """Raises InputError where there is no store, or one of a later colltune."""
        try:
            schema = files.parse_json(files.read_file(directory / MARK))["schema"]
        except OSError as error:
            raise InputError(
                f"{described(directory)}, and no store of a site"
                if directory.exists()
                else f"{directory} is no store of a site: {error.strerror}",
                f"Make one by `colltune site init {directory}`, or correct --store or COLLTUNE_STORE",
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{directory / MARK} cannot be read: {error!r}", "Restore it, or make another store"
            ) from None
        if schema != SCHEMA:
            raise InputError(
                f"{directory} has schema {schema}, and this colltune reads {SCHEMA}", "Use a later colltune"
            )
        return cls(directory)

    @classmethod
    def made(cls, directory: Path) -> "SiteStore":
        """Makes a store, or opens the one that is there. Raises InputError where it cannot."""
        with on_os_error(f"cannot make a store in {directory}", "Give another directory"):
            if not directory.is_dir():
                directory.mkdir(parents=True)
                directory.chmod(0o755)
            for name, mode in _MODES.items():
                place = directory / name
                if not place.is_dir():
                    place.mkdir(parents=True)
                    place.chmod(mode)
            if not (directory / MARK).exists():
                files.write_atomically(directory / MARK, (json.dumps({"schema": SCHEMA}) + "\n").encode())
                (directory / MARK).chmod(0o644)
        return cls.opened(directory)

    @property
    def outbox(self) -> Path:
        return self.directory / OUTBOX

    @property
    def quarantine(self) -> Path:
        return self.directory / QUARANTINE

    def index_path(self, key: str) -> Path:
        """Where this user keeps what the entries of an identity say in short; nowhere without a cache of their own."""
        site = sha256(os.fsencode(self.directory.resolve())).hexdigest()[:16]
        return cache_or_nowhere(os.environ) / f"site-{site}-{key}.index"

    def revoked(self) -> Revoked:
        """Raises InputError where it cannot be read: who is revoked must not be believed by mistake."""
        try:
            return files.read_record(files.read_file(self.outbox / REVOKED), Revoked)
        except FileNotFoundError:
            return Revoked()
        except (OSError, ValueError) as error:
            raise InputError(f"{self.outbox / REVOKED} cannot be read: {error}", "Ask the store's owner") from None

    def revoke(self, more: Revoked) -> None:
        """Nobody believes ``more`` from now on, nor what was revoked before. Raises ColltuneError."""
        there = self.revoked()
        users, entries = ({*a, *b} for a, b in ((there.users, more.users), (there.entries, more.entries)))
        written = {"users": sorted(users), "entries": sorted(entries)}
        with on_os_error(f"cannot write to {self.outbox}", "Let the owner of the store do it", ColltuneError):
            files.write_atomically(self.outbox / REVOKED, (json.dumps(written, indent=1) + "\n").encode(), mode=0o644)

    def names(self) -> dict[str, set[str]]:
        """Of all entries, by the key of their identity: of files in the inbox whose name we could have given."""
        names: defaultdict[str, set[str]] = defaultdict(set)
        for file in os.listdir(self.directory / INBOX):
            key, dash, name = file.removesuffix(SUFFIX).partition("-")
            usual = file.endswith(SUFFIX) and file.isascii() and file.isprintable()
            if usual and dash and not file.startswith("."):
                names[key].add(name)
        return dict(names)

    def place(self, key: str, name: str) -> Path:
        return self.directory / INBOX / f"{key}-{name}{SUFFIX}"

    def add(self, entry: Entry) -> str:
        """Adds ``entry`` and returns its name; what is there already is not written again. Raises ColltuneError."""
        return self.add_packed(entry.identity, pack(entry))

    def add_packed(self, identity: Identity, data: bytes) -> str:
        """The same for the bytes of an entry."""
        name = name_of(data)
        place = self.place(identity.key, name)
        try:
            if not place.exists():
                files.write_atomically(place, data, mode=_FOR_THE_GROUP)
                files.sync_directory(self.directory / INBOX)
        except OSError as error:
            why = "no space is left in" if error.errno in _FULL else "cannot write to"
            raise ColltuneError(
                f"{why} the store {self.directory}: {error.strerror}",
                "What was measured is kept; add it later by `colltune site add`",
            ) from error
        return name

    def read(self, key: str, name: str) -> Entry:
        """With the owner of its file as the writer: what its text says of that, anybody may write.

        Raises BadEntryError for one that cannot be used, with the reason; RevokedError; LaterEntryError; OSError.
        """
        revoked = self.revoked()
        try:
            data, uid = files.read_owned(self.place(key, name), MOST_BYTES)
        except OSError as error:
            if error.errno in _NO_ENTRY:
                raise BadEntryError(error.strerror) from None
            raise
        if uid in revoked.users or name in revoked.entries:
            raise RevokedError(f"{name} was revoked")
        entry = unpack(data, name)
        if entry.identity.key != key:
            raise BadEntryError(f"it is of another identity: {entry.identity}")
        if entry.uid not in (None, uid):
            raise BadEntryError(f"user {entry.uid} wrote it, and its file belongs to user {uid}")
        if max(entry.provenance.began_s, entry.provenance.ended_s) > time.time() + _CLOCKS_DIFFER_S:
            raise BadEntryError("it says that its job ended in the future")
        return replace(entry, uid=uid)

    def set_aside(self, key: str, name: str, reason: str) -> bool:
        """Moves an entry into the quarantine with ``reason``; False where this user may not."""
        target, note = self.quarantine / f"{key}-{name}{SUFFIX}", self.quarantine / f"{key}-{name}.reason"
        try:
            files.write_atomically(note, f"{reason[:_REASON_TEXT]}\n".encode(), mode=_FOR_THE_GROUP, durable=False)
            os.rename(self.place(key, name), target)
        except FileNotFoundError:
            return True  # another reader was faster
        except OSError:
            with contextlib.suppress(OSError):
                note.unlink()
            return False
        return True

    def quarantined(self) -> Iterator[tuple[str, str]]:
        """(name, reason) of each entry that was set aside."""
        for path in sorted(self.quarantine.glob(f"*{SUFFIX}")):
            name = path.name.removesuffix(SUFFIX)
            try:
                reason = files.read_text(self.quarantine / f"{name}.reason", _REASON_BYTES).strip()
            except FileNotFoundError:
                reason = "no reason is given"
            except (OSError, ValueError):
                reason = "its reason cannot be read"
            yield name, reason
