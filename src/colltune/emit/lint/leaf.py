"""What can be wrong with a leaf of MPICH's selection files: its name, its parameters, and the calls that reach it.

The collectives that colltune tunes are in the catalogue. Here is the rest: the forms for intercommunicators, the
other nonblocking and the neighbourhood collectives, and the shared-memory algorithms of the posix file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from colltune.catalog import NO_DEVICE, Algorithm, Catalogue, CollectiveEntry, Need, load
from colltune.catalog import Kind as AlgorithmKind
from colltune.catalog.catalogue import release_of
from colltune.catalog.read import known_versions, read_toml
from colltune.core.sample import Value
from colltune.emit.lint.check import Check, FindingsOfFile, shown
from colltune.emit.lint.json_text import JsonEntry
from colltune.emit.lint.operators import INTRA_ONLY, CallRegion


class FileKind(StrEnum):
    """GENERAL: algorithms of all collectives. CH4: compositions of the device. POSIX: shared-memory algorithms."""

    GENERAL = "general"
    CH4 = "ch4"
    POSIX = "posix"


@dataclass(frozen=True, slots=True)
class LeafName:
    """What is known of a name.

    ``needs``: words that ``Region.meets`` understands. ``parameters``: with the value to use where none is given; a
    file must give all. ``optional``: needed by one kind of tree alone. ``unread``: a parameter that MPICH leaves unset
    whatever the file says. ``warning``: another reason against the name.
    """

    collective: str
    kind: FileKind
    needs: tuple[str, ...] = ()
    parameters: tuple[tuple[str, Value], ...] = ()
    optional: tuple[str, ...] = ()
    unread: str | None = None
    warning: str | None = None


# What trees of these names read since 4.3 where the kind of tree is this, and nowhere else.
_BY_TOPOLOGY = ("MPIR_Allreduce_intra_tree", "MPIR_Bcast_intra_tree", "MPIR_Ireduce_intra_tsp_tree")
_WAVE = "tree_type=topology_wave"
_TOPO = ("topo_overhead", "topo_diff_groups", "topo_diff_switches", "topo_same_switches")
_KNOWN = read_toml("mpich_leaves")
_COMPOSED = ("alltoallv", "alltoallw", "exscan", "gatherv", "scan", "scatterv")


@cache
def leaf_names(catalogue: Catalogue) -> dict[str, LeafName]:
    """By the name in the file. Catalogues are equal only to themselves, and there are few of them."""
    names: dict[str, LeafName] = {}
    for entry in catalogue.entries.values():
        names.update(_of_catalogue(entry))
    for collective, forms in _KNOWN["forms"].items():
        for form, _, since in (word.partition("@") for word in forms.split()):
            if not since or release_of(since) <= catalogue.release:
                name = f"MPIR_{collective.capitalize()}_{form}"
                names[name] = _other(name, collective, form)
    for collective in _COMPOSED:
        name = f"MPIDI_{collective.capitalize()}_intra_composition_alpha"
        names[name] = LeafName(collective, FileKind.CH4, ("node-consecutive",) if collective == "scan" else ())
    names["MPIDI_Scan_intra_composition_beta"] = LeafName("scan", FileKind.CH4)
    for form, needs in _KNOWN["posix"].items():
        names[f"MPIDI_POSIX_mpi_{form}"] = LeafName(form.partition("_")[0], FileKind.POSIX, tuple(needs))
    if catalogue.release >= (4, 3):
        names |= {name: replace(names[name], optional=_TOPO) for name in _BY_TOPOLOGY}
        names["MPIDI_POSIX_mpi_bcast_ipc_read"] = LeafName("bcast", FileKind.POSIX)
    return names


def _of_catalogue(entry: CollectiveEntry) -> Iterator[tuple[str, LeafName]]:
    handing_on = () if entry.network_only is NO_DEVICE else (entry.network_only,)
    single = (algorithm for algorithm in entry.algorithms if not algorithm.composed)
    flat = [algorithm for algorithm in single if algorithm.kind is not AlgorithmKind.MOCK_UP]
    for algorithm in (*flat, *handing_on):
        name = algorithm.selection_name
        needs: tuple[str, ...] = tuple(sorted(algorithm.needs))
        composed = algorithm.kind is AlgorithmKind.COMPOSITION
        flat_intra = not composed and "_intra_" in name
        # A composition for the network alone hands every call on, from an intercommunicator too.
        if flat_intra or (composed and algorithm is not entry.network_only):
            needs = ("intra", *needs)
        parameters = tuple((given.name, given.default) for given in algorithm.parameters if given.in_file)
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


def _other(name: str, collective: str, form: str) -> LeafName:
    needs: tuple[str, ...] = ()
    for part, needed in _KNOWN["needs"].get(collective, {}).items():
        if part in form and not form.startswith("inter"):
            needs = tuple(needed)
            break
    if collective not in INTRA_ONLY and not form.startswith("allcomm"):
        needs = (form.partition("_")[0], *needs)
    return LeafName(collective, FileKind.GENERAL, needs, _parameters(name), unread=_KNOWN["unread"].get(name))


def _parameters(name: str) -> tuple[tuple[str, Value], ...]:
    return tuple(_KNOWN["parameters"].get(name, {}).items())


TREE_TYPES = ("kary", "knomial_1", "knomial_2", "topology_aware", "topology_aware_k", "topology_wave")
# Where MPICH's own trees violate a precondition: a file that does the same there is no worse than no file.
# A reduction of no data returns before it chooses. Pairwise is wrong in place, whoever chooses it.
_AS_MPICH_ITSELF = (
    ("MPIR_Allreduce_intra_smp", Need.PARENT_COMM, "avg_msg_size", (0, 0)),
    ("MPIR_Reduce_scatter_intra_pairwise", Need.REGULAR_COUNTS, "total_msg_size", (524288, 1 << 62)),
)


class Guard(NamedTuple):
    """The test of a precondition: an operator, whether it holds where the operator does, and the opposite operator."""

    operator: str
    holds: bool
    rest: str
    call: str  # a call that does not meet it, in words
    why: str


GUARDS = {need: Guard(**row) for need, row in read_toml("mpich_leaves")["guards"].items()}


def leaf_findings(
    file: FindingsOfFile,
    entry: JsonEntry,
    path: tuple[str, ...],
    region: CallRegion,
    kind: FileKind,
    catalogue: Catalogue,
    title: str,
) -> Iterator[Check]:
    """The findings about a leaf that calls of ``region``, of one collective, reach; ``path`` leads to it."""
    prefix, _, name = entry.name.partition("=")
    known = leaf_names(catalogue).get(name)
    if known is None or (prefix == "composition") != (known.kind is FileKind.CH4):
        finding, values = _unknown(name, catalogue)
        yield file.finding(finding, entry.line, path, title=title, prefix=prefix, name=shown(name), **values)
        return
    collective = next(iter(region.collectives), known.collective)
    if known.kind is not kind:
        yield file.finding("of-another-file", entry.line, path, name=name, kind=known.kind)
        return
    if known.collective != collective and not region.is_empty:
        yield file.finding("of-another", entry.line, path, name=name, of=known.collective, collective=collective)
        return
    yield from _of_parameters(file, entry, path, known, catalogue, title)
    if region.is_empty:
        return
    if known.warning:
        yield file.finding("not-safe", entry.line, path, name=name, why=known.warning)
    for need in unmet_needs(name, known, region):
        guard = GUARDS.get(need)
        if guard is None:
            yield file.finding("not-guarded", entry.line, path, name=name, need=need.replace("-", " "))
            continue
        call = guard.call.format(odd=region.odd_ranks())
        kept, other = (guard.operator, guard.rest)[:: 1 if guard.holds else -1]
        of_need = "not-used" if need == "one-thread" else "not-met" if guard.holds else "not-met-first"
        yield file.finding(of_need, entry.line, path, name=name, call=call, why=guard.why, kept=kept, other=other)


def unmet_needs(name: str, known: LeafName, region: CallRegion) -> list[str]:
    """The preconditions of ``name`` that some call of ``region`` does not meet."""
    unmet = []
    for need in known.needs:
        if known.kind is FileKind.POSIX and need in ("intra", "inter"):
            continue  # shared memory is used inside a node only
        if not region.meets(need) and not _as_mpich_itself(name, need, region):
            unmet.append(need)
    order = list(GUARDS)
    return sorted(unmet, key=lambda need: order.index(need) if need in order else len(order))


def _as_mpich_itself(name: str, need: str, region: CallRegion) -> bool:
    for own, own_need, about, (least, most) in _AS_MPICH_ITSELF:
        low, high = region.range(about)
        if (own, own_need) == (name, need) and least <= low and high <= most:
            return True
    return False


def _unknown(name: str, catalogue: Catalogue) -> tuple[str, dict[str, str]]:
    """Which finding an unknown name is, and the values that it needs beside the name."""
    versions = known_versions("mpich")
    elsewhere = [version for version in versions if name in leaf_names(load("mpich", version))]
    if catalogue.version not in elsewhere and elsewhere:
        newer = versions.index(elsewhere[0]) > versions.index(catalogue.version)
        return "of-another-version", {"only": f"since {elsewhere[0]}" if newer else f"until {elsewhere[-1]}"}
    near = get_close_matches(name[:120], list(leaf_names(catalogue)), 1, 0.8)
    return ("misspelt-algorithm", {"near": near[0]}) if near else ("unknown-algorithm", {})


def _of_parameters(
    file: FindingsOfFile, entry: JsonEntry, path: tuple[str, ...], known: LeafName, catalogue: Catalogue, title: str
) -> Iterator[Check]:
    name = entry.name.partition("=")[2]
    if known.unread:
        yield file.finding("random-parameter", entry.line, path, name=name, unread=known.unread)
        return
    given: set[str] = set()
    needed = known.parameters
    if any(child.name == _WAVE for child in entry.value.entries or ()):
        needed += tuple((parameter, 0) for parameter in known.optional)
    expected = {name for name, _ in known.parameters} | set(known.optional)
    for child in entry.value.entries or ():
        parameter, equals, value = child.name.partition("=")
        below = (*path, shown(child.name))
        if not equals or parameter not in expected:
            yield file.finding("no-parameter", child.line, below, title=title, key=shown(child.key))
            continue
        given.add(parameter)
        if wrong := wrong_value(entry.name, parameter, value, catalogue):
            yield file.finding("wrong-value", child.line, below, key=shown(child.key), why=wrong[0], fix=wrong[1])
    for parameter, default in needed:
        if parameter not in given:
            written = catalogue.written(parameter, default)
            yield file.finding("not-given", entry.line, path, parameter=parameter, written=written)


def wrong_value(leaf: str, parameter: str, value: str, catalogue: Catalogue) -> tuple[str, str] | None:
    """(why, fix) for a parameter's value that MPICH misreads or cannot use; None for a value that is right."""
    if parameter == "ccl":
        return None
    if parameter == "tree_type" and not catalogue.tree_type_numbers:
        if value in TREE_TYPES:
            return None
        right = TREE_TYPES[int(value)] if re.fullmatch("[0-5]", value) else "kary"
        return ("since 4.3 the kind of tree is a word", f'write "tree_type={right}"')
    if parameter == "tree_type" and not re.fullmatch("[0-5]", value):
        right_number = TREE_TYPES.index(value) if value in TREE_TYPES else 0
        why = "before 4.3 the kind of tree is a number; a word is read as 0, which is kary"
        return (why, f'write "tree_type={right_number}"')
    if not re.fullmatch(r"-?\d{1,9}", value, re.ASCII):
        return ("MPICH reads a whole number, and 0 from anything else", f'write a number after "{parameter}="')
    least = 1 if "tree" in leaf else 2
    if (parameter == "k" or parameter.endswith("_k")) and int(value) < least:
        return (f"the algorithm divides by it or never ends: {least} is the least", f'write "{parameter}={least}"')
    return None
