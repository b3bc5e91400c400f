"""Whether `run --measure` finds the truth: a cluster of namespaces (4 nodes x 2 ranks) and delays that are known.

The solver and the FFT of examples/ run under a tuning whose rule changes nothing. A preloaded library makes the calls
by default (or the tuned ones) longer, such that a step by default takes 1.05, 1.2 or 0.9 times as long as a tuned one,
or does nothing. Ranks meet before and behind a delay, and in all other calls too, and they wait as MPI does, so that a
delay moves nothing else where ranks share cores. The truth is what the clock said of the delays: their mean times the
tuned calls. ``covered``: runs whose 95% interval of the seconds saved, by whole blocks, holds it; ``covered_in_calls``:
by the calls alone; ``no_difference``: of the runs without a delay. On MPICH and on Open MPI. Needs root, iproute2 and
gcc.

Writes bench/switchback.json and prints it. --minutes: how long at most, by library.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

from colltune.mpi.detect import find_mpi
from harness import mpiexec_of, options_of, write_figures
from on_cluster import namespace_cluster, require_namespaces

# Of a program: the collective, arguments for a run of seconds (steps last), its calls in a step.
PROGRAMS = {"solver": ("allreduce", ["1000"], 2), "fft_transpose": ("alltoall", ["64"], 4)}

from cluster_applications import Site, latest_gain  # noqa: E402

EFFECTS = (1.0, 1.2, 0.9, 1.05)
RUN_S = 4.0


@dataclass(frozen=True)
class Found:
    """A run: the true seconds, and what the line and the page say. ``bounds`` are None where nothing could be told."""

    mpi: str
    program: str
    effect: float
    truth_s: float
    saved_s: tuple[float, float | None, float | None]
    saved_in_calls_s: tuple[float, float | None, float | None]
    pairs: int
    elapsed_s: float

    def covers(self, interval: tuple[float, float | None, float | None]) -> bool:
        _, low, high = interval
        return (low is None or low <= self.truth_s) and (high is None or self.truth_s <= high)

    @property
    def is_sure(self) -> bool:
        _, low, high = self.saved_s
        return (low is not None and low > 0.0) or (high is not None and high < 0.0)


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--mpi", nargs="*", default=["mpich", "openmpi"])
    options = parser.parse_args()
    require_namespaces()
    found: list[Found] = []
    for mpi in options.mpi:
        until_s = time.monotonic() + 60.0 * options.minutes
        with tempfile.TemporaryDirectory() as name, namespace_cluster(Path(name) / "cluster", 4) as cluster:
            installation = find_mpi(str(mpiexec_of(mpi)), os.environ)
            site = Site.open(cluster, installation, Path(name) / "site", 2)
            for one in runs(site, mpi, until_s):
                found.append(one)
                print(one, flush=True)
                write_figures("switchback", figures(found), is_shown=False)
    write_figures("switchback-runs", [asdict(one) for one in found], is_shown=False)
    write_figures("switchback", figures(found))


def runs(site: Site, mpi: str, until_s: float) -> Iterator[Found]:
    """One run of each kind after the other, until the time is over."""
    step_s = {name: plain_step_s(site, name) for name in PROGRAMS}
    for number in count():
        for effect in EFFECTS:
            for name, (collective, _, _) in PROGRAMS.items():
                if time.monotonic() > until_s:
                    return
                # A tuning of its own: what one run finds slower is left out of the next ones.
                tuned = site.neutral(f"{name}-{effect}-{number}", collective)
                yield measured(site, mpi, name, tuned, effect, step_s[name])


def plain_step_s(site: Site, name: str) -> float:
    """Of a run that is long enough to see."""
    done = site.run(None, [], [str(site.program(name)), *PROGRAMS[name][1], "200"])
    assert done.returncode == 0, done.stderr
    return float(done.stdout.split("step_s ")[1].split()[0])


def measured(site: Site, mpi: str, name: str, tuned: Path, effect: float, step_s: float) -> Found:
    _, arguments, calls = PROGRAMS[name]
    steps = max(round(RUN_S / (step_s * 1.1)), 50)
    slow = "" if effect == 1.0 else "default" if effect > 1.0 else "tuned"
    delay_s = step_s / calls * (effect - 1.0 if effect > 1.0 else 1.0 / effect - 1.0)
    command = [str(site.program(name)), *arguments, str(steps)]
    done = site.run(tuned, ["--measure=50%"], command, slow=slow, slow_us=1e6 * delay_s)
    assert done.returncode == 0, done.stdout + done.stderr
    gain = latest_gain(tuned)
    (cell,) = gain["cells"]
    truth_s = 0.0
    if slow:
        told = re.search(r"delayed_ns (-?\d+)", done.stdout)
        assert told is not None, done.stdout
        truth_s = 1e-9 * int(told.group(1)) * cell["tuned_calls"] * (1.0 if slow == "default" else -1.0)
    ends = [
        tuple(gain[what].get(end) for end in ("estimate", "low", "high")) for what in ("saved_s", "saved_in_calls_s")
    ]
    return Found(mpi, name, effect, truth_s, ends[0], ends[1], cell["pairs"], gain["elapsed_s"])


def figures(found: list[Found]) -> dict[str, int]:
    made: defaultdict[str, int] = defaultdict(int)
    for one in found:
        if one.effect == 1.0:
            made["equal_runs"] += 1
            made["no_difference"] += not one.is_sure
            continue
        for key in ("", f"_{one.effect:.2f}", f"_{one.mpi}"):
            made[f"runs{key}"] += 1
            made[f"covered{key}"] += one.covers(one.saved_s)
            made[f"covered_in_calls{key}"] += one.covers(one.saved_in_calls_s)
        made["sure_of_the_wrong_sign"] += one.is_sure and one.saved_s[0] * one.truth_s < 0.0
        made["sure_of_the_right_sign"] += one.is_sure and one.saved_s[0] * one.truth_s > 0.0
    return dict(made)


if __name__ == "__main__":
    main()
