"""Runs of an application in the history of a tuning, as the library and `run --measure` leave them."""

import math
from pathlib import Path

import numpy as np

from colltune.core.sample import Choice, Environment, SizeBasis
from colltune.mpi.application import Application
from colltune.store.applications import PARTS, RunRecord, begin_run

CALLS = 100
APP = Application(("app",))


def leave_run(
    directory: Path,
    environment: Environment,
    choice: Choice,
    ratio: float,
    *,
    size: int = 64,
    pairs: int = 40,
    off: int = 0,
    end: bool = True,
    when_s: float = 1e9,
    application: Application = APP,
) -> Path:
    """A run of 2 x 4 ranks whose broadcasts take ``ratio`` times as long by default as by ``choice``: its folder."""
    record = RunRecord(environment, (choice,), {"bcast": SizeBasis.MESSAGE}, 5, application)
    place, random = begin_run(directory, record, when_s), np.random.default_rng(round(when_s))
    lines = ["colltune-measure 2", "job id=1 rank=0 ranks=8 nodes=2 share=5"]
    for number in range(pairs):
        tuned = CALLS * 1e5 * math.exp(random.normal(0.0, 0.03))
        default = CALLS * 1e5 * ratio * math.exp(random.normal(0.0, 0.03))
        sides = " ".join(
            f"{side}_call_ns={round(ns)} {side}_wall_ns={round(ns)}"
            for side, ns in (("tuned", tuned), ("default", default))
        )
        lines.append(f"pair cell=0 calls={CALLS} default_first={number % 2} {sides} elapsed_ns={number + 1}000000")
        lines.append(
            f"cell id=0 function=bcast choice=0 size=8 nodes=2 ppn=4 least={size} most={size}"
            f" tuned_calls={20 * CALLS * (number + 1)} default_calls={CALLS * (number + 1)}"
            f" communicators=1 off={off} rounds={number + 1} agree_ns=1000"
        )
    if end:
        lines.append(f"end elapsed_ns={pairs}000000 lost_pairs=0")
    (place / f"{PARTS}.1.0").write_text("\n".join(lines) + "\n")
    return place
