"""What a job adds to the store of its site, and what it keeps beside its tuning while the store takes nothing."""

import getpass
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from colltune.core.errors import ColltuneError
from colltune.machine.files import read_file
from colltune.site.entry import BadEntryError, Entry, LaterEntryError, name_of, pack, unpack
from colltune.site.store import SiteStore
from colltune.store.tuning import write_files

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
