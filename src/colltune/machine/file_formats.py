"""Which format a file is of, by the grammar of each that colltune reads: asked before a reader is chosen.

What is of no format that fits is described, so that no reader judges it by the grammar of another. ``log_text`` is what
the recogniser and all readers of logs see: without the labels of ranks, colours and indentation that batch jobs add.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from colltune.core.errors import InputError
from colltune.core.sample import COLLECTIVES
from colltune.machine.files import MIB, MOST_BYTES, read_file, unpacked


class Format(StrEnum):
    """What a reader is for, as messages name it."""

    MPICH_TREES = "a selection file of MPICH"
    TUNED_RULES = "rules of Open MPI's coll/tuned"
    HAN_RULES = "rules of Open MPI's coll/han"
    TUNING = "the manifest of a tuning directory"
    JOURNAL = "a journal of measurements"
    PRELOADED_RULES = "rules of colltune's preloaded library"
    PROFILE = "a profile of colltune"
    PART = "the part of a rank of colltune's profile"
    BENCHMARK = "output of OSU, IMB-MPI1 or ReproMPI"
    TABLE = "a table"
    HOSTS = "a list of hosts"


SELECTION = (Format.MPICH_TREES, Format.TUNED_RULES, Format.HAN_RULES)
PROFILES = (Format.PROFILE, Format.PART)
# What begins a table of a benchmark, or says the shape of those that follow.
BENCHMARK_HEAD = re.compile(
    r"^(?:# OSU (?P<OSU>.*)|#[ \t]*Benchmarking[ \t]+(?P<IMB>\S+).*|(?P<ReproMPI>test[ \t].*\bcount[ \t].*)"
    r"|#[ \t]*nodes=(?P<nodes>\d{1,7})[ \t]+ppn=(?P<ppn>\d{1,7})(?:[ \t]+algorithm=(?P<algorithm>\S+))?)[ \t]*$",
    re.MULTILINE,
)
HAN_COMPONENTS = ("self", "basic", "libnbc", "tuned", "sm", "adapt", "han")
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\^_]")
_DATE = r"(?:\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?|\w{3} \w{3} +\d+ [\d:]{8} \d{4})"
# As srun -l ("0: "), mpiexec -prepend-rank ("[0] ") and mpirun --tag-output ("[1,0]<stdout>:") write them.
_LABEL = re.compile(
    rf"^[ \t]*(?:{_DATE}[ \t]*)?"
    r"(?:(?:\[[^\[\]\n]{1,80}\])+(?:<\w{1,9}>:?|:)?|<\w{1,9}>:|(?:[\w.-]{1,64} )?\d{1,9}:)?[ \t]*",
    re.MULTILINE,
)
_LABEL_BEHIND = re.compile(r"(?:\[\d{1,9}\])?[ \t]*$", re.MULTILINE)  # where mpiexec -prepend-rank met an end of line
_MAGIC = {
    b"PAR1": Format.TABLE, b"\x89HDF": "a file of HDF5", b"\x93NUMPY": "an array",
    b"SQLite format 3": "a database", b"%PDF": "a PDF", b"\x89PNG": "a picture", b"PK\x03\x04": "an archive",
    b"BZh": "compressed by bzip2", b"\xfd7zXZ": "compressed by xz", b"\x28\xb5\x2f\xfd": "compressed by zstd",
}  # fmt: skip
_BINARY = 512  # of the first bytes of a text none is 0
_REPRO = r"^#@\w+="
# Of text that no reader takes: what it is, and what to do.
_OTHERS = {
    r"^#+\s*IPM|<ipm_job_profile\b|^@? ?mpiP\b": ("of IPM or mpiP", "Make a profile by `colltune profile`"),
    r"^# (?:nccl-tests|nThread +\d+ +nGpus)": ("output of nccl-tests, of GPU buffers", "colltune tunes host memory"),
}
_GPU = (
    "output of OSU of GPU buffers",
    "colltune tunes calls on host memory: give output of a run without -d, or without D D",
)
_SHAPES = {
    r"<": "XML or HTML", r"rank\s+\d+\s*=": "a rankfile of Open MPI",
    r"[\w.]+\s*=": "settings, NAME = VALUE in each line",
    r"colltune-(?:count|measure) ": "what a run with --measure left",
}  # fmt: skip
_SETTING = re.compile(r"\[\s*[A-Za-z_]\w*\s*=|UCC_\w+\s*[=:]|(?:TL|CL|EC|MC)_\w+\s*[=:]")
_JSON_RULES = "JSON rules of Open MPI 6, which no release reads"
_JSON = {
    r'\s*\{\s*"name=': "a file of named trees, which no release of MPICH reads",
    r'\s*\{\s*("\$\w+"\s*:\s*"[^"]*"\s*,\s*)*"(rule_file_version|module|collectives)"\s*:': _JSON_RULES,
    r'[^}]{0,400}"kind"\s*:\s*"colltune-profile"': Format.PROFILE,
    r'\s*\{\s*"schema"\s*:\s*\d+\s*,\s*"environment"': Format.TUNING,
    r'\s*\{\s*"crc"': Format.JOURNAL,
    r'(?s).*?"\s*(?:collective|algorithm|composition)\s*=': Format.MPICH_TREES,
    r'(?s).*?"[a-z_]+\s*[<>=]=?[^"]*"\s*:|\s*\{\s*\}\s*\Z': Format.MPICH_TREES,
}
# A number alone is no host: rows of a table have those.
_HOST = r"(?!\d+(?:\.\d+)?(?:[,\s]|$))(?:[\w.-]|\[[^\[\]]*\])+"
# As launchers read their host files, and as Slurm lists hosts: what all readers of such a file take.
HOST_LINE = re.compile(
    rf"(?:SLURM_(?:JOB_)?NODELIST=)?(?P<quote>[\"']?)(?P<hosts>{_HOST}(?:,\s*{_HOST})*)(?P=quote)"
    r"(?:(?::|\s+slots\s*=\s*|\s+)(?P<slots>[0-9]{1,6}))?(?:\s+[A-Za-z][\w-]*\s*=\s*\S+)*",
    re.ASCII,
)


@dataclass(frozen=True)
class Recognised:
    """``format``: None for what no reader takes. ``what``: behind "it is"; ``hint``: what to do, "" for nothing.

    ``packed``: whether it was gzipped.
    """

    format: Format | None
    what: str
    hint: str = ""
    packed: bool = False


def recognise(data: bytes) -> Recognised:
    """What the file with this content is. Any bytes are taken; of over 64 MiB the first are looked at."""
    try:
        plain, packed = _unpacked(data), data[:2] == b"\x1f\x8b"
    except ValueError as error:
        return Recognised(None, f"gzipped, but {error}")
    for begin, what in _MAGIC.items():
        if plain.startswith(begin):
            return Recognised(what if isinstance(what, Format) else None, what, "", packed)
    text = _decoded(plain if len(plain) <= MOST_BYTES else plain[:MIB])
    if "\0" in text[:_BINARY]:
        return Recognised(None, "a program or other binary file", "", packed)
    format_, what, hint = _of_text(text)
    return Recognised(format_, what if format_ is None else str(format_), hint, packed)


def require_format(
    path: Path | str, data: bytes, formats: Collection[Format], use: str, next_step: str
) -> tuple[Format, bool]:
    """The format, one of ``formats``, and whether it is gzipped.

    Raises InputError where it is none of them, which says what it is, and that it is no ``use``.
    """
    recognised = recognise(data)
    if recognised.format is not None and recognised.format in formats:
        return recognised.format, recognised.packed
    raise InputError(f"{path} is {recognised.what}, and no {use}", recognised.hint or next_step)


def described(path: Path) -> str:
    """``"hosts is a list of hosts"``: what is found in the place of something else."""
    if path.is_dir():
        return f"{path} is a directory"
    try:
        return f"{path} is {recognise(read_file(path, link=True)).what}"
    except OSError as error:
        return f"{path}: {error.strerror}"


def log_text(data: bytes) -> str:
    """What programs printed, in the lines of the file. Raises ValueError for what cannot be uncompressed."""
    return _without_labels(plain_text(data))


def plain_text(data: bytes) -> str:
    """The text of a file that people wrote. Raises ValueError for what cannot be uncompressed."""
    return _decoded(_unpacked(data))


def _without_labels(text: str) -> str:
    return _LABEL_BEHIND.sub("", _LABEL.sub("", _COLOURS.sub("", text)))


def _unpacked(data: bytes) -> bytes:
    return unpacked(data) if data[:2] == b"\x1f\x8b" else data


def _decoded(data: bytes) -> str:
    """Text of any of the encodings that editors write, with "\n" between the lines."""
    wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    text = data.decode("utf-16" if wide else "utf-8", "replace").replace("\ufeff", "")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _of_text(text: str) -> tuple[Format | None, str, str]:
    """The format, else what it is and what to do."""
    lines = (line.strip() for line in text.split("\n"))
    first = next((line for line in lines if line and not line.startswith(("#", ";"))), "")
    if text.startswith("#!"):
        return None, "a script", ""
    rules = _rules(text)
    if rules is not None and rules[1]:
        return rules[0], "", ""
    for head, kind in (("colltune-rules ", Format.PRELOADED_RULES), ("colltune-live ", Format.PRELOADED_RULES),
                       ("colltune-profile ", Format.PART)):  # fmt: skip
        if first.startswith(head):
            return kind, "", ""
    if (log := _of_log(_without_labels(text))) is not None:
        return log
    if _SETTING.match(first):
        return None, "a ucc.conf", ""
    if first[:1] in ("{", "[", '"'):
        unknown = "JSON of none of the formats that colltune knows"
        known = next((known for grammar, known in _JSON.items() if re.match(grammar, text)), unknown)
        return (known, "", "") if isinstance(known, Format) else (None, known, "")
    if rules is not None:
        return rules[0], "", ""
    return _of_lines(text, first)


def _of_log(text: str) -> tuple[Format | None, str, str] | None:
    """Of what a job printed, also where other output stands around it."""
    heads = [head for head in BENCHMARK_HEAD.finditer(text) if not head["nodes"]]
    titles = [head["OSU"] for head in heads if head["OSU"]]
    if titles and len(titles) == len(heads) and all(re.match(r"MPI-[A-Z]{3}", title) for title in titles):
        return None, *_GPU
    if heads or re.search(_REPRO, text, re.MULTILINE):
        return Format.BENCHMARK, "", ""
    return next(((None, *other) for known, other in _OTHERS.items() if re.search(known, text, re.MULTILINE)), None)


def _of_lines(text: str, first: str) -> tuple[Format | None, str, str]:
    lines = [host for line in text.split("\n", 1000)[:1000] if (host := line.partition("#")[0].strip())]
    if not lines:
        return None, "empty" if not text.strip() else "a file of comments alone", ""
    if 2 * sum(HOST_LINE.fullmatch(line) is not None for line in lines) > len(lines) and "collective," not in first:
        return Format.HOSTS, "", ""
    if what := next((what for begin, what in _SHAPES.items() if re.match(begin, first)), ""):
        return None, what, ""
    for mark, name in ((",", ""), (";", "semicolons"), ("\t", "tabs")):
        if mark in first and mark in lines[-1] and (len(lines) > 1 or "collective" in first):
            return (None, f"a table with {name} in place of commas", "") if name else (Format.TABLE, "", "")
    shown = first if first.isascii() and first.isprintable() else ascii(first)[1:-1]
    return None, f"of no format that colltune knows: it begins with {shown[:60]!r}", ""


def _rules(text: str) -> tuple[Format, bool] | None:
    """Which rules of Open MPI, and whether that is certain; None for neither."""
    words = [word for line in text[: 4 * MIB].split("\n") for word in line.partition("#")[0].split()]
    if not words or not re.match(r"[+-]?\d|rule-file-version", words[0]):
        return None
    if words[0].startswith("rule-file-version"):
        return Format.TUNED_RULES, True
    numbers = [int(word) for word in words if word.isascii() and word.isdecimal() and len(word) < 20]
    if _whole(numbers):
        return Format.TUNED_RULES, True
    if any(word in HAN_COMPONENTS and words[at].isdecimal() for at, word in enumerate(words[1:])):
        return Format.HAN_RULES, True
    if len(words) > 1 and words[1].lower() in (*COLLECTIVES, "alltoallv", "alltoallw", "gatherv", "scatterv"):
        return Format.HAN_RULES, True
    return (Format.TUNED_RULES, len(numbers) == len(words)) if 2 * len(numbers) > len(words) else None


def _whole(numbers: list[int]) -> bool:
    """Whether these are the counts and rules of a file of coll/tuned, and no more."""

    def following(rest: Iterator[int]) -> None:
        for _ in range(next(rest)):
            next(rest)
            for _ in range(next(rest)):
                next(rest)
                for index in range(next(rest)):
                    columns = [next(rest) for _ in range(4)]
                    if index == 0 and columns[0] != 0:
                        raise StopIteration

    rest = iter(numbers)
    try:
        following(rest)
    except StopIteration:
        return False
    return next(rest, None) is None
