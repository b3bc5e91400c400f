"""Stands for an MPICH that selects by named trees: its own ones, and a library file that holds them."""

import json
from pathlib import Path
from typing import Any

from colltune.catalog import load
from colltune.emit.next.mpich_named_grammar import ALGORITHMS

CATALOGUE = load("mpich", "5.0.2")


def own_trees() -> dict[str, Any]:
    """A leaf for each collective, whichever of its algorithms needs nothing."""
    trees: dict[str, Any] = {"main": "call=auto", "auto": {}}
    for name in CATALOGUE.entries:
        trees["auto"][f"collective={name}-intra"] = f"call={name}-intra-auto"
        plain = [key for key, one in ALGORITHMS.items() if one.collective == name and not one.needs]
        if plain:
            own = {f"{parameter}=2": {} for parameter in ALGORITHMS[plain[0]].parameters}
            trees[f"{name}-intra-auto"] = {f"algorithm={plain[0]}": own}
    trees["alltoall-intra-auto"] = {
        "inplace": {"algorithm=MPIR_Alltoall_intra_pairwise_sendrecv_replace": {}},
        "any": {"algorithm=MPIR_Alltoall_intra_scattered": {}},
    }
    return trees


def write_library(path: Path) -> None:
    """A file from which the trees can be cut as from a real libmpi."""
    text = json.dumps({f"name={name}": tree for name, tree in own_trees().items()}).encode()
    path.write_bytes(b'\x7fELF\0{"name=main" x\0' + text + b"\0tail")
