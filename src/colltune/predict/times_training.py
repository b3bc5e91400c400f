"""Makes the model of other clusters' times that colltune ships."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from colltune.core.choice import format_choice
from colltune.core.errors import InputError
from colltune.predict.bursts import Times
from colltune.predict.cost import TERMS
from colltune.predict.pair_kernel import HYPERPARAMETERS
from colltune.predict.pair_kernel_fit import fit_pair_theta, studies_of
from colltune.predict.times_model import SCHEMA, CollectiveTimes, TimesModel
from colltune.predict.transfer import TransferPrior
from colltune.predict.trees import forest_of


def train_times(tables: Mapping[str, Mapping[str, Times]], seed: int = 0) -> TimesModel:
    """``tables``: times by collective and cluster. Raises InputError where no two clusters measured one collective."""
    found = {}
    for collective, by_cluster in sorted(tables.items()):
        sources = list(by_cluster.values())
        choices = sorted({choice for times in sources for _, choice in times})
        prior = TransferPrior(sources, choices, seed)
        if len(sources) > 1 and prior.trees is not None and prior.constants is not None:
            found[collective] = CollectiveTimes(
                forest_of(prior.trees), dict(prior.number), prior.constants, prior.bearable
            )
    if not found:
        raise InputError("no collective has times of two clusters", "Give tables of more clusters")
    return TimesModel(found, fit_pair_theta(studies_of(tables, seed)))


def save_times(model: TimesModel, path: Path) -> None:
    """Raises InputError where it cannot be written."""
    arrays: dict[str, Any] = {}
    collectives = {}
    for collective, one in sorted(model.collectives.items()):
        collectives[collective] = {
            "choices": [format_choice(choice) for choice in sorted(one.number, key=lambda c: one.number[c])],
            "constants": one.constants.values.tolist(),
            "uncertainty": one.constants.uncertainty.tolist(),
            "bearable": one.bearable if np.isfinite(one.bearable) else None,
        }
        arrays |= {f"{collective}.{name}": array for name, array in one.forest.arrays().items()}
    names = [name for name, _ in HYPERPARAMETERS]
    head = {"schema": SCHEMA, "terms": TERMS, "hyperparameters": names, "theta": model.theta.tolist()}
    text = json.dumps({**head, "collectives": collectives})
    arrays["head"] = np.frombuffer(text.encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    try:
        path.write_bytes(buffer.getvalue())
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", "Give another place") from error
