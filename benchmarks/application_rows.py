"""What is kept of a program in benchmarks/bench_applications.py, and its row in the table."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median, stdev

from scipy.stats import t as student

INPUTS = Path(__file__).parent / "application_inputs"
SHAPES = {"4x2": (4, 2), "8x1": (8, 1), "1x2": (1, 2)}


@dataclass(frozen=True)
class Program:
    """As programs.toml describes it."""

    title: str
    mpi: str
    command: list[str]
    result: str = ""
    file: str = ""
    loop: str | None = None
    inputs: list[str] = field(default_factory=list)


def programs() -> dict[str, Program]:
    return {name: Program(**said) for name, said in tomllib.loads((INPUTS / "programs.toml").read_text()).items()}


@dataclass
class Steps:
    """What is done of a program. Times in seconds, one of each way in each round: of the loop that the program times by
    itself, else of the whole command. ``measured``: what all calls of the rules would save in one run, by `run
    --measure`, with its bounds."""

    share: float | None = None
    share_tuned: float | None = None
    collectives: dict[str, float] = field(default_factory=dict)
    rules: int | None = None
    alltoallv: int | None = None
    tuning_s: float = 0.0
    default_s: list[float] = field(default_factory=list)
    tuned_s: list[float] = field(default_factory=list)
    default_results: list[float] = field(default_factory=list)
    tuned_results: list[float] = field(default_factory=list)
    measured: list[tuple[float, float | None, float | None]] = field(default_factory=list)
    measured_runs: int = 0
    failed: str = ""

    @property
    def tuned(self) -> bool:
        return bool(self.rules or self.alltoallv)

    def gain(self) -> tuple[float, float | None, float | None]:
        """Time by default over tuned, by the mean of the logarithms of the rounds, and its 95% bounds."""
        logs = [math.log(a / b) for a, b in zip(self.default_s, self.tuned_s, strict=True)]
        if not logs:
            return 1.0, None, None
        if len(logs) < 3:
            return math.exp(fmean(logs)), None, None
        half = float(student.ppf(0.975, len(logs) - 1)) * stdev(logs) / math.sqrt(len(logs))
        return math.exp(fmean(logs)), math.exp(fmean(logs) - half), math.exp(fmean(logs) + half)

    def differs(self) -> float:
        """The greatest relative difference of what tuned runs computed from what those by default did; NaN for none."""
        pairs = zip(self.default_results, self.tuned_results, strict=False)
        told = [(a, b) for a, b in pairs if not math.isnan(a) and not math.isnan(b)]
        return max((abs(a - b) / max(abs(a), 1e-300) for a, b in told), default=math.nan)

    def measured_gain(self, ends: tuple[float, float | None, float | None]) -> list[float]:
        """What a measured run says in seconds, as default over tuned; bounds that it does not give are without end."""
        base_s = fmean(self.default_s)
        estimate, low, high = ends
        return [
            _over(base_s, estimate),
            0.0 if low is None else _over(base_s, low),
            math.inf if high is None else _over(base_s, high),
        ]

    def agreeing(self) -> int:
        """The measured runs whose interval overlaps that of the whole runs."""
        _, low, high = self.gain()
        intervals = [self.measured_gain(one)[1:] for one in self.measured]
        return sum(low is None or high is None or (a <= high and low <= b) for a, b in intervals)


def _over(base_s: float, saved_s: float) -> float:
    return base_s / (base_s - saved_s) if saved_s < base_s else math.inf


HEAD = [
    "| program | MPI | ranks | in collectives; tuned | most in | rules | a run | default / tuned | by `run --measure`"
    " | overlap | results differ by | tuning | paid back after runs |",
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
]


def row(program: Program, where: str, steps: Steps) -> str:
    nodes, ppn = SHAPES[where]
    share = "-" if steps.share is None else f"{steps.share:.0%}"
    share += "" if steps.share_tuned is None else f"; {steps.share_tuned:.0%}"
    base_s = fmean(steps.default_s) if steps.default_s else 0.0
    gain, low, _ = steps.gain()
    pays = base_s * (1.0 - 1.0 / gain)
    rules = f"{steps.rules or 0}" + (f" + {steps.alltoallv} alltoallv" if steps.alltoallv else "")
    cells = [
        program.title,
        program.mpi,
        f"{nodes} x {ppn}",
        share,
        ", ".join(list(steps.collectives)[:3]),
        rules,
        f"{base_s:.3g} s" if base_s else "-",
        _told(steps),
        *_measured(steps),
        "-" if math.isnan(steps.differs()) else f"{steps.differs():.0e}",
        f"{steps.tuning_s:.0f} s",
        f"{math.ceil(steps.tuning_s / pays)}" if low is not None and low > 1.0 else "-",
    ]
    return "| " + " | ".join(cells) + " |"


def _told(steps: Steps) -> str:
    gain, low, high = steps.gain()
    if steps.failed and not steps.tuned_s:
        return f"ended: {steps.failed}"
    if steps.rules is None:
        return "not tuned"
    if not steps.tuned:
        return "nothing proven"
    if not steps.tuned_s:
        return "not compared"
    return f"{gain:.3f}" + ("" if low is None or high is None else f" ({low:.3f} to {high:.3f})")


def _measured(steps: Steps) -> tuple[str, str]:
    """The estimate of the run in the middle with its bounds, and how many of the runs overlap with the whole ones."""
    if not steps.measured or not steps.default_s:
        return ("too few calls" if steps.measured_runs else "-"), "-"
    middle = sorted(steps.measured)[len(steps.measured) // 2]
    estimate, low, high = steps.measured_gain(middle)
    return f"{estimate:.3f} ({low:.3f} to {high:.3f})", f"{steps.agreeing()} of {len(steps.measured)}"


def load_steps(path: Path) -> Steps:
    if not path.exists():
        return Steps()
    said = json.loads(path.read_text())
    said["measured"] = [tuple(one) for one in said["measured"]]
    return Steps(**said)


def figures(found: Iterable[Steps]) -> dict[str, float]:
    """The rows that were compared, and those where nothing was proven, which count as 1."""
    counted = [one for one in found if one.tuned_s or (one.rules == 0 and not one.tuned)]
    gains = [one.gain() for one in counted]
    middle = [gain for gain, _, _ in gains]
    return {
        "rows": len(gains),
        "compared": sum(bool(one.tuned_s) for one in counted),
        "best_gain": round(max(middle, default=1.0), 3),
        "worst_gain": round(min(middle, default=1.0), 3),
        "median_gain": round(median(middle), 3) if middle else 1.0,
        "geomean": round(math.exp(fmean(map(math.log, middle))) if middle else 1.0, 3),
        "surely_faster": sum(low is not None and low > 1.0 for _, low, _ in gains),
        "surely_5_percent_faster": sum(low is not None and low >= 1.05 for _, low, _ in gains),
        "surely_slower": sum(high is not None and high <= 0.99 for _, _, high in gains),
        "measured": sum(len(one.measured) for one in counted),
        "measured_overlap": sum(one.agreeing() for one in counted),
    }
