"""One finding about a selection file."""

from dataclasses import dataclass
from enum import StrEnum


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
