"""ACCLAiM's own program beside ours of it: the same recorded table answers both, and their choices are compared.

    git clone https://github.com/pmodels/acclaim /elsewhere/acclaim
    python benchmarks/against_acclaim.py --acclaim /elsewhere/acclaim [TABLE...] [--most 60] [--out bench]

Their learner runs as it is: `train_model` chooses its points, grows its forests and decides when it stops. Replaced are
what would need a machine or would make it random: the measurement (the table answers, with the same numbers as ours is
told), the grid (the table's powers of two at which all choices are recorded), the list of algorithms, the pool of nodes
(serial), and the forests' seed. --most ends both after so many points, as its timeout would. A table a line: in how
many steps the same point was asked for, the first that differs, the variance, the stop, and for how many pairs of the
grid both predict the same. Leaves against_acclaim.csv.

DIR is code that is run: give your own clone. Nothing of it is part of colltune.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_learning import DATA, is_timed
from colltune.core.errors import ColltuneError, InputError
from colltune.core.sample import Sample, Scenario, Status
from colltune.store.grid import Grid
from colltune_study.research.compare import write_csv
from colltune_study.research.evaluation import load
from colltune_study.research.learners.acclaim import AcclaimProgramLearner
from colltune_study.research.learners.published import PublishedSettings, on_powers_of_two
from harness import options_of, part_of

Floats = NDArray[np.float64]
SETTINGS = PublishedSettings()


class EnoughError(Exception):
    """As many points were measured as were to be."""


@dataclass(frozen=True)
class Walk:
    """What a learner asked for, in order, the mean variance after each forest, and what it predicts of the grid.

    ``converged``: whether it stopped by itself.
    """

    asked: tuple[Scenario, ...]
    variances: tuple[float, ...]
    predicted: Floats
    converged: bool


def common_part(grid: Grid) -> Grid:
    """The powers of two at which every choice is recorded: their program knows no other points."""
    usual = on_powers_of_two(grid.scenarios, ("nodes", "ppn", "size_bytes"))
    whole = [row for row, s in enumerate(grid.scenarios) if s in usual and not np.isnan(grid.time_s[row]).any()]
    if len(whole) <= SETTINGS.first:
        raise InputError(f"{grid.name} has {len(whole)} powers of two with all choices", "Give a larger table")
    return part_of(grid, sorted(whole, key=lambda row: grid.scenarios[row]))


def ours(grid: Grid, seed: int, most: int) -> Walk:
    learner, asked = AcclaimProgramLearner(grid.space, seed), []
    stopped = False
    while not stopped and len(asked) < most and (points := learner.ask(1)):
        asked.append(points[0].scenario)
        learner.tell([Sample(asked[-1], c, Status.OK, (grid.time(asked[-1], c),)) for c in points[0].choices])
        stopped = "variance" in (learner.should_stop() or "")
    pairs = [(scenario, choice) for scenario in grid.scenarios for choice in grid.choices]
    return Walk(tuple(asked), tuple(learner.variances), learner.model().predict(pairs).log_time, stopped)


def theirs(grid: Grid, seed: int, most: int, modules: Modules) -> Walk:
    """Their `train_model` on the same grid. What it prints is not shown."""
    features = np.array([[np.log2(max(v, 1)) + 1.0 for v in (s.nodes, s.ppn, s.size_bytes)] for s in grid.scenarios])
    asked: list[Scenario] = []
    variances: list[float] = []
    forests: list[Any] = []
    learner = modules.learner

    def collect(_name: str, _algorithms: dict[int, str], rows: Floats, _topology: object = None) -> Floats:
        times = []
        for row in rows:
            scenario = grid.scenarios[int(np.flatnonzero((features == row[:3]).all(axis=1))[0])]
            if row[3] == 0:
                if len(asked) == most:
                    raise EnoughError
                asked.append(scenario)
            times.append(grid.time(scenario, grid.choices[int(row[3])]))
        return np.array(times)

    def forest() -> Any:
        forests.append(modules.forest(random_state=seed + len(asked)))
        return forests[-1]

    def noted(*arguments: Any) -> float:
        variances.append(float(modules.jackknife(*arguments)))
        return variances[-1]

    learner.create_feature_space = lambda *_: features
    learner.read_algs = lambda _collective: dict(enumerate(map(str, grid.choices)))
    learner.collect_point_batch, learner.RandomForestRegressor, learner.jackknife = collect, forest, noted
    most_of = [max(getattr(s, name) for s in grid.scenarios) for name in ("nodes", "ppn", "size_bytes")]
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            learner.train_model(*most_of, grid.collective)
            stopped = True
        except EnoughError:
            stopped = False
    rows = np.array([[*own, number] for own in features for number in range(len(grid.choices))])
    return Walk(tuple(asked), tuple(variances), np.asarray(forests[-1].predict(rows)), stopped)


@dataclass(frozen=True)
class Modules:
    """Of their program: the module of `train_model`, and what it had of its own before anything is replaced."""

    learner: Any
    jackknife: Callable[..., float]
    forest: Any


def their_modules(directory: Path) -> Modules:
    """Raises InputError where ``directory`` is no clone of theirs."""
    sys.path.insert(0, str(directory.resolve()))
    try:
        learner = importlib.import_module("src.active_learner.active_learner")
        manager = importlib.import_module("src.user_config.config_manager").ConfigManager.get_instance()
    except ImportError as error:
        raise InputError(
            f"{directory} is no clone of ACCLAiM: {error}", "Give --acclaim a clone of pmodels/acclaim"
        ) from error
    settings = {"num_initial_points": SETTINGS.first, "convergence_threshold": SETTINGS.threshold, "timeout": 10**6}
    manager.parser.read_dict({"settings": {**settings, "max_ppn": 1, "system": "serial"}})
    return Modules(learner, learner.jackknife, learner.RandomForestRegressor)


COLUMNS = (
    *("table", "points", "choices", "asked", "same steps", "first other", "variance off", "stop", "same predictions"),
)


def compared(grid: Grid, own: Walk, their: Walk) -> list[str]:
    """A row of ``COLUMNS``."""
    steps = list(zip(own.asked, their.asked, strict=False))
    other = next((number for number, (one, two) in enumerate(steps, 1) if one != two), 0)
    alike = other - SETTINGS.first if other else None  # forests that were grown of the same points
    pairs = list(zip(own.variances, their.variances, strict=False))[:alike]
    off = max((abs(one / two - 1.0) for one, two in pairs if two), default=0.0)
    stops = [str(len(walk.asked)) if walk.converged else "no" for walk in (own, their)]
    same = float(np.isclose(own.predicted, np.log(10.0) * their.predicted, rtol=1e-6).mean())
    return [
        grid.name,
        str(len(grid.scenarios)),
        str(len(grid.choices)),
        f"{len(own.asked)}, {len(their.asked)}",
        str(sum(one == two for one, two in steps)),
        str(other or "none"),
        f"{off:.1e}",
        f"{stops[0]}, {stops[1]}",
        f"{same:.0%}",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = options_of(__doc__)
    parser.add_argument("tables", nargs="*", type=Path)
    parser.add_argument("--acclaim", type=Path, required=True, metavar="DIR", help="a clone of pmodels/acclaim")
    parser.add_argument("--only", default="", help="tables with this in their name")
    parser.add_argument("--most", type=int, default=60, help="points until both are ended")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("bench"))
    options = parser.parse_args(arguments)
    try:
        modules = their_modules(options.acclaim)
        rows = []
        for grid in load(options.tables or [path for path in sorted(DATA.glob("*")) if is_timed(path)]):
            if options.only not in grid.name:
                continue
            try:
                part = common_part(grid)
            except InputError as error:
                print(f"left out: {error.what}", file=sys.stderr)
                continue
            walks = ours(part, options.seed, options.most), theirs(part, options.seed, options.most, modules)
            rows.append(compared(part, *walks))
            print("; ".join(f"{name} {value}" for name, value in zip(COLUMNS, rows[-1], strict=True)), flush=True)
        options.out.mkdir(parents=True, exist_ok=True)
        write_csv(options.out / "against_acclaim.csv", COLUMNS, rows)
    except ColltuneError as error:
        print(f"colltune: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
