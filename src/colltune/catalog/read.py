"""Reads the catalogue's TOML files for one version of a library, and which of its collectives a user names."""

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from colltune.catalog.catalogue import Catalogue, OpenMpiCatalogue, release_of
from colltune.catalog.entries import NO_DEVICE, Algorithm, CollectiveEntry, Kind, Need, Parameter
from colltune.core.errors import InputError
from colltune.core.sample import COLLECTIVES, NONBLOCKING, SizeBasis, parse_collectives

if TYPE_CHECKING:
    from colltune.machine.described_mpi import Description

# nb is what the library chooses among the nonblocking algorithms: below a composition that brings nothing new.
_NEVER_LEAD = frozenset({"nb"})
LIBRARIES = ("mpich", "openmpi", "intelmpi")


def load(library: str, version: str) -> Catalogue:
    """The catalogue of ``library`` ("mpich", ...) at ``version``, such as "5.0.2".

    A version newer than every known one is read as the newest, and ``Catalogue.warning`` says so. Raises
    InputError for an unknown library, an older version, and text that is no version.
    """
    if library == "described":
        return _described(version)
    if library not in LIBRARIES:
        raise InputError(f"there is no catalogue of {library!r}", f"There is one of {', '.join(LIBRARIES)}")
    table = read_toml(library)
    known: list[str] = table["versions"]
    asked = release_of(version)
    if asked < release_of(known[0]):
        raise InputError(f"{library} {version} is older than {known[0]}", f"Use {library} {known[0]} to {known[-1]}")
    used = max((text for text in known if release_of(text) <= asked), key=release_of)
    warning = None
    if asked not in map(release_of, known) and not table.get("open_ended", False):
        warning = f"{library} {version} is not in the catalogue; it is taken for {used}"
    return _catalogue(library, used, warning)


def _described(version: str) -> Catalogue:
    """Of the MPI that COLLTUNE_MPI describes. Raises InputError where it does not describe that of ``version``."""
    from colltune.machine.described_file import described_mpi
    from colltune.machine.described_mpi import VARIABLE

    here = described_mpi()
    if here is None or here.version != version:
        what = "is not set" if here is None else f"describes {here.title} {here.version}"
        raise InputError(f"{VARIABLE} {what}, and not the MPI of {version}", f"Set {VARIABLE} to the file that has it")
    return catalogue_of(here)


def catalogue_of(description: "Description") -> Catalogue:
    """Of an MPI that its user describes. Raises InputError for a precondition that is not known."""
    try:
        entries = {name: _numbered_entry(name, dict(body), "") for name, body in description.collectives.items()}
    except ValueError as error:
        raise InputError(f"needs of an algorithm: {error}", f"There are {', '.join(Need)}") from None
    return Catalogue("described", description.version, None, "", entries, {})


def known_versions(library: str) -> tuple[str, ...]:
    """The versions that the catalogue of ``library`` tells apart, ascending."""
    return tuple(read_toml(library)["versions"])


@cache
def read_toml(name: str) -> dict[str, Any]:
    """A catalogue, or what else is known of libraries, as its file has it."""
    return tomllib.loads(resources.files("colltune.catalog").joinpath(f"{name}.toml").read_text("utf-8"))


@cache
def _catalogue(library: str, version: str, warning: str | None) -> Catalogue:
    table = read_toml(library)
    if library != "mpich":
        rows = {
            name: {**body, "algorithms": [row for row in body["algorithms"] if _present(row, version)]}
            for name, body in table["collectives"].items()
        }
        entries = {name: _numbered_entry(name, body, table["prefix"]) for name, body in rows.items()}
        kind = OpenMpiCatalogue if library == "openmpi" else Catalogue
        return kind(library, version, warning, table["prefix"], entries, {})
    entries = {name: _entry(name, body, table, version) for name, body in table["collectives"].items()}
    names = release_of(version) >= release_of(table["tree_type_names_since"])
    numbers: dict[str, int] = {} if names else table["tree_type_numbers"]
    return Catalogue(library, version, warning, table["prefix"], entries, numbers)


def _present(body: dict[str, Any], version: str) -> bool:
    now = release_of(version)
    return release_of(body.get("since", "0.0")) <= now <= release_of(body.get("until", "9999.0"))


_TUNED = Algorithm("tuned", Kind.COMPOSITION, "tuned", candidate=False, why_not="a component, not an algorithm")


def _numbered_entry(name: str, body: dict[str, Any], prefix: str) -> CollectiveEntry:
    """Of a library whose algorithms have numbers; rows of other versions are out of ``body`` already."""
    return CollectiveEntry(
        name,
        SizeBasis(body["basis"]),
        tuple(_algorithm(row, Kind.FLAT, row["key"], f"{prefix}{name}_algorithm_") for row in body["algorithms"]),
        _TUNED,
        body.get("nothing_to_tune"),
        number=body.get("id", -1),
        owner="han" if body.get("han") else None,
        in_file="id" in body,
    )


