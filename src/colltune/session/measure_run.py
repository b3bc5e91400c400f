"""Sets up the experiment of `colltune run --measure`, and keeps what it says in the history of the tuning."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from colltune.core.choice import Choice
from colltune.core.errors import ColltuneError, InputError
from colltune.deploy.live import FOLDER
from colltune.emit.live import LIVE_FILE, LIVE_VARIABLE, live_choices
from colltune.machine.compile import cache_directory
from colltune.profile.switchback import read_experiments
from colltune.session.application_gain import ApplicationGain, gain_of
from colltune.store.fields import encode
from colltune.store.history import GAIN, new_entry
from colltune.store.tuning import Tuning

_OUT, _SHARE = "COLLTUNE_MEASURE", "COLLTUNE_MEASURE_SHARE"


@dataclass(frozen=True)
class MeasuredRun:
    """``variables``: what the ranks need. ``place``: where they write. ``choices``: of the selector's rules."""

    variables: Mapping[str, str]
    place: Path
    choices: tuple[Choice, ...]

    def finish(self) -> list[ApplicationGain]:
        """What each job of the command measured, in their order; removes what the ranks wrote. Raises InputError."""
        try:
            parts = [path for path in self.place.glob("part.*") if path.suffix != ".new"]
            return [gain_of(found, self.choices) for found in read_experiments(parts)]
        finally:
            shutil.rmtree(self.place, ignore_errors=True)


def begin_measuring(tuning: Tuning, percent: int, environment: Mapping[str, str]) -> MeasuredRun:
    """The experiment in a program that runs under ``tuning`` by way of the live selector.

    ``percent``: of the blocks of calls, which run by default. Raises InputError for a tuning with which nothing can be
    compared.
    """
    if tuning.summary.reproducible:
        raise InputError(
            "this tuning is for equal bits (--reproducible), and calls by default may add in another order",
            "Run it without --measure",
        )
    name = next((name for name in tuning.files if name.endswith(f"{FOLDER}/{LIVE_FILE}")), None)
    choices = live_choices(tuning.files[name].decode("ascii")) if name and LIVE_VARIABLE in tuning.variables else []
    if not choices:
        raise InputError("this tuning has no rule that departs from the default", "Run it without --measure")
    try:
        place = Path(tempfile.mkdtemp(prefix="measure-", dir=cache_directory(environment)))
    except OSError as error:
        raise InputError(
            f"cannot write to {error.filename}: {error.strerror}", "Set COLLTUNE_CACHE to a writable directory"
        ) from error
    return MeasuredRun({_OUT: str(place / "part"), _SHARE: str(percent)}, place, tuple(choices))


def parse_share(text: str) -> int:
    """``"5%"`` or ``"5"`` -> 5 percent. Raises InputError for what is no whole number from 1 to 50."""
    match = re.fullmatch(r"(\d{1,2})\s*%?", text.strip())
    if match is None or not 1 <= int(match.group(1)) <= 50:
        raise InputError(f"the share {text!r} is no whole percentage from 1% to 50%", "Write for example --share 10%")
    return int(match.group(1))


def keep_gain(directory: Path, gain: ApplicationGain) -> Path:
    """Writes ``gain`` into the history of the tuning in ``directory``; the file. Raises ColltuneError."""
    target = new_entry(directory, time.time()) / GAIN
    try:
        target.write_text(
            json.dumps({"schema": 1, **_fields(gain)}, indent=2, allow_nan=False) + "\n", encoding="utf-8"
        )
    except OSError as error:
        raise ColltuneError(f"cannot write {target}: {error.strerror}", "Give a writable directory") from error
    return target


def _fields(gain: ApplicationGain) -> dict[str, object]:
    written = encode(gain)
    assert isinstance(written, dict)
    return written
