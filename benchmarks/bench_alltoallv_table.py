"""What the all-to-all's table must know of the network, what its search saves, and what programs gain on 1,024 ranks.

    python benchmarks/bench_alltoallv_table.py [--parts topology,placement,search,programs]

All on our simulated clusters. Prints the figures and keeps them in bench/alltoallv_table.json.

- topology: how much slower a network is with the settings that are fastest on another one: the three of the recorded
  tables, which differ in their links and cards too; and the three kinds of routes with the fat tree's.
- placement: the same of a job on nodes side by side, and on every fifth node of a network five times as large.
- search: what `tune alltoallv` measures of all radices and batches of two jobs of 64 ranks, and what its choices lose
  against those by a sweep over all of them, both with noise.
- programs: seconds of examples/ on 64 x 16 of the fat tree, by the library's own and by a table that was tuned and
  proven there, in force from the second call on.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from statistics import geometric_mean, median

from alltoallv_parts import AVERAGES, LAUNCH_S, WHOLE, SimulatedPatterns, bench_of, explored, nothing
from alltoallv_simulators import (
    NETWORKS,
    Pattern,
    Timing,
    compile_cluster,
    compile_program,
    simulate_own,
    simulate_program,
)
from colltune.alltoallv.launches import AlltoallvOptions
from colltune.alltoallv.lookup_table import (
    FIRST_CALL,
    Setting,
    Shape,
    candidates,
    choice_of,
    load_table,
    neighbours,
    save_table,
)
from colltune.alltoallv.tune_table import tune_alltoallv
from colltune.core.sample import DEFAULT, Scenario
from harness import ROOT, options_of, write_figures
from make_alltoallv_table import TABLES, TRAINING, exhaustive
from make_alltoallv_table import load_table as load_times

MATTERS = 1.05
ROUTED_SIZES = (8, 128, 1024)  # bytes of the largest block
NOISES = range(3)
# Program of examples/, its words. Blocks of a few bytes to some dozens, which is what graphs have on so many ranks.
PROGRAMS = (("k_core", "rmat", "131072"), ("path_finding", "random", "16000"))
# The average blocks and classes of fill that these have, as `--profile` would say.
PROGRAMS_AVERAGES, PROGRAMS_FILLS = (16, 64, 256), (2, 3)

Figures = dict[str, float]
Times = dict[tuple[Shape, Pattern], dict[Setting, float]]


def recorded() -> dict[str, Times]:
    return {network: times(load_times(TABLES[network])) for network in NETWORKS}


def topology() -> Figures:
    known = recorded()
    routes = {NETWORKS[0]: known[NETWORKS[0]], **{name: swept(f"{name},{NETWORKS[0]}") for name in NETWORKS[1:]}}
    return losses("recorded", known) | losses("routes", routes)


def placement() -> Figures:
    figures: Figures = {}
    for network, near in recorded().items():
        figures |= losses(network, {"near": near, "apart": swept(f"{network},{network},5")})
    return figures


def times(timings: Iterable[Timing]) -> Times:
    """Of uniform blocks, in seconds."""
    known: Times = {}
    for timing in timings:
        if timing.pattern.distribution == "uniform":
            known.setdefault((timing.shape, timing.pattern), {})[timing.setting] = timing.time_s
    return known


def swept(network: str) -> Times:
    """The grid on 512 ranks, without spread-out in batches, which takes longest to simulate and is fastest nowhere."""
    shape = TRAINING[1]
    settings = [setting for setting in exhaustive(shape) if setting.algorithm != "linear" or setting.batch == 0]
    asked = [(setting, Pattern("uniform", size)) for size in ROUTED_SIZES for setting in settings]
    with tempfile.TemporaryDirectory() as name:
        return times(simulate_own(compile_cluster(Path(name)), shape, asked, network=network))


def losses(name: str, known: Mapping[str, Times]) -> Figures:
    """The time by the setting that is fastest there over that by the fastest here, of each two; the worst of all."""
    ratios = []
    for here, there in permutations(known, 2):
        mine = []
        for point in known[here].keys() & known[there].keys():
            both = known[here][point].keys() & known[there][point].keys()
            chosen = min(both, key=lambda setting: known[there][point][setting])
            mine.append(known[here][point][chosen] / min(known[here][point][setting] for setting in both))
        print(f"{name}: {here} by {there}: {geometric_mean(mine):.3f}, worst {max(mine):.3f} of {len(mine)} points")
        ratios += mine
    return {
        f"topology_{name}_points": float(len(ratios)),
        f"topology_{name}_loss": geometric_mean(ratios),
        f"topology_{name}_worst": max(ratios),
        f"topology_{name}_share_over_5_percent": sum(ratio > MATTERS for ratio in ratios) / len(ratios),
    }


def every_setting(shape: Shape) -> list[Setting]:
    """All radices up to the ranks that forward, with batches up to 4 steps of ParAta and all nodes of HieAta."""
    whole = [*candidates(shape)]
    whole += [Setting("parata", radix, batch) for radix in range(2, shape.ranks - 1) for batch in range(5)]
    whole += [Setting("hieata", radix, batch) for radix in range(2, shape.ppn + 1) for batch in range(shape.nodes)]
    return list(dict.fromkeys(whole))


def search() -> Figures:
    measured, lost, swept_lost, clock = [], [], [], []
    with tempfile.TemporaryDirectory() as name:
        program = compile_cluster(Path(name))
        for shape in (Shape(8, 8), Shape(4, 16)):
            bench = SimulatedPatterns(program, {}, shape.nodes, shape.ppn, keep=False)
            scenarios = [Scenario("alltoallv", shape.nodes, shape.ppn, size) for size in AVERAGES]
            choices = [choice_of(setting) for setting in every_setting(shape)]
            best_s = {scenario: min(bench.times_s(scenario, choices)) for scenario in scenarios}
            for seed in NOISES:
                found = {}
                for tried in ((candidates, neighbours), (every_setting, nothing)):
                    began_s = bench.now_s() + LAUNCH_S
                    outcome, decided = explored(bench, [shape], tried, 1e6, seed)
                    pairs = len({(sample.scenario, sample.choice) for sample in outcome.samples})
                    ratios = [
                        bench.times_s(one, [decided.choices.get(one, DEFAULT)])[0] / best_s[one] for one in scenarios
                    ]
                    found[tried[0]] = pairs, geometric_mean(ratios), bench.now_s() - began_s
                (some, loss, some_s), (whole, whole_loss, whole_s) = found[candidates], found[every_setting]
                print(f"search {shape}: {some} of {whole} measured in {some_s:.1f} of {whole_s:.1f} s;", end=" ")
                print(f"over the fastest: {loss:.4f}, of a sweep {whole_loss:.4f}")
                measured.append(some / whole), clock.append(some_s / whole_s)
                lost.append(loss), swept_lost.append(whole_loss)
    return {
        "search_measured": median(measured),
        "search_clock": median(clock),
        "search_loss": geometric_mean(lost) - 1.0,
        "search_loss_worst": max(lost) - 1.0,
        "sweep_loss": geometric_mean(swept_lost) - 1.0,
    }


def programs() -> Figures:
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        table = tuned_table(place)
        for program, *words in PROGRAMS:
            built = compile_program(place, ROOT / "examples" / f"{program}.c")
            runs = {}
            for way, rules in (("default", None), ("tuned", table)):
                answer, seconds = simulate_program(built, WHOLE, NETWORKS[0], words, rules).splitlines()[:2]
                print(f"{program} {' '.join(words)} {way}: {answer}; {seconds}", flush=True)
                runs[way] = answer, dict(zip(seconds.split()[::2], map(float, seconds.split()[1::2]), strict=True))
            assert runs["default"][0] == runs["tuned"][0], f"{program} does not find the same"
            base, after = runs["default"][1], runs["tuned"][1]
            figures |= {
                f"{program}_default_s": base["total_s"],
                f"{program}_tuned_s": after["total_s"],
                f"{program}_speedup": base["total_s"] / after["total_s"],
                f"{program}_alltoallv_share": base["alltoallv_s"] / base["total_s"],
            }
    return figures


def tuned_table(place: Path) -> Path:
    """The whole command on 64 x 16; what it takes to set up is not waited for, as if the program called for hours."""
    bench = bench_of(compile_cluster(place))
    options = AlltoallvOptions(
        PROGRAMS_AVERAGES, 1200.0, parts=[WHOLE], settings=bench.settings, nearby=nothing, fills=PROGRAMS_FILLS
    )
    result = tune_alltoallv(bench, bench.launch, options, place, stage=print, note=print)
    save_table(result.table, [replace(entry, first_call=FIRST_CALL) for entry in load_table(result.table)], {})
    print(result.table.read_text())
    return result.table


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--parts", default="topology,placement,search,programs")
    figures: Figures = {}
    for part in parser.parse_args().parts.split(","):
        figures |= {"topology": topology, "placement": placement, "search": search, "programs": programs}[part]()
    write_figures("alltoallv_table", {name: round(value, 4) for name, value in figures.items()})


if __name__ == "__main__":
    main()
