"""Which settings to measure where all are too many: a few of every family, then what a model of costs points at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from colltune.alltoallv.model import CostModel, Query
from colltune.alltoallv.setting import LIBRARY, Setting, Shape

Times = Mapping[int, Mapping[Setting, float]]  # seconds by average block in bytes, and setting
ROUNDS = 3  # after the first settings
_EACH = 2  # settings that a round adds at a size, at most


def first(settings: Sequence[Setting]) -> list[Setting]:
    """The library's own, and of every family the least, the middle and the largest radix, all without batch."""
    found = [LIBRARY] if LIBRARY in settings else []
    for family in dict.fromkeys(setting.algorithm for setting in settings):
        mine = sorted(setting for setting in settings if setting.algorithm == family)
        unbound = [setting for setting in mine if setting.batch == 0] or mine[:1]
        found += [unbound[0], unbound[len(unbound) // 2], unbound[-1]]
    return list(dict.fromkeys(found))


def following(shape: Shape, settings: Sequence[Setting], known: Times, seed: int = 0) -> dict[int, list[Setting]]:
    """By size, what a model of the times ``known`` expects to be fastest, if it was not measured; empty at the end."""
    rows = [(Query(shape, setting, size), time_s) for size in known for setting, time_s in known[size].items()]
    if not rows:
        return {}
    model = CostModel(seed).fit([query for query, _ in rows], np.array([time_s for _, time_s in rows]))
    found = {}
    for size, measured in known.items():
        predicted = model.predict([Query(shape, setting, size) for setting in settings])
        best = [settings[at] for at in np.argsort(predicted, kind="stable")[:_EACH]]
        if new := [setting for setting in best if setting not in measured]:
            found[size] = new
    return found
