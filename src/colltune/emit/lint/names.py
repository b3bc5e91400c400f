"""Every algorithm name that a leaf of MPICH's selection files may hold, and its preconditions.

The collectives that colltune tunes are in the catalogue. Here is the rest: the forms for intercommunicators, the
other nonblocking and the neighbourhood collectives, and the shared-memory algorithms of the posix file.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from colltune.catalog import NO_DEVICE, Algorithm, Catalogue, CollectiveEntry
from colltune.catalog import Kind as AlgorithmKind
from colltune.catalog.read import read_toml
from colltune.core.sample import Value
from colltune.emit.lint.operators import INTRA_ONLY


class FileKind(StrEnum):
    """GENERAL: algorithms of all collectives. CH4: compositions of the device. POSIX: shared-memory algorithms."""

    GENERAL = "general"
    CH4 = "ch4"
    POSIX = "posix"


@dataclass(frozen=True, slots=True)
class LeafName:
    """What is known of a name.

    ``needs``: words that ``Region.meets`` understands. ``parameters``: with the value to use where none is given; a
    file must give all. ``optional``: read, but not needed. ``unread``: a parameter that MPICH leaves unset whatever
    the file says. ``warning``: another reason against the name.
    """

    collective: str
    kind: FileKind
    needs: tuple[str, ...] = ()
    parameters: tuple[tuple[str, Value], ...] = ()
    optional: tuple[str, ...] = ()
    unread: str | None = None
    warning: str | None = None


_TOPO = ("topo_overhead", "topo_diff_groups", "topo_diff_switches", "topo_same_switches")
_KNOWN = read_toml("mpich_leaves")
_COMPOSED = ("alltoallv", "alltoallw", "exscan", "gatherv", "scan", "scatterv")


@cache
def leaf_names(catalogue: Catalogue) -> dict[str, LeafName]:
    """By the name in the file. Catalogues are equal only to themselves, and there are few of them."""
    names: dict[str, LeafName] = {}
    for entry in catalogue.entries.values():
        names.update(_of_catalogue(entry))
    for collective, form in _forms(catalogue.version):
        name = f"MPIR_{collective.capitalize()}_{form}"
        names[name] = _other(name, collective, form, catalogue.version)
    for collective in _COMPOSED:
        name = f"MPIDI_{collective.capitalize()}_intra_composition_alpha"
        names[name] = LeafName(collective, FileKind.CH4, ("node-consecutive",) if collective == "scan" else ())
    names["MPIDI_Scan_intra_composition_beta"] = LeafName("scan", FileKind.CH4)
    for form, needs in _KNOWN["posix"].items():
        names[f"MPIDI_POSIX_mpi_{form}"] = LeafName(form.partition("_")[0], FileKind.POSIX, tuple(needs))
    if _number(catalogue.version) >= (4, 3):
        names["MPIDI_POSIX_mpi_bcast_ipc_read"] = LeafName("bcast", FileKind.POSIX)
    return names


def _of_catalogue(entry: CollectiveEntry) -> Iterator[tuple[str, LeafName]]:
    handing_on = () if entry.network_only is NO_DEVICE else (entry.network_only,)
    flat = [one for one in entry.algorithms if not one.composed and one.kind is not AlgorithmKind.MOCK_UP]
    for algorithm in (*flat, *handing_on):
        name = algorithm.selection_name
        needs: tuple[str, ...] = tuple(sorted(algorithm.needs))
        composed = algorithm.kind is AlgorithmKind.COMPOSITION
        flat_intra = not composed and "_intra_" in name
        # A composition for the network alone hands every call on, from an intercommunicator too.
        if flat_intra or (composed and algorithm is not entry.network_only):
            needs = ("intra", *needs)
        parameters = tuple((one.name, one.default) for one in algorithm.parameters if one.in_file)
        yield (
            name,
            LeafName(
                entry.name,
                FileKind.CH4 if composed else FileKind.GENERAL,
                needs,
                parameters or _parameters(name),
                unread=_KNOWN["unread"].get(name),
                warning=_doubt(algorithm, entry),
            ),
        )


def _doubt(algorithm: Algorithm, entry: CollectiveEntry) -> str | None:
    """Why the catalogue advises against choosing ``algorithm`` by a file, beyond its preconditions."""
    own_choice = entry.nothing_to_tune is not None or not entry.in_file
    if algorithm.candidate or algorithm.needs or own_choice or algorithm is entry.network_only:
        return None
    if algorithm.selection_name in _KNOWN["unread"] or (
        algorithm.kind is AlgorithmKind.COMPOSITION and not algorithm.number
    ):
        return None
    return algorithm.why_not


def _other(name: str, collective: str, form: str, version: str) -> LeafName:
    needs: tuple[str, ...] = ()
    for part, wanted in _KNOWN["needs"].get(collective, {}).items():
        if part in form and not form.startswith("inter"):
            needs = tuple(wanted)
            break
    if collective not in INTRA_ONLY and not form.startswith("allcomm"):
        needs = (form.partition("_")[0], *needs)
    optional = _TOPO if name == "MPIR_Ireduce_intra_tsp_tree" and _number(version) >= (4, 3) else ()
    return LeafName(collective, FileKind.GENERAL, needs, _parameters(name), optional, _KNOWN["unread"].get(name))


def _forms(version: str) -> Iterator[tuple[str, str]]:
    for collective, forms in _KNOWN["forms"].items():
        for form, _, since in (word.partition("@") for word in forms.split()):
            if not since or _number(since) <= _number(version):
                yield collective, form


def _parameters(name: str) -> tuple[tuple[str, Value], ...]:
    return tuple(_KNOWN["parameters"].get(name, {}).items())


def _number(version: str) -> tuple[int, int]:
    major, minor = version.split(".")
    return int(major), int(minor)
