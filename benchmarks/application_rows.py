"""What is kept of a program in benchmarks/bench_applications.py, its row in the table, and the figures of all."""

from __future__ import annotations

import json
import math
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from scipy.stats import t as student

from application_auto import captured
from applications import PLAIN_LINK, Place
from colltune.core.medians import medians_of
from colltune.core.sample import DEFAULT, Choice, Scenario, grouped
from colltune.profile.application_profile import time_shares
from colltune.profile.profile_files import load_profile
from colltune.store.earlier import GAIN, HISTORY, measurements

INPUTS = Path(__file__).parent / "application_inputs"
KEPT = Path("bench") / "applications"
Ends = tuple[float, float | None, float | None]


@dataclass(frozen=True)
class Program:
    """As programs.toml describes it."""

    title: str
    mpi: str
    command: list[str]
    code: str
    source: str
    why: str
    result: str = ""
    file: str = ""
    loop: str | None = None
    clock: str = ""
    prepare: str = ""
    inputs: list[str] = field(default_factory=list)


def programs() -> dict[str, Program]:
    return {name: Program(**fields) for name, fields in tomllib.loads((INPUTS / "programs.toml").read_text()).items()}


@dataclass
class Steps:
    """What is done of a program. Times in seconds, one of each way in each round: of the loop that the program times by
    itself, else of the whole command. ``default_clock_s``, ``tuned_clock_s``: what its own clock says of the same runs.
    ``measured``: what all calls of the rules would save in one run, by `run --measure`, with its bounds. ``cost``: of
    each way of being in the program without changing its calls, wall and processor seconds of each run. ``auto_s``:
    whole runs by `run --auto`, ``auto_lost`` the share of them that trying took; ``auto_turns``: turns after them.
    ``at_most``: what the function of this name says, in rows that are read for the tables."""

    share: float | None = None
    share_tuned: float | None = None
    collectives: dict[str, float] = field(default_factory=dict)
    rules: int | None = None
    alltoallv: int | None = None
    tuning_s: float = 0.0
    default_s: list[float] = field(default_factory=list)
    tuned_s: list[float] = field(default_factory=list)
    default_clock_s: list[float] = field(default_factory=list)
    tuned_clock_s: list[float] = field(default_factory=list)
    default_results: list[float] = field(default_factory=list)
    tuned_results: list[float] = field(default_factory=list)
    measured: list[tuple[float, float | None, float | None]] = field(default_factory=list)
    measured_runs: int = 0
    cost: dict[str, list[list[float]]] = field(default_factory=dict)
    auto_s: list[float] = field(default_factory=list)
    auto_lost: float = 0.0
    auto_turns: dict[str, list[float]] = field(default_factory=dict)
    failed: str = ""
    at_most: float = 1.0

    @property
    def tuned(self) -> bool:
        return bool(self.rules or self.alltoallv)

    @property
    def is_counted(self) -> bool:
        """Whether it was compared, or nothing was proven, which counts as 1."""
        return bool(self.tuned_s) or (self.rules == 0 and not self.tuned)

    def gain(self) -> Ends:
        return ratio(self.default_s, self.tuned_s)

    def clock_gain(self) -> Ends:
        return ratio(self.default_clock_s, self.tuned_clock_s)

    def price(self, at: int) -> dict[str, Ends]:
        """Time over that by default, of each way of being there: 0 of the wall clock, 1 of the processor."""
        base = [run[at] for run in self.cost.get("default", [])]
        return {way: ratio([run[at] for run in runs], base) for way, runs in self.cost.items() if way != "default"}

    def differs(self) -> float:
        """The greatest relative difference of what tuned runs computed from what those by default did; NaN for none."""
        pairs = zip(self.default_results, self.tuned_results, strict=False)
        told = [(a, b) for a, b in pairs if not math.isnan(a) and not math.isnan(b)]
        return max((abs(a - b) / max(abs(a), 1e-300) for a, b in told), default=math.nan)

    def measured_gain(self, ends: Ends) -> list[float]:
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


def ratio(above: Sequence[float], below: Sequence[float]) -> Ends:
    """By the mean of the logarithms of neighbouring runs, with its 95% bounds; None for these of fewer than three."""
    logs = [math.log(a / b) for a, b in zip(above, below, strict=True)]
    if len(logs) < 3:
        return math.exp(fmean(logs)) if logs else 1.0, None, None
    half = float(student.ppf(0.975, len(logs) - 1)) * stdev(logs) / math.sqrt(len(logs))
    return math.exp(fmean(logs)), math.exp(fmean(logs) - half), math.exp(fmean(logs) + half)