def _entry(name: str, body: dict[str, Any], table: dict[str, Any], version: str) -> CollectiveEntry:
    flat = [_flat(name, row, table["prefix"], version) for row in body["algorithms"] if _present(row, version)]
    if name in NONBLOCKING:
        return CollectiveEntry(name, SizeBasis(body["basis"]), tuple(flat), NO_DEVICE)
    rows = [row for row in body["compositions"] if _present(row, version)]
    made = [_composition(name, row, table, version) for row in rows]
    (network_only,) = (base for base, row in zip(made, rows, strict=True) if row.get("network_only"))
    compositions = [composition for composition in made if composition is not network_only]
    composed = [choice for base in compositions if base.leads and base.candidate for choice in _composed(base, flat)]
    algorithms, why_not = (*compositions, *flat, *composed), body.get("nothing_to_tune")
    in_file = all(algorithm.kind is not Kind.MOCK_UP for algorithm in flat)
    return CollectiveEntry(name, SizeBasis(body["basis"]), algorithms, network_only, why_not, in_file=in_file)


def _composed(composition: Algorithm, flat: list[Algorithm]) -> Iterator[Algorithm]:
    """``composition`` with every choice below it: "alpha+ring", "alpha.mpir", "alpha.mpir+ring"."""
    leaders = [algorithm for algorithm in flat if algorithm.candidate and algorithm.key not in _NEVER_LEAD]
    for on_node in (False, True) if composition.shares_nodes else (False,):
        key = f"{composition.key}.mpir" if on_node else composition.key
        if on_node:
            yield replace(composition, key=key, general_on_node=True)
        for top in leaders:
            yield replace(
                composition, key=f"{key}+{top.key}", leaders=top, parameters=top.parameters, general_on_node=on_node
            )


def _composition(name: str, row: dict[str, Any], table: dict[str, Any], version: str) -> Algorithm:
    composition = replace(
        _algorithm(row, Kind.COMPOSITION, f"MPIDI_{name.capitalize()}_intra_composition_{row['key']}", ""),
        leads=row.get("leaders", False),
        shares_nodes=row.get("shares_nodes", False),
    )
    if release_of(version) >= release_of(table["composition_variables_since"]):
        return composition
    why_not = composition.why_not or "this version has no control variable for it"
    return replace(composition, candidate=False, why_not=why_not, number=None)


def _flat(name: str, row: dict[str, Any], prefix: str, version: str) -> Algorithm:
    scope = "allcomm" if row["key"] == "nb" else "intra"
    parameters = [parameter for parameter in row.get("parameters", ()) if _present(parameter, version)]
    named = f"MPIR_{name.capitalize()}_{scope}_{row['key']}"
    return _algorithm({**row, "parameters": parameters}, Kind(row.get("kind", Kind.FLAT)), named, prefix)


def _algorithm(row: dict[str, Any], kind: Kind, selection_name: str, prefix: str) -> Algorithm:
    """``prefix``: how the control variables of its parameters begin."""
    return Algorithm(
        key=row["key"],
        kind=kind,
        selection_name=selection_name,
        needs=frozenset(map(Need, row.get("needs", ()))),
        parameters=tuple(
            Parameter(
                name=parameter["name"],
                default=parameter["default"],
                values=tuple(parameter.get("values", ())),
                cvar=prefix + parameter["cvar"],
                limit=parameter.get("limit"),
                init_only=parameter.get("init_only", False),
                in_file=parameter.get("in_file", True),
            )
            for parameter in row.get("parameters", ())
        ),
        candidate=row.get("candidate", True),
        why_not=row.get("why_not", ""),
        reproducible=row.get("reproducible", False),
        number=row.get("number"),
    )


def check_collectives(names: Iterable[str], catalogue: Catalogue) -> tuple[list[str], dict[str, str]]:
    """The collectives to tune, and those of ``names`` that have nothing to tune, with the reason.

    Raises InputError for a name that is no collective.
    """
    tunable, nothing = [], {}
    for name in parse_collectives(names, [name for name in COLLECTIVES if name in catalogue.entries]):
        reason = catalogue.collective(name).nothing_to_tune
        if reason is None:
            tunable.append(name)
        else:
            nothing[name] = reason
    if not tunable:
        raise InputError(f"nothing to tune: {'; '.join(f'{k}: {v}' for k, v in nothing.items()) or 'no collective'}")
    return tunable, nothing
