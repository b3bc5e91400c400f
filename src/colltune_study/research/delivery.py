"""Whole campaigns on recorded tables, a cluster at a time."""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from colltune.bench.recorded_cluster import RecordedBench, Thinking
from colltune.core.sample import grouped
from colltune.core.space import Weight, weights_by_ranks
from colltune.measure.replay import TimeDrift
from colltune.session.recorded_campaign import DRIFT_SD, LAUNCH_S, LAUNCH_SD, Delivery, deliver_into
from colltune.store.grid import Grid
from colltune_study.recorded.launch_effects import NO_EFFECTS, LaunchEffects


def by_cluster(grids: Iterable[Grid]) -> dict[str, list[Grid]]:
    """The tables of one cluster, which are tuned together: those of one file."""
    return grouped(grids, lambda grid: grid.name.rpartition("/")[0] or grid.name)


def deliver(
    table: str,
    grids: Sequence[Grid],
    budget_s: float,
    seed: int,
    launch_s: float = LAUNCH_S,
    launch_sd: float = LAUNCH_SD,
    *,
    store: Path | None = None,
    charged: bool = False,
    effects: LaunchEffects = NO_EFFECTS,
    weights: Callable[[int, int], Weight] = weights_by_ranks,
) -> Delivery:
    """Tunes all sizes of ``grids``, one cluster's, with ``budget_s``. Raises InputError where there is no default.

    ``store``: that of its site, if it has one. ``charged``: our own computing takes time, where it is not hidden behind
    a measurement; equal seeds then differ a little. ``effects``: what else launches and moments do to times.
    ``weights``: of gains.
    """
    thinking, drift = Thinking() if charged else None, TimeDrift(DRIFT_SD, seed)
    bench = RecordedBench(grids, launch_s, launch_sd, drift, machine=table, thinking=thinking, effects=effects)
    with tempfile.TemporaryDirectory() as place:
        return deliver_into(Path(place), bench, budget_s, seed, store=store, weights=weights)[0]
