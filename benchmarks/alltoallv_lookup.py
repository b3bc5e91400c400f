"""What the C library reads off a look-up table of MPI_Alltoallv, in Python."""

from collections.abc import Iterable

from colltune.alltoallv.lookup_table import DENSE, LIBRARY, Setting, TableEntry


def find(entries: Iterable[TableEntry], ranks: int, ppn: int, average_bytes: int, fill: int = DENSE[0]) -> Setting:
    """What the C library chooses: of entries, and of rules, the first that fits; else the library's own."""
    for entry in entries:
        if entry.ranks[0] <= ranks <= entry.ranks[1] and entry.ppn[0] <= ppn <= entry.ppn[1]:
            for rule in entry.rules:
                if rule.low <= average_bytes <= rule.high and fill in rule.fill:
                    return rule.setting
            return LIBRARY
    return LIBRARY
