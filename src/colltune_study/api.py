"""What the commands of `colltune study` do, from a script or a notebook. Everything raises ColltuneError."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from colltune.core.units import parse_duration, parse_size
from colltune.session.arguments import (
    MAX_SIZE,
    CampaignArguments,
    MachineArguments,
    PathLike,
    machine_options,
    names_of,
    paths_of,
)

if TYPE_CHECKING:
    from colltune.api.tuned import Tuned
    from colltune.predict.model import TimesModel
    from colltune.session.tuning.options import Listener
    from colltune_study.research.evaluation import StrategyComparison
    from colltune_study.tables.collect import Collected


def collect(
    collectives: str | Sequence[str] = (),
    out: PathLike = "data.parquet",
    *,
    min_size: str | int = "1",
    max_size: str | int = MAX_SIZE,
    between: int = 1,
    node_counts: Sequence[int] | None = None,
    ppn_counts: Sequence[int] | None = None,
    budget: str | float | None = None,
    resume: bool = False,
    cluster: str = "",
    seed: int = 1,
    thread_level: str = "single",
    simulate: str = "",
    listener: Listener | None = None,
    **machine: Unpack[MachineArguments],
) -> Collected:
    """Measures every legal algorithm at every shape and size into the table ``out``, as `colltune study collect` does.

    No name is all collectives. Raises ColltuneError; what was measured by then is kept, and ``resume`` goes on.
    """
    from colltune_study.tables.collect import CollectOptions
    from colltune_study.tables.collect_here import collect_here

    options = CollectOptions(
        names_of(collectives),
        parse_size(min_size),
        parse_size(max_size),
        between,
        node_counts,
        ppn_counts,
        math.inf if budget is None else parse_duration(budget),
        resume,
        seed,
    )
    where = machine_options(machine, thread_level)
    return collect_here(options, Path(out), where, cluster=cluster, simulate=simulate, listener=listener)


def train(
    tables: PathLike | Sequence[PathLike],
    out: PathLike = "model.npz",
    *,
    seed: int = 0,
    listener: Callable[[str], None] = lambda _text: None,
) -> TimesModel:
    """Learns from other clusters' tables of times which choice is fast where, as `colltune study train` does.

    The model is also in ``out``, which `predict` takes as ``model``. Raises InputError where no two clusters measured
    one collective.
    """
    from colltune_study.training.train import train_into

    return train_into(Path(out), paths_of(tables), seed, listener)


def evaluate(
    tables: PathLike | Sequence[PathLike],
    *,
    strategies: Sequence[str] = ("ours", "acclaim", "fact", "random"),
    seeds: int = 20,
    budget: str | float = "15m",
    collectives: str | Sequence[str] = (),
    jobs: int = 1,
) -> StrategyComparison:
    """Replays tuning on recorded tables, as `colltune study evaluate` does; ``runs`` of the result has each tuning.

    ``tables``: files of `colltune study collect`. ``budget``: end after this time with what there is. Raises InputError
    where not one tuning ended in it.
    """
    from colltune_study.research.evaluation import Plan, load
    from colltune_study.research.evaluation import evaluate as compare
    from colltune_study.research.strategies import contestants

    grids = load(paths_of(tables), names_of(collectives))
    return compare(grids, Plan(contestants(strategies), seeds, parse_duration(budget), jobs))


def tune(
    cluster: str,
    collectives: str | Sequence[str],
    out: PathLike = "tuned",
    *,
    listener: Listener | None = None,
    **arguments: Unpack[CampaignArguments],
) -> Tuned:
    """Tunes a simulated ``cluster`` such as "dragonfly:64x4", as `colltune study tune` does."""
    from colltune.api.tuned import load
    from colltune.session.tuning.tune_here import tune_here
    from colltune_study.simulated.tune import opened, options_of

    options = options_of(names_of(collectives), arguments)
    with opened(cluster) as bench:
        tune_here(options, Path(out), listener, bench=bench)
    return load(out)
