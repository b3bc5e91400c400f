"""How a collective is carried out: an algorithm and its parameters."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from colltune.core.errors import InputError

Value = int | str


@dataclass(frozen=True, slots=True)
class Choice:
    """An algorithm by its catalogue key, and the parameters that are set on it, sorted by name."""

    algorithm: str
    parameters: tuple[tuple[str, Value], ...] = ()
    # Kept, for a campaign asks for it millions of times.
    _hash: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", tuple(sorted(self.parameters, key=_order)))
        object.__setattr__(self, "_hash", hash((self.algorithm, self.parameters)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type["Choice"], tuple[str, tuple[tuple[str, Value], ...]]]:
        """Another process has other hashes."""
        return Choice, (self.algorithm, self.parameters)

    def __lt__(self, other: "Choice") -> bool:
        if self.algorithm != other.algorithm:
            return self.algorithm < other.algorithm
        return [*map(_order, self.parameters)] < [*map(_order, other.parameters)]

    def __str__(self) -> str:
        return format_choice(self)


def _order(parameter: tuple[str, Value]) -> tuple[str, bool, Value]:
    """Numbers before words: a file may say either of one name."""
    name, value = parameter
    return name, isinstance(value, str), value


# What the library does by itself. It is measured like any other candidate: it is the one to beat.
DEFAULT = Choice("default")

_CHOICE = re.compile(r"([a-z0-9_+.]+)(?:\(([^()]*)\))?")


def format_choice(choice: Choice) -> str:
    """``Choice("recexch", (("k", 4),))`` -> ``"recexch(k=4)"``."""
    if not choice.parameters:
        return choice.algorithm
    return f"{choice.algorithm}({','.join(f'{name}={value}' for name, value in choice.parameters)})"


def format_choices(choices: Iterable[Choice]) -> str:
    """Choices in a line: ``"ring, recexch(k=2|3|4)"``, an algorithm once with all values of its parameters."""
    values: dict[str, dict[str, dict[str, None]]] = {}
    for choice in choices:
        of_algorithm = values.setdefault(choice.algorithm, {})
        for name, value in choice.parameters:
            of_algorithm.setdefault(name, {})[str(value)] = None
    parts = []
    for algorithm, parameters in values.items():
        inside = ",".join(f"{name}={'|'.join(tried)}" for name, tried in parameters.items())
        parts.append(f"{algorithm}({inside})" if inside else algorithm)
    return ", ".join(parts)


def parse_choice(text: str) -> Choice:
    """The inverse of format_choice. Raises InputError for text that it could not have written."""
    match = _CHOICE.fullmatch(text)
    if match is None:
        raise InputError(f"cannot read the choice {text!r}", "Write for example binomial or recexch(k=4)")
    parameters: list[tuple[str, Value]] = []
    for item in filter(None, (match.group(2) or "").split(",")):
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise InputError(f"cannot read the parameter {item!r} of {text!r}", "Write name=value")
        parameters.append((name, int(value) if re.fullmatch(r"-?\d{1,19}", value) else value))
    return Choice(match.group(1), tuple(parameters))
