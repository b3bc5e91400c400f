"""What the best choice of each call would gain on a tuned cluster, proven or not: a bound for its benchmarks.

    python benchmarks/best_of_choices.py TUNED [TUNED ...] [--sizes LEAST MOST]

Reads all that was measured there (journal.jsonl and confirmation.jsonl). For each scenario the median time of the
default over that of its fastest choice, the default among them; then the geometric mean over scenarios, by collective
and over all of them, by three conventions of timing. The fastest of several noisy medians looks faster than it is, so
the true means are lower, as far as all choices that matter were measured. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import geometric_mean, median

from colltune.core.choice import DEFAULT, Choice
from colltune.core.sample import Sample, Status
from colltune.core.scenario import Scenario
from colltune.store.journal import read_journal
from colltune.store.tuning import CONFIRMATION, JOURNAL

CONVENTIONS: dict[str, Callable[[Sample], float | None]] = {
    "slowest_rank": lambda sample: sample.time_s,
    "mean_over_ranks": lambda sample: sample.osu_mean_s,
    "back_to_back": lambda sample: sample.back_to_back_s,
}


def samples_of(directories: Iterable[Path]) -> list[Sample]:
    files = [one / name for one in directories for name in (JOURNAL, CONFIRMATION) if (one / name).exists()]
    return [sample for file in files for sample in read_journal(file).samples if sample.status is Status.OK]


def best_over_default(
    samples: Iterable[Sample], time_s: Callable[[Sample], float | None], least: int, most: int
) -> dict[str, float]:
    """The geometric mean by collective, of all ("all"), and the number of scenarios ("points")."""
    times: defaultdict[Scenario, defaultdict[Choice, list[float]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        if least <= sample.scenario.size_bytes <= most and (value := time_s(sample)):
            times[sample.scenario][sample.choice].append(value)
    gains: defaultdict[str, list[float]] = defaultdict(list)
    for scenario, of_choice in times.items():
        if DEFAULT in of_choice and len(of_choice) > 1:
            medians = {choice: median(some) for choice, some in of_choice.items()}
            gains[scenario.collective].append(medians[DEFAULT] / min(medians.values()))
    every = [gain for some in gains.values() for gain in some]
    found = {name: round(geometric_mean(some), 3) for name, some in sorted(gains.items())}
    return {"points": len(every), **({"all": round(geometric_mean(every), 3)} if every else {}), **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tuned", type=Path, nargs="+")
    parser.add_argument("--sizes", type=int, nargs=2, default=[0, 1 << 40], metavar=("LEAST", "MOST"))
    asked = parser.parse_args()
    samples = samples_of(asked.tuned)
    found = {name: best_over_default(samples, time_s, *asked.sizes) for name, time_s in CONVENTIONS.items()}
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
