"""Frozen values to JSON and back, by the types of their fields; what does not fit is said with its place.

A dataclass is an object of its fields. A field that is None, or False where that is its default, is left out; one that
is missing has its default.
Fields that are not known are passed over: a later release may have written them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from reprlib import repr as short
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from colltune.core.choice import Choice, format_choice, parse_choice
from colltune.core.errors import InputError
from colltune.core.scenario import Scenario


class FieldError(ValueError):
    """Says which field of a file is what, and what it must be. Never leaves ``colltune.store``."""


def unfit(where: str, value: object, expected: str) -> FieldError:
    """The error for a ``value`` at ``where`` that is not what was ``expected``."""
    return FieldError(f"{where} is missing" if value is None else f"{where} is {short(value)}, not {expected}")


def encode(value: object) -> object:
    """``value`` as ``json`` takes it. The inverse of ``decode``."""
    if isinstance(value, Choice):
        return format_choice(value)
    if isinstance(value, Scenario):
        return [value.collective, value.nodes, value.ppn, value.size_bytes]
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        held = [(one, getattr(value, one.name)) for one in fields(value)]
        return {
            one.name: encode(found)
            for one, found in held
            if found is not None and not (found is False and one.default is False)
        }
    if isinstance(value, Mapping):
        return {name: encode(one) for name, one in value.items()}
    return [encode(one) for one in value] if isinstance(value, tuple | list) else value


def decode(kind: Any, written: object, where: str) -> Any:
    """A value of the type ``kind``, which ``encode`` wrote at ``where``. Raises FieldError for anything else."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        (only,) = (part for part in parts if part is not NoneType)
        return None if written is None else decode(only, written, where)
    if origin is tuple:
        return _tuple_of(parts, written, where)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {name: decode(parts[1], one, f"{where}.{name}") for name, one in as_object(written, where).items()}
    if kind in _OWN:
        return _OWN[kind](written, where)
    if issubclass(kind, Enum):
        return _member(kind, written, where)
    if is_dataclass(kind):
        return _dataclass_of(kind, written, where)
    return _plain(kind, written, where)


def as_object(written: object, where: str) -> dict[str, object]:
    """Raises FieldError for what is no JSON object."""
    if not isinstance(written, dict):
        raise unfit(where, written, "an object")
    return written


def as_list(written: object, where: str) -> list[object]:
    """Raises FieldError for what is no JSON list."""
    if not isinstance(written, list | tuple):
        raise unfit(where, written, "a list")
    return list(written)


def _tuple_of(parts: tuple[Any, ...], written: object, where: str) -> tuple[Any, ...]:
    values = as_list(written, where)
    if parts[-1] is Ellipsis:
        parts = (parts[0],) * len(values)
    if len(values) != len(parts):
        raise unfit(where, written, f"a list of {len(parts)}")
    return tuple(decode(part, one, f"{where}[{i}]") for i, (part, one) in enumerate(zip(parts, values, strict=True)))


def _dataclass_of(kind: Any, written: object, where: str) -> Any:
    held = as_object(written, where)
    values = {}
    for one in fields(kind):
        if held.get(one.name) is not None:
            values[one.name] = decode(_hints(kind)[one.name], held[one.name], f"{where}.{one.name}")
        elif one.default is MISSING and one.default_factory is MISSING:
            raise unfit(f"{where}.{one.name}", None, "")
    return kind(**values)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _member(kind: type[Enum], written: object, where: str) -> Enum:
    try:
        return kind(written)
    except ValueError:
        raise unfit(where, written, f"one of {', '.join(str(one.value) for one in kind)}") from None


def _plain(kind: type, written: object, where: str) -> object:
    if kind is float and isinstance(written, int | float) and not isinstance(written, bool | NoneType):
        if math.isnan(written):
            raise unfit(where, written, _WORDS[float])
        return float(written)
    if not isinstance(written, kind) or (kind is int and isinstance(written, bool)):
        raise unfit(where, written, _WORDS[kind])
    return written


def _choice(written: object, where: str) -> Choice:
    try:
        return parse_choice(str(_plain(str, written, where)))
    except InputError:
        raise unfit(where, written, "a choice such as binomial or recexch(k=4)") from None


def _scenario(written: object, where: str) -> Scenario:
    try:
        return Scenario(*_tuple_of((str, int, int, int), written, where))
    except FieldError:
        raise
    except ValueError:
        raise unfit(where, written, "a collective, nodes, ranks per node and bytes") from None


_OWN: dict[Any, Callable[[object, str], object]] = {Choice: _choice, Scenario: _scenario}
_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
