"""Learns the model of other clusters' times from their tables, and writes its file."""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colltune.core.errors import InputError, on_os_error
from colltune.core.sample import format_choice
from colltune.predict.cost import TERMS
from colltune.predict.model import HEAD, SCHEMA, TimesModel
from colltune_study.recorded.dataset import load_grids
from colltune_study.training.learned_times import Times, learn_times, times_of
from colltune_study.training.pair_kernel import amplitudes
from colltune_study.training.pair_kernel_fit import fit_pair_theta, studies_of
from colltune_study.training.recorded_algorithms import catalogued

# A table with fewer scenarios says little about a cluster.
FEWEST_SCENARIOS = 12


def train_into(
    out: Path, tables: Sequence[Path], seed: int = 0, listen: Callable[[str], None] = lambda _text: None
) -> TimesModel:
    """Learns from ``tables`` of times, and writes the file ``out``. Raises InputError."""
    times = read_times(tables)
    model = train_model(times, seed)
    for name, by_cluster in sorted(times.items()):
        known = model.collectives.get(name)
        text = "too few to learn from" if known is None else f"{len(known.measured)} kinds of choices"
        listen(f"{name}: times of {', '.join(sorted(by_cluster))}; {text}")
    save_model(model, out)
    return model


def read_times(paths: Sequence[Path]) -> dict[str, dict[str, Times]]:
    """Times by collective and cluster, of tables of times. Raises InputError."""
    tables: dict[str, dict[str, Times]] = {}
    for grid in load_grids(paths, FEWEST_SCENARIOS):
        cluster = grid.name.rpartition("/")[0]
        tables.setdefault(grid.collective, {})[cluster] = times_of(grid)
    return tables


def train_model(tables: Mapping[str, Mapping[str, Times]], seed: int = 0) -> TimesModel:
    """``tables``: times by collective and cluster. Raises InputError where no two clusters measured one collective."""
    found = {
        collective: learned
        for collective, by_cluster in sorted(tables.items())
        if len(by_cluster) > 1 and (learned := learn_times(by_cluster, seed=seed)) is not None
    }
    if not found:
        raise InputError("no collective has times of two clusters", "Give tables of more clusters")
    return TimesModel(found, amplitudes(fit_pair_theta(studies_of(tables, seed))))


def save_model(model: TimesModel, path: Path) -> None:
    """Writes what `load_model` reads. Raises InputError where that cannot be written."""
    arrays: dict[str, NDArray[Any]] = {}
    collectives = {}
    for collective, one in sorted(model.collectives.items()):
        collectives[collective] = {
            "measured": [(format_choice(catalogued(collective, choice)), count) for choice, count in one.measured],
            "constants": one.constants.tolist(),
            "bearable": one.bearable if np.isfinite(one.bearable) else None,
            "clusters": one.clusters,
            "trained": asdict(one.trained),
        }
        arrays |= {f"{collective}.{name}": array for name, array in one.forest.arrays().items()}
    head = {"schema": SCHEMA, "terms": TERMS, "theta": model.theta}
    text = json.dumps({**head, "collectives": collectives})
    arrays[HEAD] = np.frombuffer(text.encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    with on_os_error(f"cannot write {path}", "Give another place by --out"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(buffer.getvalue())
