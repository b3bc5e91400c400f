"""Where times come from: standard deviations of the logarithms of times, of the launches that bench_own.py recorded.

    make bench-variance [VARIANCE='8x2 8x1']

Each call's log time is the mean of its choice + an effect of the launch on all choices + one on this choice + an effect
of the round on all + the rest, which is the choice's own in that round (analysis of variance of a balanced nested
design; Montgomery, *Design and analysis of experiments*, 14). Writes bench/variance.json and prints it; variances are
averaged over the sizes of a collective. ``believes_round``: the speed-up that choosing by a single round expects;
``gets_round``: what the same choice has in the other launches; ``gets_launch``: chosen by all rounds of a launch;
``best``: by the other launches themselves. Needs no MPI.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bench_own import KEPT, Rounds, launches_of
from colltune.core.sample import DEFAULT, Scenario
from harness import write_figures

Floats = NDArray[np.float64]
PARTS = ("launch_together", "launch_own", "round_together", "round_own")


def table_of(launches: Sequence[Rounds], scenario: Scenario) -> Floats:
    """(launches, rounds, choices): logarithms of times, the default first; what was not always timed is left out."""
    choices = set(launches[0][scenario]).intersection(*(one.get(scenario, {}) for one in launches))
    ordered = sorted(choices, key=lambda choice: (choice != DEFAULT, choice))
    rounds = min((len(one[scenario][choice]) for one in launches for choice in ordered), default=0)
    times = [[one[scenario][choice][:rounds] for choice in ordered] for one in launches]
    return np.array(times, dtype=np.float64).transpose(0, 2, 1) if ordered else np.zeros((0, 0, 0))


def variances(y: Floats) -> tuple[float, ...]:
    """In the order of PARTS; none is below 0."""
    launches, rounds, choices = y.shape
    all_of, by_round, by_choice = y.mean(axis=(1, 2)), y.mean(axis=2), y.mean(axis=1)
    rest = y - by_choice[:, None, :] - by_round[:, :, None] + all_of[:, None, None]
    own = by_choice - all_of[:, None] - by_choice.mean(axis=0) + all_of.mean()
    squares_rest = float((rest**2).sum()) / (launches * (rounds - 1) * (choices - 1))
    squares_round = choices * float(((by_round - all_of[:, None]) ** 2).sum()) / (launches * (rounds - 1))
    squares_own = rounds * float((own**2).sum()) / ((launches - 1) * (choices - 1))
    squares_launch = rounds * choices * float(all_of.var(ddof=1))
    found = (
        (squares_launch - squares_round - squares_own + squares_rest) / (rounds * choices),
        (squares_own - squares_rest) / rounds,
        (squares_round - squares_rest) / choices,
        squares_rest,
    )
    return tuple(max(one, 0.0) for one in found)


def chosen(y: Floats) -> dict[str, float]:
    """Log speed-ups of what is chosen, means over the rounds and launches that it is chosen by."""
    gains = y[:, :, :1] - y  # of each choice over the default
    found: dict[str, list[float]] = {"believes_round": [], "gets_round": [], "gets_launch": [], "best": []}
    for number in range(len(y)):
        others = np.delete(gains, number, axis=0).mean(axis=(0, 1))
        for of_round in gains[number]:
            found["believes_round"].append(float(of_round.max()))
            found["gets_round"].append(float(others[of_round.argmax()]))
        found["gets_launch"].append(float(others[gains[number].mean(axis=0).argmax()]))
        found["best"].append(float(others.max()))
    return {name: float(np.mean(some)) for name, some in found.items()}


def of_shape(shape: str) -> dict[str, float]:
    launches = launches_of(shape)
    if len(launches) < 2:
        sys.exit(f"bench/own/{shape} holds {len(launches)} launches, and two are needed: run make bench-own")
    tables: dict[str, list[Floats]] = {}
    for scenario in sorted(launches[0]):
        table = table_of(launches, scenario)
        if min(table.shape) >= 2:
            tables.setdefault(scenario.collective, []).append(table)
    made: dict[str, float] = {f"launches_{shape}": len(launches)}
    for name, some in tables.items():
        parts = np.mean([variances(y) for y in some], axis=0)
        made |= {f"{part}_{name}_{shape}": round(math.sqrt(v), 3) for part, v in zip(PARTS, parts, strict=True)}
        gains = [chosen(y) for y in some]
        made |= {f"{of}_{name}_{shape}": round(math.exp(np.mean([one[of] for one in gains])), 3) for of in gains[0]}
    return made


def main() -> None:
    shapes = sys.argv[1:] or sorted(path.name for path in KEPT.glob("*x*") if any(path.glob("launch-*.jsonl")))
    if not shapes:
        sys.exit("bench/own holds no recorded launches: run make bench-own OWN='--osu DIR'")
    made = {key: value for shape in shapes for key, value in of_shape(shape).items()}
    write_figures("variance", made)


if __name__ == "__main__":
    main()