def _over(base_s: float, saved_s: float) -> float:
    return base_s / (base_s - saved_s) if saved_s < base_s else math.inf


HEAD = [
    "| program | MPI | ranks | in collectives; tuned | most in | rules | a run | default / tuned | by its own clock"
    " | by `run --measure` | overlap | results differ by | tuning | at most |",
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
]


def row(program: Program, where: str, steps: Steps) -> str:
    share = "-" if steps.share is None else f"{steps.share:.0%}"
    share += "" if steps.share_tuned is None else f"; {steps.share_tuned:.0%}"
    base_s = fmean(steps.default_s) if steps.default_s else 0.0
    rules = f"{steps.rules or 0}" + (f" + {steps.alltoallv} alltoallv" if steps.alltoallv else "")
    cells = [
        program.title,
        program.mpi,
        str(Place.parse(where)),
        share,
        ", ".join(list(steps.collectives)[:3]),
        rules,
        f"{base_s:.3g} s" if base_s else "-",
        _told(steps),
        text(steps.clock_gain()) if steps.tuned_clock_s else "-",
        *_measured(steps),
        "-" if math.isnan(steps.differs()) else f"{steps.differs():.0e}",
        f"{steps.tuning_s:.0f} s",
        f"{steps.at_most:.2f}",
    ]
    return "| " + " | ".join(cells) + " |"


def text(ends: Ends) -> str:
    estimate, low, high = ends
    return f"{estimate:.3f}" + ("" if low is None or high is None else f" ({low:.3f} to {high:.3f})")


def _told(steps: Steps) -> str:
    if steps.failed and not steps.tuned_s:
        return f"ended: {steps.failed}"
    if steps.rules is None:
        return "not tuned"
    if not steps.tuned:
        return "nothing proven"
    return text(steps.gain()) if steps.tuned_s else "not compared"


