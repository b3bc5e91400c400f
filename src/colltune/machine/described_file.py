"""Reads the file in which a user describes an MPI, and says all that is wrong in it."""

import hashlib
import os
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Annotated, Any

import msgspec

from colltune.core.errors import InputError, on_os_error
from colltune.core.sample import COLLECTIVES, NONBLOCKING, SizeBasis
from colltune.machine.described_mpi import NAME, VARIABLE, Description, Form
from colltune.machine.files import read_file

_MOST_BYTES = 1 << 20
_PLACES = ("value", "low", "high", "ranks_low", "ranks_high")
# What decides which programs and libraries a process loads: nothing that a tuning may set.
_NEVER = re.compile(r"LD_.*|.*PATH|.*PRELOAD.*|.*_EXEC|.*_AGENT|.*_LAUNCHER|HOME|SHELL|IFS|ENV|BASH_ENV|COLLTUNE_.*")
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^[ -~]+$")]
_Key = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,59}$")]


class _Record(msgspec.Struct, forbid_unknown_fields=True):
    title: _Text
    mark: _Text
    version: Annotated[str, msgspec.Meta(pattern=r"^[0-9][0-9A-Za-z.]{0,30}$")]


class _Algorithm(msgspec.Struct, forbid_unknown_fields=True):
    key: _Key
    value: _Text | None = None
    needs: tuple[_Text, ...] = ()
    reproducible: bool = False
    candidate: bool = True
    why_not: str = ""


class _Written(msgspec.Struct, forbid_unknown_fields=True):
    """As of ``Form``; None: as [form] has it."""

    variable: _Text | None = None
    rule: _Text | None = None
    separator: _Text | None = None
    library: _Text | None = None
    largest: Annotated[int, msgspec.Meta(gt=0, le=2**62)] | None = None


class _Collective(_Written, forbid_unknown_fields=True, kw_only=True):
    basis: SizeBasis
    algorithms: Annotated[tuple[_Algorithm, ...], msgspec.Meta(min_length=1)]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    mpi: _Record
    collectives: Annotated[dict[str, _Collective], msgspec.Meta(min_length=1)]
    form: _Written = msgspec.field(default_factory=_Written)
    needs: dict[str, _Text] = {}


def described_mpi() -> Description | None:
    """What COLLTUNE_MPI describes; None where it is not set. Raises InputError for a description with a fault."""
    path = os.environ.get(VARIABLE)
    return _described(path) if path else None


@cache
def _described(path: str) -> Description:
    with on_os_error(f"cannot read the MPI that {VARIABLE} describes ({path})", f"Correct {VARIABLE}, or unset it"):
        data = read_file(Path(path), _MOST_BYTES, link=True)
    description, faults = parse_description(data)
    if description is None:
        raise InputError(f"{path}: {faults[0]}", f"See all of it: colltune lint {path}")
    return description


def parse_description(data: bytes) -> tuple[Description | None, list[str]]:
    """The description, None where it has faults, and these, a line each."""
    try:
        held = msgspec.convert(tomllib.loads(data.decode()), _File)
    except (ValueError, msgspec.ValidationError, RecursionError) as error:  # also a number of 5,000 digits
        return None, [str(error)]
    forms = {name: _form(name, held.form, body) for name, body in held.collectives.items()}
    faults = [f"needs: {name} is no variable that a tuning may set" for name in held.needs if not _may_be_set(name)]
    variables: dict[str, str] = {}
    for name, form in forms.items():
        of_form = list(_faults(name, form, held.collectives[name]))
        if (other := variables.setdefault(form.variable, name)) != name:
            of_form.append(f"{form.variable} is the variable of {other} too")
        faults += [f"collectives.{name}: {fault}" for fault in of_form]
    if faults:
        return None, faults
    collectives = {}
    for name, body in held.collectives.items():
        rows = [{**msgspec.structs.asdict(row), "number": at} for at, row in enumerate(body.algorithms, start=1)]
        collectives[name] = {"basis": body.basis, "id": 0, "algorithms": rows}
    version = f"{held.mpi.version}+{hashlib.sha256(data).hexdigest()[:8]}"
    return Description(held.mpi.title, held.mpi.mark.encode(), version, held.needs, forms, collectives), []


def _may_be_set(name: str) -> bool:
    return NAME.fullmatch(name) is not None and _NEVER.fullmatch(name) is None


def _form(name: str, shared: _Written, body: _Collective) -> Form:
    def setting(key: str, otherwise: Any = None) -> Any:
        return next((value for table in (body, shared) if (value := getattr(table, key)) is not None), otherwise)

    variable = setting("variable", "").replace("{COLLECTIVE}", name.upper())
    values = {algorithm.key: algorithm.value or algorithm.key for algorithm in body.algorithms}
    return Form(variable, setting("rule", "{value}"), setting("separator", ""), setting("library"),
                setting("largest", 2**31 - 1), values)  # fmt: skip


def _faults(name: str, form: Form, body: _Collective) -> Iterator[str]:
    """What cannot be of ``name``."""
    try:
        form.rule.format(**dict.fromkeys(_PLACES, ""))
        parts = [part[1:] for part in Formatter().parse(form.rule) if part[1] is not None]
    except (LookupError, ValueError, AttributeError):
        parts = []
    named = [place for place, spec, conversion in parts if not spec and not conversion]
    if named.count("value") != 1 or len(set(named)) < len(parts):
        yield f"rule {form.rule!r} needs {{value}} once, and may have {{{'}, {'.join(_PLACES[1:])}}}, each once"
        return
    if name not in COLLECTIVES or name in NONBLOCKING:
        yield "there is no such collective to tune"
    if not _may_be_set(form.variable):
        yield f"{form.variable or 'an empty name'} is no variable that a tuning may set"
    if (body.basis is SizeBasis.NONE) == form.tells_sizes:
        yield f"rule {form.rule!r} with basis {body.basis}: it has {{high}} where the size decides, and only there"
    if ("low" in named and not form.tells_sizes) or ("ranks_low" in named and not form.tells_ranks):
        yield f"rule {form.rule!r} has a lower bound without an upper one"
    whole = form.tells_sizes <= ("low" in named) and form.tells_ranks <= ("ranks_low" in named)
    if form.library is None and not whole:
        yield f"rule {form.rule!r} cannot leave a call to the library: it needs lower bounds, or a value `library`"
    texts = [*form.values.values(), *([] if form.library is None else [form.library])]
    if len(set(texts)) < len(body.algorithms) + (form.library is not None):
        yield "two algorithms, or one and the library's own choice, have one key or one value"
    if len(named) > 1 and (not form.separator or any(form.separator in text for text in (*texts, form.rule))):
        yield f"the separator {form.separator!r} has to be there, and to be in no value and not in the rule"
