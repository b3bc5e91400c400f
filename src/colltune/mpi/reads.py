"""Whether a library reads a tuning's files: it is asked itself, without a launcher, and once for each of its builds.

By MPI_T, whether it knows the variables that name the files, and the algorithms that these number. Where a library ends
a job at a fault in a file (MPICH), one process begins MPI with the file, before a job of thousands does.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired

from colltune.machine.compile import cache_or_nowhere, is_own
from colltune.machine.files import LARGEST_BYTES, read_file, write_atomically
from colltune.machine.process import run_launch

_PATIENCE_S, _SHORT_PATIENCE_S = 60.0, 20.0
_KEPT = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH")
# Needs neither MPI_Init nor a launcher. Prints the names that the library does not know, and the values of them as
# NAME=VALUE; a variable whose values the library does not list is not judged by them.
_ASK = """
import ctypes, json, sys
library, asked = ctypes.CDLL(sys.argv[1]), json.loads(sys.argv[2])
number, unknown, many = ctypes.c_int, [], 4096
if library.MPI_T_init_thread(0, ctypes.byref(number())) != 0:
    sys.exit("MPI_T_init_thread fails")

def values_of(index):
    text, length, form, kind = ctypes.create_string_buffer(many), number(many), ctypes.c_void_p(), ctypes.c_void_p()
    more, more_length = ctypes.create_string_buffer(many), number(many)
    if library.MPI_T_cvar_get_info(index, text, ctypes.byref(length), ctypes.byref(number()), ctypes.byref(form),
                                   ctypes.byref(kind), more, ctypes.byref(more_length), ctypes.byref(number()),
                                   ctypes.byref(number())) != 0 or not kind.value:
        return None
    count, length = number(), number(many)
    if library.MPI_T_enum_get_info(kind, ctypes.byref(count), text, ctypes.byref(length)) != 0 or not count.value:
        return None
    found = set()
    for place in range(count.value):
        value, length = number(), number(many)
        library.MPI_T_enum_get_item(kind, place, ctypes.byref(value), text, ctypes.byref(length))
        found.add(value.value)
    return found

for name, values in asked.items():
    index = number()
    if library.MPI_T_cvar_get_index(name.encode(), ctypes.byref(index)) != 0:
        unknown.append(name)
    elif values and (known := values_of(index)) is not None:
        unknown += [f"{name}={value}" for value in values if value not in known]
print("unknown:" + json.dumps(unknown))
"""
# One process as a job of its own.
_BEGIN = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
if library.MPI_Init(None, None) != 0:
    sys.exit("MPI_Init fails")
library.MPI_Finalize()
print("began")
"""


@dataclass(frozen=True)
class Asked:
    """What a library must know. ``names``: control variables; ``values``: of some, the numbers that files name.

    ``files``: by environment variable, the files at which the library ends a job if it cannot read them.
    """

    names: Sequence[str]
    values: Mapping[str, Sequence[int]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def refusal_of(library: Path, build: str, asked: Asked, environ: Mapping[str, str]) -> tuple[str, str]:
    """Why ``library`` would not use what it is ``asked`` about, and why it could not be asked; "" for neither.

    What a build knows is asked once: an answer is cached by ``build`` and the content of the files.
    """
    contents = {name: digest_of(Path(path)) for name, path in asked.files.items()}
    what = json.dumps([build, sorted(asked.names), dict(asked.values), contents], sort_keys=True)
    cached = cache_or_nowhere(environ) / f"known-{sha256(what.encode()).hexdigest()[:20]}"
    if is_own(cached):
        return "", ""
    unknown, failure = _ask(library, asked, environ)
    if failure:
        return "", f"{library} could not be asked whether it reads the files: {failure}"
    refused = _refused(unknown) or _unread(library, asked.files, environ)
    if not refused:
        with suppress(OSError):  # it is asked again the next time
            write_atomically(cached, ("\n".join(asked.names) + "\n").encode(), mode=0o600)
    return refused, ""


def digest_of(path: Path) -> str:
    """By which the content of a file is known again."""
    try:
        return sha256(read_file(path, LARGEST_BYTES, link=True)).hexdigest()
    except OSError as error:
        return f"unreadable: {error.strerror}"


def unknown_names(library: Path, names: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Those of the control variables ``names`` that ``library`` does not know; none where it cannot be asked."""
    return _ask(library, Asked(names), environ)[0]


def _refused(unknown: Sequence[str]) -> str:
    names = [name for name in unknown if "=" not in name]
    if names:
        return f"does not know {', '.join(names)}, by which the files are named, so it would not read them"
    if unknown:
        return f"has no {', '.join(unknown)}, which the files name, so these rules would not be followed"
    return ""


def _ask(library: Path, asked: Asked, environ: Mapping[str, str]) -> tuple[list[str], str]:
    """What ``library`` does not know, values as NAME=VALUE, and why it could not be asked, "" where it could."""
    question = {name: list(values) for name, values in {**dict.fromkeys(asked.names, ()), **asked.values}.items()}
    done = _run(_ASK, library, environ, _PATIENCE_S, json.dumps(question))
    unknown = re.search(r"^unknown:(.*)$", done.stdout, re.MULTILINE)
    if unknown is None:
        return [], _why(done)
    return [str(name) for name in json.loads(unknown.group(1))], ""


def _unread(library: Path, files: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """Why a process that begins MPI with the files ends, where one without them does not; "" otherwise.

    Where no single process can begin MPI, as on some login nodes, this tells nothing.
    """
    under = _run(_BEGIN, library, environ, _SHORT_PATIENCE_S, files=files) if files else None
    if under is None or _began(under):
        return ""
    bare = _run(_BEGIN, library, environ, _SHORT_PATIENCE_S)
    return f"ends a job at the files: {_why(under)}" if _began(bare) else ""


def _run(
    program: str,
    library: Path,
    environ: Mapping[str, str],
    patience_s: float,
    *arguments: str,
    files: Mapping[str, str] | None = None,
) -> CompletedProcess[str]:
    """What became of ``program``; one that has no end failed, and says why."""
    kept = {name: environ[name] for name in _KEPT if name in environ}
    command = [sys.executable, "-I", "-c", program, str(library), *arguments]
    try:
        return run_launch(command, {**kept, **(files or {})}, patience_s)
    except (OSError, TimeoutExpired) as error:
        return CompletedProcess(command, 1, "", str(error))


def _began(done: CompletedProcess[str]) -> bool:
    return done.returncode == 0 and "began" in done.stdout.splitlines()


def _why(done: CompletedProcess[str]) -> str:
    """The first line that says something: what follows it in MPICH is a back trace."""
    lines = (line.strip() for line in [*done.stderr.splitlines(), *done.stdout.splitlines()])
    printed = [line for line in lines if line and not line.startswith("Traceback")]
    return printed[0] if printed else f"exit code {done.returncode}"