def _measured(steps: Steps) -> tuple[str, str]:
    """The estimate of the run in the middle with its bounds, and how many of the runs overlap with the whole ones."""
    if not steps.measured or not steps.default_s:
        return ("too few calls" if steps.measured_runs else "-"), "-"
    middle = sorted(steps.measured)[len(steps.measured) // 2]
    estimate, low, high = steps.measured_gain(middle)
    return f"{estimate:.3f} ({low:.3f} to {high:.3f})", f"{steps.agreeing()} of {len(steps.measured)}"


def described(known: dict[str, Program]) -> list[str]:
    """The table of what the programs are: where each is from, what it is given, and why that."""
    head = ["| program | from | input, and why | its own clock |", "|---|---|---|---|"]
    clocks = {name: (one.loop or one.clock or "none").replace("|", "\\|") for name, one in known.items()}
    return head + [f"| {one.title} | {one.source} | {one.why} | `{clocks[name]}` |" for name, one in known.items()]


def load_steps(path: Path) -> Steps:
    if not path.exists():
        return Steps()
    fields = json.loads(path.read_text())
    fields["measured"] = [tuple(one) for one in fields["measured"]]
    return Steps(**fields)


def kept_rows(known: dict[str, Program]) -> list[tuple[Program, str, Steps]]:
    """All that is kept: the program, where it ran and its steps, place by place in the order of ``known``."""
    kept = [(*path.stem.split("-"), path) for path in KEPT.glob("*-*.json")]
    kept.sort(key=lambda row: (row[1], list(known).index(row[0])))
    loaded = [(known[name], where, load_steps(path), path.with_suffix("")) for name, where, path in kept]
    return [(program, where, replace(steps, at_most=at_most(place))) for program, where, steps, place in loaded]


def at_most(place: Path) -> float:
    """Default over tuned if each call took the time of the choice that its tuning measured as the fastest, with the
    luck of that one launch. MPI_Alltoallv and MPI_Alltoallw as by default."""
    if not (place / "tuned").exists():
        return 1.0
    times: dict[Scenario, dict[Choice, float]] = defaultdict(dict)
    for (scenario, choice), time_s in medians_of(measurements(place / "tuned")).items():
        times[scenario][choice] = time_s
    shares = time_shares(load_profile(place / "profile.json"))
    known = [(share, times[call]) for call, share in shares.items() if DEFAULT in times[call]]
    return 1.0 / (1.0 - sum(share * (1.0 - min(of_call.values()) / of_call[DEFAULT]) for share, of_call in known))


def saved_by_all(tuned: Path) -> list[Ends]:
    """Seconds that the calls which met a rule would save if all ran tuned, by the latest run; none: too few calls."""
    place = max((tuned / HISTORY).iterdir())
    if not (place / GAIN).exists():
        return []
    gain = json.loads((place / GAIN).read_text())
    ends: list[float | None] = [0.0, 0.0, 0.0]
    for cell in gain["cells"]:
        whole = (cell["tuned_calls"] + cell["default_calls"]) / max(cell["tuned_calls"], 1)
        for at, end in enumerate(("estimate", "low", "high")):
            value, before = cell["saved_s"].get(end), ends[at]
            ends[at] = None if value is None or before is None else before + value * whole
    estimate, low, high = ends
    return [(estimate, low, high)] if gain["cells"] and estimate is not None else []


Rows = Iterable[tuple[Program, str, Steps]]


def figures(rows: Rows) -> dict[str, Any]:
    """Of the rows that count. ``surely_slower`` is of all links, the others are of those of 1 Gbit/s."""
    counted = [row for row in rows if row[2].is_counted]
    plain = [row for row in counted if Place.parse(row[1]).rate == PLAIN_LINK]
    gains = [steps.gain() for _, _, steps in plain]
    middle = [gain for gain, _, _ in gains]
    return {
        "codes": len({program.code for program, _, _ in plain}),
        "rows": len(gains),
        "compared": sum(bool(steps.tuned_s) for _, _, steps in plain),
        "best_gain": round(max(middle, default=1.0), 3),
        "worst_gain": round(min(middle, default=1.0), 3),
        "median_gain": round(median(middle), 3) if middle else 1.0,
        "geomean": round(_geomean(middle), 3),
        **_mostly_in_collectives(plain),
        "surely_faster": sum(low is not None and low > 1.0 for _, low, _ in gains),
        "surely_5_percent_faster": sum(low is not None and low >= 1.05 for _, low, _ in gains),
        "surely_slower": sum((high := steps.gain()[2]) is not None and high <= 0.99 for _, _, steps in counted),
        "measured": sum(len(steps.measured) for _, _, steps in plain),
        "measured_overlap": sum(steps.agreeing() for _, _, steps in plain),
    }


def _mostly_in_collectives(plain: Rows) -> dict[str, float]:
    """Of codes with rows of over 40% in collectives; of several such rows of a code their geometric mean counts."""
    codes = grouped([row for row in plain if (row[2].share or 0.0) > 0.4], lambda row: row[0].code).values()
    reached = [_geomean([steps.gain()[0] for _, _, steps in rows]) for rows in codes]
    most = [_geomean([max(steps.gain()[0], steps.at_most) for _, _, steps in rows]) for rows in codes]
    return {
        "codes_over_40_percent": len(codes),
        "geomean_over_40_percent": round(_geomean(reached), 3),
        "at_most_over_40_percent": round(_geomean(most), 3),
    }


def _geomean(gains: Sequence[float]) -> float:
    return math.exp(fmean(map(math.log, gains))) if gains else 1.0


COST_HEAD = [
    "| program | ranks | way | pairs | a run by default | wall time over that by default | processor time |",
    "|---|---|---|---|---|---|---|",
]


def cost_rows(program: Program, where: str, steps: Steps) -> list[str]:
    """What being in the program costs, without changing its calls, a row for each way."""
    wall, processor = steps.price(0), steps.price(1)
    base_s = fmean(run[0] for run in steps.cost["default"]) if wall else 0.0
    first = f"| {program.title} | {Place.parse(where)} |"
    return [
        f"{first} {way} | {len(steps.cost[way])} | {base_s:.3g} s | {text(wall[way])} | {text(processor[way])} |"
        for way in wall
    ]


def cost_figures(rows: Rows) -> dict[str, float]:
    """``preload_cost``: the upper end of the 95% interval of the wall time, the worst of all ways and programs; and
    that of each way, and of the processor's time."""
    worst: dict[str, float] = {}
    for _, _, steps in rows:
        for at, what in enumerate(("", "_processor")):
            for way, (_, _, high) in steps.price(at).items():
                for name in (f"preload_{way}{what}", f"preload_cost{what}"):
                    if high is not None:
                        worst[name] = max(worst.get(name, -1.0), round(high - 1.0, 4))
    return worst


def auto_figures(rows: Rows) -> dict[str, float]:
    """Of the programs that ran in turns after their runs by `run --auto`."""
    judged = [steps for _, _, steps in rows if steps.auto_turns]
    if not judged:
        return {}
    return {
        "auto_codes": len(judged),
        "auto_captured": round(median(captured(steps.auto_turns) for steps in judged), 3),
        "auto_cost": round(max(steps.auto_lost for steps in judged), 5),
    }
