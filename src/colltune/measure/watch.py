"""Whether other programs disturb what is measured, and how long to wait for a calm machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from colltune.core.disturbance import ACCEPT, VARIABLE, Load, Tally
from colltune.core.errors import InputError
from colltune.measure.agent_process import parse_fields
from colltune.measure.request import read_load

# What is disturbed is taken so often at most, after pauses that grow from the first to the last of these.
MOST_TRIES = 4
_FIRST_S, _LONGEST_S = 0.05, 1.0
# How long all measurements together wait, of the budget of a tuning, and where nobody gave them more.
PATIENT_SHARE = 0.25
_PATIENCE_S = 10.0
# What a launch counts for at least: one in which nothing was measured says what else runs, too.
_LEAST_S = 1e-6


def our_process() -> dict[str, str]:
    """The variable by which the agent knows us, where we run on a machine of its ranks: what we use is not others'."""
    try:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:
        return {}
    machine = 14695981039346656037  # as native/load/load_files.c: FNV-1a
    for byte in boot_id:
        machine = (machine ^ byte) * 1099511628211 % 2**64
    return {"COLLTUNE_HOST": f"{machine:x}:{os.getpid()}"}


class Watch:
    """Of all launches on ``nodes``. ``patience_s``: how long they wait in all for a machine to become calm."""

    def __init__(self, *, judged: bool = True, nodes: Sequence[str] = ()) -> None:
        self.nodes = nodes
        self.tally = Tally(judged=judged)
        self.patience_s = _PATIENCE_S
        self._in_a_row = 0
        self._untold_s = 0.0  # in the launch at hand, of measurements too short to be judged alone

    @classmethod
    def of(cls, environ: Mapping[str, str], nodes: Sequence[str] = ()) -> Watch:
        """As the user set VARIABLE. Raises InputError for a value that it cannot have."""
        setting = environ.get(VARIABLE, "")
        if setting not in ("", ACCEPT):
            raise InputError(f"{VARIABLE}={setting} says nothing", f"Set it to {ACCEPT}, or unset it")
        return cls(judged=not setting, nodes=nodes)

    def is_disturbed(self, load: Load | None, took_s: float) -> bool:
        """Counts a measurement of so many seconds; whether it was disturbed."""
        disturbed = self.tally.add(load, took_s)
        self._untold_s += 0.0 if load is not None and load.is_known else took_s
        self._in_a_row = self._in_a_row + 1 if disturbed else 0
        return disturbed

    def is_disturbed_launch(self, last_lines: Iterable[str]) -> bool:
        """Whether a launch was disturbed as a whole, by what its agent said at its end."""
        untold_s, self._untold_s = self._untold_s, 0.0
        loads = [read_load(parse_fields(line)) for line in last_lines if line.startswith("load ")]
        for load in loads[:1]:
            self.tally.untold += not load.is_known
            return self.tally.add(load, max(untold_s, _LEAST_S))
        return False

    def pause_s(self, tries: int) -> float | None:
        """How long to wait before a point is measured again that was disturbed ``tries`` times; None: it is not."""
        pause_s = min(_FIRST_S * 2.0 ** min(self._in_a_row, 10), _LONGEST_S)
        if tries >= MOST_TRIES or self.tally.waited_s + pause_s > self.patience_s:
            return None
        self.tally.waited_s += pause_s
        return pause_s


def unjudged() -> Watch:
    """For sources that nobody gave a watch."""
    return Watch(judged=False)
