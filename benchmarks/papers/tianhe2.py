"""Figures 2 and 4 of "Auto-tuning MPI Collective Operations on Large-Scale Parallel Systems", as a table."""

from __future__ import annotations

from colltune.core.sample import Choice, Scenario
from colltune.emit.thresholds import MODELS, Fit, fit
from colltune.store.grid import Grid
from colltune_study.recorded.dataset import load_grids
from papers.pml_mpi import TABLE
from papers.study import Made, Study

# MPICH's algorithms by the names that they have in simulated tables.
_NAMES = {
    "allgather": {"doubling": "recursive_doubling", "bruck(k=2)": "brucks", "ring": "ring"},
    "allreduce": {"doubling": "recursive_doubling", "rabenseifner": "reduce_scatter_allgather"},
    "alltoall": {"bruck(k=2)": "brucks", "linear": "scattered", "pairwise": "pairwise"},
    "bcast": {
        "knomial(k=2)": "binomial",
        "scatter_doubling": "scatter_recursive_doubling_allgather",
        "scatter_ring": "scatter_ring_allgather",
    },
    "reduce": {"knomial(k=2)": "binomial", "halving_gather": "reduce_scatter_gather"},
    "reduce_scatter": {"halving": "recursive_halving", "pairwise": "pairwise"},
}
# What the paper says of 1,024 processes (section IV.A and figure 4).
_THEIRS = {
    "allgather": "LONG 337 B",
    "allreduce": "SHORT 8 KiB",
    "alltoall": "SHORT 4 KiB, MEDIUM 4 KiB",
    "bcast": "no crossing, binomial",
    "reduce_scatter": "no crossing",
}


def tianhe_2(_study: Study) -> Made:
    """The thresholds of each number of processes, and where there are none."""
    rows = []
    for grid in load_grids([TABLE]):
        if grid.collective in _NAMES:
            for ranks in sorted({scenario.ranks for scenario in grid.scenarios}):
                if (found := _fit(grid, ranks)) is not None:
                    theirs = _THEIRS.get(grid.collective, "") if ranks == 1024 else ""
                    rows.append([grid.collective, str(ranks), *_told(found), theirs])
    caption = (
        "Thresholds of MPICH 3 with the least time for each number of processes, on the simulated dragonfly of 2 to"
        " 1,024 nodes, one rank each, of the algorithms that MPICH 3 has; slower: over the best of these, with them and"
        " with MPICH's own. The paper: 16 to 1,024 processes of Tianhe-2, MPICH 3.1; its text gives those of 1,024."
    )
    columns = ["collective", "processes", "thresholds", "what they choose", "slower", "MPICH's own", "the paper"]
    return Made("tianhe_2", "Tianhe-2, 2 and 4: thresholds by number of processes", caption, columns, rows)


def _fit(grid: Grid, ranks: int) -> Fit | None:
    names = _NAMES[grid.collective]
    medians: dict[tuple[Scenario, Choice], float] = {
        (scenario, Choice(names[str(choice)])): grid.time(scenario, choice)
        for scenario, choice in grid.recorded
        if scenario.ranks == ranks and str(choice) in names
    }
    return fit(grid.collective, medians)


def _told(found: Fit) -> list[str]:
    names = [name.removesuffix("_MSG_SIZE").rpartition("_")[2] for name in MODELS[found.collective].variables]
    values = ", ".join(f"{name} {value}" for name, value in zip(names, found.values, strict=True))
    return [values, found.crossings.partition(": ")[2], f"{found.loss:.3f}", f"{found.default_loss:.3f}"]
