"""Says in words which algorithm a pair of MPICH's selection trees chooses for a call."""

from collections.abc import Mapping
from dataclasses import replace

from colltune.catalog import Catalogue
from colltune.core.errors import InputError
from colltune.core.sample import Choice
from colltune.emit.mpich.defaults import DefaultTrees
from colltune.emit.mpich.selection_file import CH4_FILE, GENERAL_FILE, POSIX_FILE
from colltune.emit.mpich.tree import Call, Leaf, Tree, decide, parse_tree


def trees_of(files: Mapping[str, bytes], own_posix: Tree | None = None) -> DefaultTrees:
    """The trees of the selection files. Raises InputError where one is missing or is not JSON."""
    try:
        posix = parse_tree(files[POSIX_FILE]) if POSIX_FILE in files else own_posix
        return DefaultTrees(parse_tree(files[GENERAL_FILE]), parse_tree(files[CH4_FILE]), posix)
    except KeyError as error:
        raise InputError(f"the selection file {error.args[0]} is missing", "Write the files again") from None


def describe_outcome(trees: DefaultTrees, call: Call, catalogue: Catalogue) -> str:
    """The algorithm or composition that ``trees`` choose for ``call``, with its parameters, as MPICH names them."""
    device = decide(trees.ch4, call, catalogue.release)
    network_only = catalogue.collective(call.collective).network_only.selection_name
    if device is not None and device.name != network_only:
        inside = "shared memory" if call.nodes == 1 else "network and shared memory"
        return f"{_format_leaf(device)} ({inside}, by the device){_below(trees, call, catalogue, device)}"
    general = decide(trees.general, call, catalogue.release)
    return _format_leaf(general) if general is not None else "nothing: the files do not cover this call"


def _below(trees: DefaultTrees, call: Call, catalogue: Catalogue, device: Leaf) -> str:
    """What the leaders of the nodes run in a composition, and what ranks of one node run among themselves."""
    entry = catalogue.collective(call.collective)
    composition = next((algorithm for algorithm in entry.algorithms if algorithm.selection_name == device.name), None)
    if composition is None or call.nodes == 1 or not composition.leads:
        return ""
    version = catalogue.release
    roots = replace(call, ranks=call.nodes, hierarchy="node_roots")
    text = f"; between the nodes {_format_leaf(decide(trees.general, roots, version))}"
    if composition.shares_nodes:
        node = replace(call, ranks=-(-call.ranks // call.nodes), nodes=1, hierarchy="node")
        shared = decide(trees.posix, node, version) if trees.posix is not None and not call.multi_threaded else None
        text += f", inside them {_format_leaf(shared or decide(trees.general, node, version))}"
    return text


def equivalent_of_default(trees: DefaultTrees, call: Call, catalogue: Catalogue) -> Choice | None:
    """The candidate that runs the same algorithm as ``trees`` choose for ``call``; None where there is none.

    A candidate is set by control variables, so MPICH does not search its trees. It does search them for the default,
    and for a tuned rule in a file. So even an equal candidate looks faster than the default by the time of the search
    (6% of a small allgather on 2 ranks). Candidates are compared with this one, which is set by control variables too.
    """
    entry = catalogue.collective(call.collective)
    device = decide(trees.ch4, call, catalogue.release)
    leaf = device
    if device is None or device.name == entry.network_only.selection_name:
        leaf = decide(trees.general, call, catalogue.release)
    for algorithm in entry.algorithms:
        if (
            leaf is not None
            and algorithm.candidate
            and not algorithm.composed
            and algorithm.selection_name == leaf.name
        ):
            written = dict(leaf.parameters)
            chosen = tuple((p.name, int(written.get(p.name, p.default))) for p in algorithm.tuned)
            return Choice(algorithm.key, chosen)
    return None


def _format_leaf(leaf: Leaf | None) -> str:
    if leaf is None:
        return "nothing"
    parameters = ", ".join(f"{name}={value}" for name, value in leaf.parameters)
    return f"{leaf.name} ({parameters})" if parameters else leaf.name
