"""How often the proof is wrong: the audit that `tune` runs, on simulated launches whose true times are known.

Writes bench/gate.json and prints it. Needs no MPI. A trial is a region of 12 scenarios; a file has 24 of them, and the
campaign expected 5% more of each than there is, give or take 5%. Times have heavy tails, drift, and launches of which
some are 1.38 times slower; in rows that end in ``_modes`` each algorithm, for itself, is 1.38 times as slow in half of
its launches; in rows that end in ``_launches`` launches and rounds of calls have the structure that was measured on a
cluster (`colltune_study.recorded.launch_effects`), beside heavy tails and drift. Rows:

``equal``: no region gains anything on average. ``threshold``: every scenario gains 1.03, which is not enough.
``half``: every second region gains 1.25, the others nothing, so that less evidence is asked of each.
``tenth``, ``quarter``: every region gains 1.10, or 1.25.

Of each row, ``_wrong``: kept regions that do not gain more than 1.03 on average over the scenarios that have the rule,
per 100 regions that do not; ``_wrong_at_most``: its upper 95% bound (Clopper and Pearson, regions taken as
independent). ``_false``: the same per 100 kept regions. ``_kept``: of the scenarios of regions that gain more, per 100,
those that have the rule. ``_bound_missed``: per 100 kept regions, those whose lower bound is above what they gain.
``_harmed``: per 100 scenarios, those that a rule makes slower by more than 3%; ``_files_harmed``: per 100 files, those
in which these are more than 2%. ``_launches``: of a file, the mean.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from statistics import fmean

import numpy as np
from scipy.stats import beta

from colltune.core.judged_together import judged_regions
from colltune.core.proven import THRESHOLD, Decision, Verdict
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario
from colltune.core.space import Point
from colltune.measure.contract import Effort
from colltune.prove.audit.audit import EFFORT, Audit
from colltune.prove.audit.claims import Claim
from colltune.prove.audit.harm import HARMED_SHARE, SLOWER
from colltune_study.recorded.launch_effects import AS_MEASURED
from colltune_study.simulated.drawn import Noise, SimulatedSource
from harness import options_of, write_figures

ENVIRONMENT = Environment("mpich", "5.0.2", "0" * 64, "simulated", 8, 2, "single")
NOISE, MODES = Noise(), Noise(own_mode=1.38)
LAUNCHES = Noise(launch_mode=1.0, own_mode=1.0, effects=AS_MEASURED)
NAMES = ("allgather", "allreduce", "alltoall", "bcast", "reduce", "reduce_scatter")
# Regions of a collective in a file, and what a region spans.
BANDS, NODES, SIZES = 4, (2, 4, 8), 4
REGIONS = len(NAMES) * BANDS
DEFAULT_S, LAUNCH_S, BUDGET_S = 2e-5, 1.0, 60.0
# What a campaign expects too much, and how far that is off.
TOO_MUCH, OFF = 0.05, 0.05


@dataclass(frozen=True)
class Row:
    """``speedups``: those of the regions, in turn. ``uneven``: how far log speed-ups in a region differ.

    ``part``: of the regions that are asked for, how many are tried.
    """

    speedups: tuple[float, ...]
    uneven: float = 0.03
    part: float = 1.0


ROWS = {
    "equal": Row((1.0,)),
    "threshold": Row((THRESHOLD,), uneven=0.0, part=0.25),
    "half": Row((1.25, 1.0)),
    "tenth": Row((1.10,), part=0.1),
    "quarter": Row((1.25,), part=0.1),
}
Gains = Mapping[Scenario, float]


class Machine:
    """Fresh simulated launches, and the clock that they and their measurements move on."""

    def __init__(self, gains: Gains, noise: Noise, seed: int, launch_s: float = LAUNCH_S) -> None:
        self.gains, self.noise, self.seed, self.launch_s = gains, noise, seed, launch_s
        self.now_s, self.launches = 0.0, 0

    def open(self) -> SimulatedSource:
        self.launches += 1
        self.now_s += self.launch_s
        machine = self

        class Timed(SimulatedSource):
            def measure(self, points: Iterable[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
                for point, samples in super().measure(points, effort):
                    machine.now_s += sum(sample.cost_s for sample in samples)
                    yield point, samples

        return Timed(ENVIRONMENT, self.truth, self.seed, self.launches, self.noise)

    def truth(self, scenario: Scenario, choice: Choice) -> float:
        return DEFAULT_S if choice == DEFAULT else DEFAULT_S * math.exp(-self.gains[scenario])

    def kept_of(self, claims: Sequence[Claim], cost_s: float, budget_s: float) -> list[Decision]:
        """What the audit keeps of ``claims``, where a call costs ``cost_s``."""
        audit = Audit(
            claims=claims,
            open_source=self.open,
            record=lambda _samples: None,
            baseline=lambda _scenario: DEFAULT,
            cost_s=lambda _scenario: cost_s,
            total_weight=float(len(self.gains)),
            threshold=THRESHOLD,
            launch_s=self.launch_s,
            seed=self.seed,
            clock=lambda: self.now_s,
        )
        return [one for one in audit.run(budget_s) if one.verdict is Verdict.KEPT]


def regions_of_a_file(row: Row, random: np.random.Generator) -> tuple[list[Claim], dict[Scenario, float]]:
    """The claims of a file, and the true log speed-up of each of their scenarios."""
    claims, gains = [], {}
    for number in range(REGIONS):
        name, band = NAMES[number % len(NAMES)], number // len(NAMES)
        sizes = [4 << (SIZES * band + step) for step in range(SIZES)]
        scenarios = tuple(Scenario(name, nodes, 2, size) for nodes in NODES for size in sizes)
        uneven = random.normal(0.0, 1.0, len(scenarios)) * row.uneven
        truth = math.log(row.speedups[number % len(row.speedups)]) + uneven - uneven.mean()
        gains |= dict(zip(scenarios, truth.tolist(), strict=True))
        expected = np.maximum(truth + random.normal(TOO_MUCH, OFF), 0.04)
        # Neighbouring regions of one collective differ in their choice, as they do in a table.
        choice = Choice("ring" if band % 2 else "tree")
        claims.append(Claim(choice, scenarios, tuple(expected.tolist()), (1.0,) * len(scenarios)))
    return claims, gains


def judge_file(row: Row, noise: Noise, seed: int) -> Counter[str]:
    """What the audit says of one file, counted."""
    claims, gains = regions_of_a_file(row, np.random.default_rng(seed))
    machine = Machine(gains, noise, seed)
    kept = machine.kept_of(claims, 2.0 * EFFORT.expected_cost_s(DEFAULT_S), BUDGET_S)
    counts: Counter[str] = Counter(files=1, launches=machine.launches, scenarios=len(gains))
    for number, claim in enumerate(claims):
        is_null = row.speedups[number % len(row.speedups)] <= THRESHOLD
        counts["null" if is_null else "gaining"] += 1
        counts["kept_scenarios"] += 0 if is_null else sum(one.scenario in claim.rows for one in kept)
    for region in judged_regions(kept):  # parts that were cut out of a region are regions of their own
        true = fmean(gains[scenario] for scenario in region.scenarios)
        counts["kept"] += 1
        counts["wrong"] += true < math.log(THRESHOLD) + 1e-9
        counts["bound_missed"] += region.speedup.low > math.exp(true)
    slower = sum(gains[one.scenario] < -math.log(SLOWER) for one in kept)
    return counts + Counter(harmed=slower, files_harmed=int(slower > HARMED_SHARE * len(gains)))


def figures_of(name: str, counts: Mapping[str, int]) -> dict[str, float]:
    """``counts`` as shares, per 100."""
    regions = counts["null"] + counts["gaining"]
    found: dict[str, float] = {"regions": regions, "launches": counts["launches"] / counts["files"]}
    if counts["null"]:
        wrong, trials = min(counts["wrong"], counts["null"] - 1), counts["null"]
        found["wrong"] = 100.0 * counts["wrong"] / trials
        found["wrong_at_most"] = 100.0 * float(beta.ppf(0.95, wrong + 1, trials - wrong))
    if counts["gaining"]:
        found["kept"] = 100.0 * counts["kept_scenarios"] / (counts["gaining"] * len(NODES) * SIZES)
        found["false"] = 100.0 * counts["wrong"] / max(counts["kept"], 1)
        found["bound_missed"] = 100.0 * counts["bound_missed"] / max(counts["kept"], 1)
    found["harmed"] = 100.0 * counts["harmed"] / counts["scenarios"]
    found["files_harmed"] = 100.0 * counts["files_harmed"] / counts["files"]
    return {f"{name}_{figure}": round(value, 3) for figure, value in found.items()}


def main(regions: int = 10_000) -> None:
    figures: dict[str, float] = {}
    for mode, (suffix, noise) in enumerate((("", NOISE), ("_modes", MODES), ("_launches", LAUNCHES))):
        for place, (name, row) in enumerate(ROWS.items()):
            seeds = count(10_000_000 * mode + 1_000_000 * place)
            files = math.ceil(row.part * regions / REGIONS)
            counts = sum((judge_file(row, noise, seed) for seed in islice(seeds, files)), Counter())
            figures |= figures_of(name + suffix, counts)
            print(f"{name}{suffix}: {files} files", file=sys.stderr, flush=True)
    write_figures("gate", figures)


if __name__ == "__main__":
    parser = options_of(__doc__)
    parser.add_argument("--regions", type=int, default=10_000, help="of each row")
    main(parser.parse_args().regions)
