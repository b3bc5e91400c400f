"""The findings about a selection file."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from colltune.catalog.read import read_toml

# A file that fills whole pages of memory is read as a string that nothing ends.
PAGE = 4096
# The reason why an algorithm of Open MPI is not a candidate that does not forbid a rule with it.
HARMLESS = "cannot be measured"


class Severity(StrEnum):
    """ERROR: an application can abort, hang or get a wrong result, or the library ignores the whole file.
    WARNING: the file means something else than it appears to."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Check:
    """What is wrong, where, why, and the smallest change that corrects it.

    ``line`` counts from 1; ``path`` are the keys from the root of the file to the rule, empty for the whole file.
    """

    severity: Severity
    file: str
    line: int
    path: tuple[str, ...]
    what: str
    why: str
    fix: str


class FindingsOfFile:
    """Makes the findings of ``file`` from the table of its ``form`` in catalog/lint_findings.toml."""

    def __init__(self, form: str, file: str) -> None:
        self._file = file
        self._table = read_toml("lint_findings")[form]

    def finding(self, finding: str, line: int, path: tuple[str, ...] = (), /, **values: object) -> Check:
        """``values`` are what its texts leave open."""
        row, known = self._table[finding], {**self._table["phrases"], **values}
        what, why, fix = (row[part].format_map(known) for part in ("what", "why", "fix"))
        return Check(Severity(row.get("severity", Severity.ERROR)), self._file, line, path, what, why, fix)


def in_order(files: Mapping[str, bytes], lint: Callable[[str, bytes], Iterable[Check]]) -> list[Check]:
    """What ``lint`` finds in each of ``files`` (name and content), each finding once, in the order of the lines."""
    checks = (sorted(dict.fromkeys(lint(*file)), key=lambda check: check.line) for file in files.items())
    return list(chain.from_iterable(checks))


def format_check(check: Check) -> str:
    """At most four lines: place and finding, the rule, the reason, the correction."""
    lines = [f"{check.file}:{check.line}: {check.severity}: {check.what}"]
    if check.path:
        lines.append(f"  rule: {' / '.join(check.path)}")
    lines += [f"  why:  {check.why}", f"  fix:  {check.fix}"]
    return "\n".join(lines)


def shown(key: str) -> str:
    """A key as it can be printed on any terminal, cut to a readable length."""
    text = key if key.isascii() and key.isprintable() else ascii(key)[1:-1]
    return text if len(text) <= 100 else text[:97] + "..."
