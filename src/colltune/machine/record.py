"""A machine as files: the running one, or a record of another that `colltune doctor --record` made.

A record holds the same paths below ``sys/`` and ``proc/`` as the machine, and ``commands/`` with what commands printed.
It holds no name, address or serial number.
"""

import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from importlib import resources
from pathlib import Path

from colltune.core.errors import InputError, on_os_error
from colltune.machine.files import read_file, unpacked

COMMANDS: Mapping[str, tuple[str, ...]] = {"lscpu": ("lscpu",), "hwloc.xml": ("lstopo-no-graphics", "--of", "xml")}
# What a record holds of a machine; nothing of it needs root, and nothing of it names the machine.
PATTERNS = resources.files("colltune.machine").joinpath("record_patterns.txt").read_text(encoding="utf-8").split()
_PATIENCE_S = 20.0
_GZIPPED = b"\x1f\x8b"
_LARGEST_BYTES = 1 << 22
_NAMES = re.compile(
    r'\s*<info name="(?:HostName|Address|NodeGUID|SysImageGUID|Port\w*GID\w*|DMI\w*|Linux\w*|\w*UUID|'
    r'\w*Serial\w*)" value="[^"]*"/>'
)
_PERSONAL = re.compile(r"^(?:Serial|Hardware|Revision|machine)\s*:.*$|(?<=identification = )\w+", re.MULTILINE)
_ALLOWED = re.compile(r"^Cpus_allowed_list:.*\n", re.MULTILINE)


@dataclass(frozen=True)
class RunningMachine:
    """This node. ``root``: where its file tree begins."""

    root: Path = Path("/")

    def read(self, path: str) -> str | None:
        """The text of a file, stripped; None where there is none that can be read."""
        try:
            with open(self.root / path, "rb") as file:
                return file.read(_LARGEST_BYTES).decode("utf-8", "replace").strip()
        except OSError:
            return None  # many files under /sys exist and cannot be read: an interface that is down has no speed

    def find(self, pattern: str) -> list[str]:
        """The paths that match, in order; a star stands for part of one name."""
        try:
            return sorted(str(path.relative_to(self.root)) for path in self.root.glob(pattern))
        except OSError:
            return []

    def output(self, command: str) -> str | None:
        """What one of COMMANDS printed; None where it is not installed or failed."""
        argv = COMMANDS[command]
        program = shutil.which(argv[0])
        if program is None:
            return None
        try:
            done = subprocess.run(
                [program, *argv[1:]],
                env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PATIENCE_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


@dataclass(frozen=True)
class RecordedMachine:
    """The files of a record, by their paths."""

    files: Mapping[str, str]

    @classmethod
    def load(cls, path: Path) -> "RecordedMachine":
        """A directory or an archive that ``save_record`` wrote. Raises InputError."""
        try:
            if path.is_dir():
                paths = [file for file in sorted(path.rglob("*")) if file.is_file()]
                files = {
                    str(file.relative_to(path)): read_file(file, _LARGEST_BYTES).decode("utf-8", "replace")
                    for file in paths
                }
            else:
                files = _from_archive(path)
        except (OSError, ValueError, tarfile.TarError) as error:
            raise InputError(
                f"cannot read the recorded machine {path}: {error}", "Make one by `colltune doctor --record`"
            ) from error
        if not any(name.startswith(("sys/", "proc/", "commands/")) for name in files):
            raise InputError(f"{path} records no machine", "Make a record by `colltune doctor --record`")
        return cls(files)

    def read(self, path: str) -> str | None:
        text = self.files.get(path)
        return None if text is None else text.strip()

    def find(self, pattern: str) -> list[str]:
        parts = pattern.split("/")
        return [path for path, names in self._split if len(names) == len(parts) and all(map(fnmatchcase, names, parts))]

    def output(self, command: str) -> str | None:
        return self.files.get(f"commands/{command}")

    @cached_property
    def _split(self) -> list[tuple[str, list[str]]]:
        """All files and the directories above them, as a file system would list them."""
        known = {
            "/".join(names[:depth])
            for path in self.files
            for names in [path.split("/")]
            for depth in range(1, len(names) + 1)
        }
        return [(path, path.split("/")) for path in sorted(known)]


Machine = RunningMachine | RecordedMachine


def record(machine: Machine) -> RecordedMachine:
    """What PATTERNS and COMMANDS yield on ``machine``, without what names it."""
    files = {
        path: text + "\n"
        for pattern in PATTERNS
        for path in machine.find(pattern)
        if (text := machine.read(path)) is not None
    }
    if "proc/cpuinfo" in files:
        files["proc/cpuinfo"] = _PERSONAL.sub("", files["proc/cpuinfo"])
    if "proc/self/status" in files:  # it also says who runs this, and in which groups
        files["proc/self/status"] = "".join(_ALLOWED.findall(files["proc/self/status"]))
    for command in COMMANDS:
        printed = machine.output(command)
        if printed is not None:
            files[f"commands/{command}"] = _NAMES.sub("", printed)
    return RecordedMachine(files)


def save_record(recorded: RecordedMachine, out: Path) -> None:
    """Writes an archive where the name ends in .tar.gz or .tgz, else a directory. Raises InputError."""
    with on_os_error(f"cannot write {out}", "Give another place by --out"):
        if out.name.endswith((".tar.gz", ".tgz")):
            out.parent.mkdir(parents=True, exist_ok=True)
            with tarfile.open(out, "w:gz") as archive:
                for path, text in sorted(recorded.files.items()):
                    data = text.encode()
                    entry = tarfile.TarInfo(path)
                    entry.size, entry.mode = len(data), 0o644
                    archive.addfile(entry, io.BytesIO(data))
            return
        for path, text in recorded.files.items():
            place = out / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")


def _from_archive(path: Path) -> dict[str, str]:
    """Reads into memory: nothing of an archive from elsewhere is ever unpacked."""
    files = {}
    data = read_file(path, link=True)
    held = io.BytesIO(unpacked(data) if data.startswith(_GZIPPED) else data)
    with tarfile.open(fileobj=held, mode="r:") as archive:
        for entry in archive:
            content = archive.extractfile(entry) if entry.isfile() and entry.size <= _LARGEST_BYTES else None
            if content is not None:
                files[entry.name.removeprefix("./")] = content.read().decode("utf-8", "replace")
    return files
