"""An MPI that its user describes: how it is recognised, and by which variables it takes algorithms when a job starts.

The file is TOML, and COLLTUNE_MPI names it (docs/how-to/describe-an-mpi.md). What it says is checked as a whole, before
anything is run.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any

from colltune.core.errors import InputError

VARIABLE, LIBRARY = "COLLTUNE_MPI", "described"
VARIABLES_FILE = "variables.txt"  # of a tuning: NAME=VALUE, a line each
NAME = re.compile(r"[A-Z][A-Z0-9_]{1,99}")


@dataclass(frozen=True)
class Form:
    """How the variable of a collective is written: ``rule`` once for each range, with ``separator`` between them.

    ``library``: what stands for the library's own choice; None: ranges of it are left out. ``largest``: the upper bound
    of what has none. ``values``: by algorithm, what ``rule`` has for it.
    """

    variable: str
    rule: str
    separator: str
    library: str | None
    largest: int
    values: Mapping[str, str]

    @property
    def tells_sizes(self) -> bool:
        return "{high}" in self.rule

    @property
    def tells_ranks(self) -> bool:
        return "{ranks_high}" in self.rule

    def parse(self, text: str) -> Iterator[dict[str, str]]:
        """What stands at each place of the rule, range by range. Raises ValueError for what ``rule`` cannot make."""
        texts = [*self.values.values(), *([] if self.library is None else [self.library])]
        values = "|".join(map(re.escape, texts))
        parts = [
            re.escape(literal) + (f"(?P<{name}>{values if name == 'value' else r'[0-9]{1,19}'})" if name else "")
            for literal, name, _, _ in Formatter().parse(self.rule)
        ]
        for part in text.split(self.separator) if self.separator else [text]:
            if (match := re.fullmatch("".join(parts), part)) is None:
                raise ValueError(f"{self.variable} has {part[:60]!r}, which {self.rule!r} does not make")
            yield match.groupdict()


@dataclass(frozen=True)
class Description:
    """``mark``: a text that its library file alone holds. ``needs``: variables without which it heeds no others.

    ``collectives``: of each, what a catalogue has. ``version`` ends in a digest of the file.
    """

    title: str
    mark: bytes
    version: str
    needs: Mapping[str, str]
    forms: Mapping[str, Form]
    collectives: Mapping[str, Mapping[str, Any]]

    def refusal(self, variables: Mapping[str, str]) -> str:
        """What ``variables`` set that this MPI does not take, "" where that is nothing."""
        forms = {form.variable: form for form in self.forms.values()}
        for name, value in variables.items():
            try:
                if name in forms:
                    list(forms[name].parse(value))
                elif self.needs.get(name) != value:
                    return f"{name!r} to {value[:60]!r}, which the file that {VARIABLE} names does not have"
            except ValueError as error:
                return str(error)
        return ""


def parse_variables(data: bytes) -> dict[str, str]:
    """The content of a VARIABLES_FILE. Raises InputError."""
    try:
        pairs = [line.partition("=")[::2] for line in data.decode("ascii").splitlines()]
    except UnicodeDecodeError:
        raise InputError(f"{VARIABLES_FILE} is no text", "Tune again") from None
    if any(not NAME.fullmatch(name) for name, _ in pairs) or len(dict(pairs)) < len(pairs):
        raise InputError(f"{VARIABLES_FILE} is not made of lines NAME=VALUE", "Tune again")
    return dict(pairs)
