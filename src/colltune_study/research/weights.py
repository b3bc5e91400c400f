"""What an application calls, as weights of the scenarios of a table."""

from dataclasses import dataclass
from math import log2
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from colltune.core.errors import InputError
from colltune.core.sample import Scenario
from colltune.machine.files import read_file, read_record
from colltune.profile.application_profile import Profile
from colltune.store.grid import Floats, Grid

_FORM = '{"calls": [{"collective": "allreduce", "nodes": 16, "ppn": 32, "msg_bytes": 8, "calls": 1000}]}'


@dataclass(frozen=True)
class CallCounts:
    """``calls``: how often each scenario was called."""

    calls: tuple[tuple[Scenario, float], ...]


class _Row(msgspec.Struct):
    collective: str
    nodes: int
    ppn: int
    msg_bytes: int
    calls: Annotated[float, msgspec.Meta(ge=0.0)]

    def __post_init__(self) -> None:
        _ = self.scenario  # which raises ValueError for what is none

    @property
    def scenario(self) -> Scenario:
        return Scenario(self.collective.lower().removeprefix("mpi_"), self.nodes, self.ppn, self.msg_bytes)


class _File(msgspec.Struct):
    calls: tuple[_Row, ...]


def load_call_counts(path: Path) -> CallCounts:
    """Counts that somebody wrote by hand. Raises InputError for a file that holds none."""
    try:
        rows = read_record(read_file(path, link=True), _File).calls
        calls = tuple((one.scenario, one.calls) for one in rows)
    except OSError as error:
        raise InputError(f"cannot read the profile {path}: {error.strerror}", "Give a JSON file") from error
    except ValueError as error:
        raise InputError(f"{path} is not a profile: {error}", f"Write {_FORM}") from error
    if not calls:
        raise InputError(f"the profile {path} holds no calls", f"Write {_FORM}")
    return CallCounts(calls)


def weights_of(profile: CallCounts, grid: Grid) -> Floats:
    """(N,): calls per scenario of the table; each call counts for the recorded scenario nearest to it.

    Near is in powers of two: of ranks first, then of nodes, then of bytes. All zero where the profile has none of the
    collective.
    """
    weights = np.zeros(len(grid.scenarios))
    for called, count in profile.calls:
        if called.collective == grid.collective:
            weights[min(range(len(weights)), key=lambda row: _distance(called, grid.scenarios[row]))] += count
    return weights


def _distance(one: Scenario, other: Scenario) -> tuple[float, float, float]:
    return (
        abs(log2(one.ranks / other.ranks)),
        abs(log2(one.nodes / other.nodes)),
        abs(log2((one.size_bytes + 1) / (other.size_bytes + 1))),
    )


def calls_per_second(profile: Profile) -> dict[Scenario, float]:
    """How often the application makes each call that can be tuned, in calls of a communicator per second."""
    rates: dict[Scenario, float] = {}
    for calls, scenarios in profile.tunable():
        for scenario in scenarios:
            rate = calls.calls / max(profile.elapsed_s, 1e-9) / len(scenarios)
            rates[scenario] = rates.get(scenario, 0.0) + rate
    return rates
