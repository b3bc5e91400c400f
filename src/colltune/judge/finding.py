"""What measurements say of a speed-up, and which exit code a command makes of what it found."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from colltune.core.interval import Interval, SpeedVerdict


class Because(StrEnum):
    """Why a finding has its verdict."""

    MEASURED = "measured"
    FAILED = "failed"  # it ended with an error, or does not run here
    NO_TIME = "no time"  # nothing was measured


@dataclass(frozen=True, slots=True)
class Finding:
    """``speedup``: the time of the default over that of the choice, or of A over B; None where there is no time.

    ``launches``: of each side, or whole runs.
    """

    verdict: SpeedVerdict
    speedup: Interval | None = None
    launches: int = 0
    why: Because = Because.MEASURED


class ExitCode(IntEnum):
    """Of every command; those of a program under `run` and `profile` are its own."""

    DONE = 0
    WORSE = 1
    UNUSABLE = 2  # what was given, or the machine
    UNPROVEN = 3  # the program succeeded, and nothing proves that the tuning was in force
    NO_VERDICT = 4  # other programs used the processors, or time was too short


# The verdicts for which a command ends with 1, and what that says in docs/reference/verdicts.md.
WORSE: Mapping[str, Mapping[SpeedVerdict, str]] = {
    "verify": {SpeedVerdict.SLOWER: "slower somewhere, or a wrong result"},
    "verify --quick": {
        SpeedVerdict.SLOWER: "slower than promised",
        SpeedVerdict.GONE: "the algorithm does not run here",
    },
    "compare": {SpeedVerdict.SLOWER: "B is slower somewhere"},
    "guidelines": {SpeedVerdict.SLOWER: "a guideline is violated"},
}


def exit_code(command: str, verdicts: Iterable[SpeedVerdict], *, undecided: bool = False) -> ExitCode:
    """Of ``command``, one of WORSE. ``undecided``: of something that may be worse nothing can be said."""
    if any(verdict in WORSE[command] for verdict in verdicts):
        return ExitCode.WORSE
    return ExitCode.NO_VERDICT if undecided else ExitCode.DONE
