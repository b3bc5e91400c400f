"""`colltune check`: the conformance replay of a tuning on the real MPI."""

from __future__ import annotations

from colltune.cli.options import Tuned


def check(tuned: Tuned) -> None:
    """Run every collective in every form under a tuning, and compare each result byte for byte."""
    raise NotImplementedError(tuned)
