"""What MPICH's search of a selection file costs a call, by the number of conditions in a level: nanoseconds.

    python benchmarks/bench_lookup.py

MPICH tries the conditions of an object one after another. Here the files decide allreduce by N sizes, and the program's
calls meet the last one: ``linear_N_ns`` over a file with no condition, and ``grouped_N_ns`` with the same sizes in
groups, as colltune writes them. ``condition_ns``: what a further condition costs in one of the two files, by the
longest linear level. ``files_ns``: a file with no condition over no file. The least time of many calls of 8 B on two
ranks of this machine, medians over launches by turns. Writes bench/lookup.json and prints it. Needs MPICH and two idle
cores.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from statistics import median

from colltune.bench.backends.mpich import MpichBackend
from colltune.emit.mpich.selection_file import CH4_FILE, GENERAL_FILE, MpichEmitter
from colltune.emit.mpich.tree import Tree, format_tree, in_groups, settle
from harness import MANY_CALLS, compiled, mpi_beside, printed_number, write_figures

LAUNCHES = 5
CONDITIONS = (8, 32, 256)
SIZE, REST = "avg_msg_size", "avg_msg_size=any"


def level(conditions: int, leaf: Tree, *, is_grouped: bool) -> Tree:
    """``leaf`` behind so many sizes, all below that of the calls."""
    row = [*((f"{SIZE}<={bound}", leaf) for bound in range(8 - conditions, 8)), (REST, leaf)]
    return dict(in_groups(row) if is_grouped else row)


def write_files(emitter: MpichEmitter, place: Path, conditions: int, *, is_grouped: bool) -> dict[str, str]:
    """The library's own trees behind the level; returns the variables by which MPICH reads them."""
    place.mkdir()
    for name, tree in ((GENERAL_FILE, emitter.defaults.general), (CH4_FILE, emitter.defaults.ch4)):
        own = settle(tree["collective=allreduce"]["comm_type=intra"])
        tuned = level(conditions, own, is_grouped=is_grouped) if conditions else own
        whole = {**tree, "collective=allreduce": {**tree["collective=allreduce"], "comm_type=intra": tuned}}
        (place / name).write_bytes(format_tree(whole))
    return {**os.environ, **{name: path for name, path in emitter.environment(place).items() if Path(path).exists()}}


def main() -> None:
    mpi = mpi_beside()
    emitter = MpichBackend.from_library(mpi.libmpi, mpi.version).emitter
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        program = compiled(mpi.mpicc, MANY_CALLS, place / "many_calls")
        ways = {"none": dict(os.environ), "bare": write_files(emitter, place / "bare", 0, is_grouped=False)}
        for conditions in CONDITIONS:
            for kind, is_grouped in (("linear", False), ("grouped", True)):
                way = f"{kind}_{conditions}"
                ways[way] = write_files(emitter, place / way, conditions, is_grouped=is_grouped)
        command = [str(mpi.mpiexec), "-n", "2", str(program), "world"]
        launches = [{way: printed_number(command, around) for way, around in ways.items()} for _ in range(LAUNCHES)]
    usual = {way: median(one[way] for one in launches) for way in ways}
    figures = {f"{way}_ns": usual[way] - usual["bare"] for way in ways if way not in ("none", "bare")}
    figures["condition_ns"] = figures[f"linear_{CONDITIONS[-1]}_ns"] / CONDITIONS[-1] / 2
    figures |= {"files_ns": usual["bare"] - usual["none"], "plain_call_ns": usual["none"]}
    figures = {name: round(value, 1) for name, value in figures.items()}
    write_figures("lookup", figures)


if __name__ == "__main__":
    main()
