"""A program that broadcasts in a loop on two ranks, with a known delay put before some of its calls."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from jobs import ON_EITHER, crowded
from live_jobs import live
from test_switchback import Measured, measured_in

from colltune.core.sample import Choice
from colltune.mpi.installation import Installation

BYTES = 64


def loop_on(installation: Installation, place: Path) -> tuple[Measured, Choice]:
    """The program, and a choice other than the default for what it calls."""
    made = measured_in(live(installation, place), "switchback_loop.c")
    choices = made.mpi.bench.catalogue.choices("bcast")
    return made, next(one for one in choices if one.algorithm in ("binomial", "pipeline"))


def delay(made: Measured, monkeypatch: pytest.MonkeyPatch, slow: str = "", slow_us: int = 0) -> None:
    """From here on ``slow`` calls ("default" or "tuned") of the program begin ``slow_us`` later."""
    # Behind the library, which is left where it is, so that the delay is the MPI's.
    spy = {"LD_PRELOAD": f"{made.mpi.preload}:{made.spy}", "CT_SLOW": slow, "CT_SLOW_US": str(slow_us)}
    for name, value in {**ON_EITHER, **spy}.items():
        monkeypatch.setenv(name, value)


def broadcasts(made: Measured, calls: int, code: int = 0) -> Sequence[str]:
    """The command of so many calls, which ends with exit code ``code``."""
    mpi = made.mpi.bench.installation
    return [str(mpi.mpiexec), *crowded(mpi), "-n", "2", str(made.program), str(calls), str(BYTES), str(code)]


def fits(text: str, gain: Mapping[str, Any]) -> bool:
    """Whether ``text`` says how long the run would have taken where the interval has no 0, and elsewhere that it does
    not tell."""
    saved = gain["saved_s"]
    sure = (saved["low"] or 0.0) > 0.0 or (saved["high"] or 0.0) < 0.0
    return ("without the tuning it would have taken about" in text) == sure and (
        "does not tell whether it would have taken longer without the tuning" in text
    ) != sure
