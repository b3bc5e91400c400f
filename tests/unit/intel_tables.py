"""A table as Intel MPI writes it, with a leaf of its own for every preset."""

from colltune.catalog import Catalogue
from colltune.core.rules import Steps
from colltune.emit.intelmpi import Presets, TableBranch, TableLeaf, branch_of


def leaf(number: int) -> TableLeaf:
    return TableLeaf(1, number.to_bytes(20, "little"))


def presets(catalogue: Catalogue) -> Presets:
    """The library's own choice changes with ranks per node, ranks and bytes."""
    small, large = Steps.of([(64, leaf(901)), (None, leaf(902))]), Steps.always(leaf(903))
    own = Steps.of([(2, Steps.of([(8, small), (None, large)])), (None, Steps.always(small))])
    entries = [entry for entry in catalogue.entries.values() if entry.algorithms]
    numbers = {entry.name: place for place, entry in enumerate(entries)}
    topology = TableBranch(3, 4, 1, tuple(branch_of(number, own) for number in numbers.values()))
    intra = TableBranch(2, 3, 0, (TableBranch(3, 4, 0, ()), topology))
    tree = TableBranch(0, 1, 65536, (TableBranch(1, 2, 1, (intra, TableBranch(2, 4, 1, ()))),))
    return Presets(tree, numbers, {e.name: {a.number or 0: leaf(a.number or 0) for a in e.algorithms} for e in entries})
