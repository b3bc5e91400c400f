"""The table of scored steps that a comparison of strategies leaves, read back."""

from __future__ import annotations

import csv
import io
from dataclasses import fields
from pathlib import Path

from colltune.core.errors import InputError
from colltune.machine.files import LARGEST_BYTES, read_text
from colltune_study.research.metrics import Metrics
from colltune_study.research.simulate import Run, Step


def read_steps(path: Path) -> list[Run]:
    """The runs of a file by ``write_steps``, to its six figures. Raises InputError where it is none."""
    names = [field.name for field in fields(Metrics)]
    tunings: dict[tuple[str, str, int], list[tuple[Step, bool, float]]] = {}
    try:
        for row in csv.DictReader(io.StringIO(read_text(path, LARGEST_BYTES, link=True))):
            metrics = Metrics(**{name: float(row[name]) for name in names})
            step = Step(float(row["cost"]), float(row["share"]), metrics)
            total_s = float(row["cost_s"]) / step.cost if step.cost else 0.0
            key = (row["grid"], row["strategy"], int(row["seed"]))
            tunings.setdefault(key, []).append((step, row["stop"] == "1", total_s))
    except (OSError, KeyError, ValueError, TypeError, csv.Error) as error:
        raise InputError(f"{path} is no table of steps: {error}", "Give one that an earlier run left") from error
    return [
        Run(*key, tuple(step for step, _, _ in own), next((step for step, stop, _ in own if stop), None), own[-1][2])
        for key, own in tunings.items()
    ]
