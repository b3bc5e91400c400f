"""What a whole campaign delivers, its proof included: captured headroom and harm, on recorded and simulated tables.

    python benchmarks/bench_delivery.py [--tables NAME ...] [--seeds N] [--budgets 60 300] [--noise 0.05 0.15 modes]
        [--weights ranks own]

Writes bench/delivery.json and prints it. Each campaign is `session.tune` on a machine that replays a table: a launch
takes 5 s, in each one every time is off by a factor of its own (5%; 15% for ``_noisy``), and all follow a drift (5%);
the noise of repetitions is as recorded. For ``_modes``, with four seeds at most, launches and rounds of ten calls have
the structure that was measured on a cluster (`colltune_study.recorded.launch_effects`) in place of that factor. Our own
computing is charged, in seconds of the processor, where it does not lie beside a measurement; ``thinking_share`` is the
mean of its share of the time.
``captured_5m``: the median over tables of the median over seeds of log(default / tuned) over log(default / best),
summed over every scenario of the table by its weight, the root of its ranks; with ``_own`` that in a job of its own
(half of all on the communicator of all ranks); ``harmed_share`` and ``harm_worst`` are the greatest of all
campaigns, ``overrun_worst`` too, and ``harmed_modes`` of those with modes. ``decided_share``: of the scenarios, those
that have a rule; ``rules_per_decided``: how many rules there are for each of them. ``false_region_share``: of the
regions of truly equal algorithms, what was kept; ``kept_bimodal_per_100``: of regions that are truly 1.25 times as
fast, where every algorithm is 1.38 times as slow in half of the launches, those that were kept. Needs no MPI.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np

from bench_gate import Machine
from colltune.core.sample import Choice, Scenario
from colltune.core.space import weights_by_ranks, weights_in_job
from colltune.prove.audit.claims import ProofTime, claims_of
from colltune_study.recorded.dataset import load_grids
from colltune_study.recorded.launch_effects import AS_MEASURED, NO_EFFECTS
from colltune_study.research.delivery import by_cluster, deliver
from colltune_study.simulated.drawn import Noise
from harness import options_of, write_figures

DATA = Path(__file__).parent / "data"
NOISY, MODES, MODES_SEEDS = 0.1, "modes", 4
WEIGHTS = {"ranks": weights_by_ranks, "own": weights_in_job}
# Of what a campaign delivered.
KEPT = ("captured", "harmed", "worst", "overrun", "thinking_s", "thinking_share", "rules", "decided", "scenarios")
TABLES = ("pico_lumi", "pico_leonardo", "simulated_fattree", "simulated_dragonfly_64x16")


def campaigns(
    tables: Iterable[str], budget_s: float, seeds: int, noise: str, weights: str = "ranks"
) -> dict[str, list[dict[str, float]]]:
    """By table, what each seed delivered."""
    effects, launch_sd = (AS_MEASURED, 0.0) if noise == MODES else (NO_EFFECTS, float(noise))
    found: dict[str, list[dict[str, float]]] = {}
    for name in tables:
        (path,) = (path for path in DATA.iterdir() if path.name.split(".")[0] == name)
        for table, grids in by_cluster(load_grids([path])).items():
            for seed in range(seeds):
                law = WEIGHTS[weights]
                one = deliver(
                    table, grids, budget_s, seed, launch_sd=launch_sd, charged=True, effects=effects, weights=law
                )
                figures = {key: getattr(one, key) for key in KEPT}
                found.setdefault(name, []).append(figures)
                told = {key: round(value, 3) for key, value in figures.items()}
                print(name, f"{budget_s:.0f} s, {noise}, seed {seed}:", told, flush=True)
    return found


def regions_kept(speedup: float, noise: Noise, regions: int, seed: int) -> float:
    """The share of regions, of four sizes each, that an audit keeps of choices that are truly so much faster."""
    sizes = [4 << step for step in range(4)]
    # One collective and choice for each region, so that none borrows from another what is drawn anew for each.
    decided = {
        Scenario("bcast", nodes, ppn, size): Choice(f"candidate(k={nodes * 1000 + ppn})")
        for nodes in range(2, 2 + regions // 10)
        for ppn in range(1, 11)
        for size in sizes
    }
    flat, costs_s = dict.fromkeys(decided, 1.0), dict.fromkeys(decided, 1e-3)
    claims = claims_of(decided, dict.fromkeys(decided, math.log(1.2)), flat, ProofTime(0.0, costs_s))  # none is cut
    machine = Machine(dict.fromkeys(decided, math.log(speedup)), noise, seed, launch_s=0.0)
    kept = {decision.choice for decision in machine.kept_of(claims, 1e-3, 1e4)}
    return len(kept) / len(set(decided.values()))


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--budgets", nargs="*", type=float, default=[60.0, 300.0])
    parser.add_argument("--noise", nargs="*", default=["0.05", "0.15", MODES])
    parser.add_argument("--weights", nargs="*", choices=sorted(WEIGHTS), default=["ranks"])
    asked = parser.parse_args()
    every: list[dict[str, float]] = []
    figures: dict[str, float] = {"seeds": asked.seeds, "tables": len(asked.tables)}
    for weights, noise, budget_s in product(asked.weights, asked.noise, asked.budgets):
        seeds = min(asked.seeds, MODES_SEEDS) if noise == MODES else asked.seeds
        found = campaigns(asked.tables, budget_s, seeds, noise, weights)
        each = {name: median(one["captured"] for one in runs) for name, runs in found.items()}
        kind = "_modes" if noise == MODES else "_noisy" if float(noise) > NOISY else ""
        named = f"captured_{budget_s / 60.0:g}m{kind}{'_own' if weights == 'own' else ''}"
        figures[named] = round(median(each.values()), 3)
        figures |= {f"{named}_{name}": round(value, 3) for name, value in each.items()}
        runs = [one for some in found.values() for one in some]
        rules, decided, scenarios = (sum(one[of] for one in runs) for of in ("rules", "decided", "scenarios"))
        figures[named.replace("captured", "rules_per_decided")] = round(rules / max(decided, 1.0), 3)
        figures[named.replace("captured", "decided_share")] = round(decided / scenarios, 3)
        if noise == MODES:
            figures["harmed_modes"] = max(figures.get("harmed_modes", 0.0), *(round(one["harmed"], 4) for one in runs))
        every += runs
    if every:
        figures |= {
            "harmed_share": round(max(one["harmed"] for one in every), 4),
            "harm_worst": round(max(one["worst"] for one in every), 3),
            "overrun_worst": round(max(one["overrun"] for one in every), 3),
            "thinking_share": round(float(np.mean([one["thinking_share"] for one in every])), 3),
            "thinking_s": round(float(np.mean([one["thinking_s"] for one in every])), 1),
        }
    bimodal = Noise(own_mode=1.38)
    equal = [regions_kept(1.0, noise, 200, seed) for noise in (Noise(), bimodal) for seed in range(3)]
    figures["false_region_share"] = round(float(np.mean(equal)), 4)
    figures["kept_bimodal_per_100"] = round(
        100.0 * float(np.mean([regions_kept(1.25, bimodal, 100, s) for s in range(3)])), 1
    )
    write_figures("delivery", figures)


if __name__ == "__main__":
    main()
