"""What `colltune predict` hands over, gains and loses on clusters that are left out, and how sure it is.

    python benchmarks/bench_predicted.py [--tables FILE ...] [--parts hardware,tunings,time] [--reuse] [--out bench]

One recorded cluster is left out at a time, also when hyperparameters are fitted and when the risk is chosen: the
greatest of RISKS at which the other clusters, each predicted without both, lose no more than is allowed. `--tables`
adds tables of further clusters, which are left out like the others.

``replaced_share``, ``gain_all``, ``lost_share``, ``lost_share_worst_table``: against the recorded defaults. Which
algorithm that is, as a library says of itself, is known where one of the library's took the same time within 2%;
elsewhere the default stays. With ``_any`` every choice that another cluster measured stands for the default in turn. A
replaced call is lost if it takes more than 3% longer; gains are geometric means over tables of equal weight, calls that
keep the default included. ``hardware_gain``: ``gain_all_any`` with constants and sources weighted by the hardware of
data/hardware.toml over the same without, with its 95% interval (bootstrap over tables). ``captured_*``: of what could
be gained over the recorded defaults, by the prediction and by whole tunings with their proof (launches of 1 s charged).
``seconds_32x64``: processor time of the command for four collectives, with all that it starts, the median of five.
Writes OUT/predicted.json, OUT/predicted_tables.json and OUT/predicted_reliability.png. Takes some minutes of a core.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory

import numpy as np

from colltune.core.sample import Choice, Scenario
from colltune.predict.cost import TERMS, kind_of
from colltune.predict.deviation import LOSS, probability_of_loss
from colltune.predict.guesses import MOST_PROBABLE, safest
from colltune.predict.model import TimesModel
from colltune.store.grid import Grid
from colltune_study.recorded.dataset import load_grids
from colltune_study.research.delivery import deliver
from colltune_study.research.reliability import draw_reliability, reliability
from colltune_study.training.constants import pooled
from colltune_study.training.learned_times import learn_times, times_of
from colltune_study.training.pair_kernel import amplitudes
from colltune_study.training.pair_kernel_fit import fit_pair_theta, studies_of
from colltune_study.training.train import FEWEST_SCENARIOS
from harness import options_of

DATA = Path(__file__).parent / "data"
PICO = ("pico_leonardo", "pico_lumi", "pico_marenostrum5")
MPI_ADVANCE = ("mpiadvance_dane", "mpiadvance_tuolumne")
RISKS = (0.05, 0.1, MOST_PROBABLE, 0.2, 0.3)
MOST_LOST, MOST_LOST_OF_TABLE = 0.01, 0.02
_OF_LIBRARY = re.compile(r"_(?:ompi|mpich)$")
_SAME = 0.02
Tables = dict[str, dict[str, Grid]]
Scaled = Callable[[str, Mapping[str, np.ndarray]], np.ndarray]


def grids_of(names: Sequence[str], fewest: int = FEWEST_SCENARIOS, more: Sequence[Path] = ()) -> Tables:
    """By collective and cluster."""
    found: Tables = {}
    for path in (*(DATA / f"{name}.csv.gz" for name in names), *more):
        for grid in load_grids([path], fewest):
            found.setdefault(grid.collective, {})[path.name.split(".")[0]] = grid
    return found


@dataclass(frozen=True)
class Compared:
    """One choice as the default of one scenario, and m others: mean and deviation (m,) of their log times over its own
    as predicted, and the recorded ones. ``inside``: whether the model is asked there.
    """

    mean: np.ndarray
    std: np.ndarray
    true: np.ndarray
    inside: bool = True

    @property
    def lost(self) -> np.ndarray:
        """(m,): whether each is slower by more than LOSS."""
        return self.true > np.log1p(LOSS)

    def chosen(self, risk: float) -> int | None:
        """The place of what replaces the default."""
        if not (self.inside and len(self.mean)):
            return None
        [place], [is_safe] = safest(self.mean, self.std, risk, np.zeros(len(self.mean)))
        return int(place) if is_safe else None


@dataclass(frozen=True)
class LeftOut:
    """A table of a cluster as others predict it. ``turns``: every choice in turn as the default. ``recorded``: the
    recorded defaults; None where it is not known which algorithm that was. ``headroom``: log of default over fastest,
    summed over scenarios.
    """

    turns: Sequence[Compared]
    recorded: Sequence[Compared | None]
    headroom: float


def left_out(grid: Grid, others: Mapping[str, Grid], theta: np.ndarray, scaled: Scaled | None = None) -> LeftOut | None:
    """None where the others have nothing to compare."""
    more = {} if scaled is None else {"scaled": scaled}
    own = learn_times({name: times_of(other) for name, other in others.items()}, grid.choices, **more)
    if own is None:
        return None
    model = TimesModel({grid.collective: own}, amplitudes(theta))
    inside = own.trained.holds(grid.scenarios).tolist()
    turns, recorded, headroom = [], [], 0.0
    for scenario, default_s, near in zip(grid.scenarios, grid.default_s, inside, strict=True):
        measured = {choice: grid.time(scenario, choice) for choice in grid.space.choices(scenario)}
        elsewhere = [choice for choice in measured if kind_of(grid.collective, choice) in own.column]
        is_known = own.knows([(scenario, choice) for choice in elsewhere])
        known = {choice: measured[choice] for choice in compress(elsewhere, is_known)}
        turns += compared(model, scenario, {choice: measured[choice] for choice in elsewhere}, known, near)
        if np.isfinite(default_s):
            headroom += max(0.0, float(np.log(default_s / min(measured.values()))))
            same = [
                choice
                for choice, time_s in measured.items()
                if _OF_LIBRARY.search(choice.algorithm) and abs(np.log(time_s / default_s)) <= _SAME
            ]
            base = {same[0]: default_s} if len(same) == 1 else {}
            recorded += compared(model, scenario, base, known, near) if base else [None]
    return LeftOut(turns, recorded, headroom)


def compared(
    model: TimesModel, scenario: Scenario, bases: Mapping[Choice, float], known: Mapping[Choice, float], near: bool
) -> list[Compared]:
    """Each of ``bases``, by its time, and all others that are ``known``; none where it is not."""
    groups = [(scenario, base, [one for one in known if one != base and base in known]) for base in bases]
    mean, std = model.against(scenario.collective, groups)
    true = np.log([known[choice] / bases[base] for _, base, others in groups for choice in others])
    ends = np.cumsum([len(others) for _, _, others in groups])[:-1]
    return [Compared(*own, near) for own in zip(*(np.split(each, ends) for each in (mean, std, true)), strict=True)]


def handed_over(every: Sequence[Compared | None], risk: float) -> dict[str, float]:
    """What would replace each default at ``risk``: how often, how often at a loss, and the log time that is gained."""
    found = [(one, place) for one in every if one is not None and (place := one.chosen(risk)) is not None]
    return {
        "defaults": float(len(every)),
        "replaced": float(len(found)),
        "lost": float(sum(one.lost[place] for one, place in found)),
        "gain": -float(sum(one.true[place] for one, place in found)),
    }


def said_and_lost(turns: Sequence[Compared]) -> tuple[np.ndarray, np.ndarray]:
    """(n,): how probable a loss is of each choice in place of each default, and whether it loses."""
    said = np.concatenate([probability_of_loss(one.mean, one.std) for one in turns])
    return said, np.concatenate([one.lost for one in turns])


def shares(rows: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    made = sum(row["replaced"] for row in rows.values())
    return {
        "replaced_share": made / max(sum(row["defaults"] for row in rows.values()), 1.0),
        "gain_all": float(np.exp(np.mean([row["gain"] / max(row["defaults"], 1.0) for row in rows.values()]))),
        "lost_share": sum(row["lost"] for row in rows.values()) / max(made, 1.0),
        "lost_share_worst_table": max((row["lost"] / max(row["replaced"], 1.0) for row in rows.values()), default=0.0),
    }


def cases(tables: Tables, cluster: str, without: str = "") -> Iterator[tuple[str, Grid, dict[str, Grid]]]:
    """Name and table of each collective of ``cluster``, and those of the other clusters but ``without``."""
    for collective, by_cluster in sorted(tables.items()):
        others = {name: grid for name, grid in by_cluster.items() if name not in (cluster, without)}
        if cluster in by_cluster and others:
            yield f"{cluster}/{collective}", by_cluster[cluster], others


def predicted(
    tables: Tables, cluster: str, theta: np.ndarray, without: str = "", scaled: Scaled | None = None
) -> dict[str, LeftOut]:
    found = {name: left_out(grid, some, theta, scaled) for name, grid, some in cases(tables, cluster, without)}
    return {name: one for name, one in found.items() if one is not None}


def risk_of(tables: Tables, cluster: str, clusters: Sequence[str], theta: np.ndarray) -> float:
    """The greatest of RISKS at which the clusters beside ``cluster`` lose no more than is allowed."""
    others = [other for other in clusters if other != cluster]
    every = {name: one for other in others for name, one in predicted(tables, other, theta, cluster).items()}
    allowed = [RISKS[0]]
    for risk in RISKS:
        found = shares({name: handed_over(one.turns, risk) for name, one in every.items()})
        if found["lost_share"] > MOST_LOST or found["lost_share_worst_table"] > MOST_LOST_OF_TABLE:
            break
        allowed.append(risk)
    return allowed[-1]


def fitted(tables: Tables, clusters: Sequence[str], out: Path, *, reuse: bool) -> dict[str, np.ndarray]:
    """By cluster, hyperparameters fitted to the tables of all others; kept in ``out``, read with ``reuse``."""
    kept = out / "predicted_theta.json"
    if reuse and kept.exists():
        return {name: np.array(own) for name, own in json.loads(kept.read_text()).items()}
    theta = {}
    for cluster in clusters:
        rest = {
            collective: {name: times_of(grid) for name, grid in by_cluster.items() if name != cluster}
            for collective, by_cluster in tables.items()
        }
        theta[cluster] = fit_pair_theta(studies_of(rest))
    kept.write_text(json.dumps({name: own.tolist() for name, own in theta.items()}) + "\n")
    return theta


def by_hardware(
    nodes: Mapping[str, Mapping[str, float]], target: str, name: str, fitted_to: Mapping[str, np.ndarray]
) -> np.ndarray:
    """The constants of cluster ``name`` ("": of ``target``) from those of the others, scaled by what their hardware
    does in a second, those nearest in link, memory and cache counting most.
    """
    wanted = name or target
    traits = {one: _traits(nodes[one]) for one in (*fitted_to, wanted)}
    apart = {one: float(((traits[one] - traits[wanted]) ** 2).mean()) for one in fitted_to}
    weight = {one: np.exp(-apart[one] / 8.0) for one in fitted_to}
    most = max(weight.values())
    speeds = {one: _speeds(nodes[one]) for one in traits}
    some = [fitted_to[one] * speeds[one] for one in fitted_to for _ in range(max(1, round(4 * weight[one] / most)))]
    return pooled(some) / speeds[wanted]


_LATENCY_US = {"infiniband": 1.2, "omni-path": 1.1, "slingshot": 2.0}


def _traits(node: Mapping[str, float]) -> np.ndarray:
    per_core = [node["memory_gbytes"] / node["cores"], node["l3_mib"] / node["cores"]]
    return np.log2([node["link_gbits"] * node["links"], _LATENCY_US[node["fabric"]], *per_core])


def _speeds(node: Mapping[str, float]) -> np.ndarray:
    latency, memory = 1.0 / _LATENCY_US[node["fabric"]], node["memory_gbytes"] / node["cores"]
    by_term = dict.fromkeys(TERMS, latency) | {"call": 1.0, "local_rounds": 1.0}
    by_term |= dict.fromkeys(("local_bytes", "reduced_bytes", "copied_bytes"), memory)
    by_term["rank_network_bytes"] = node["link_gbits"]
    by_term |= dict.fromkeys(("node_bytes", "far_bytes"), node["link_gbits"] * node["links"])
    return np.array([by_term[term] for term in TERMS])


def hardware_part(
    tables: Tables, theta: Mapping[str, np.ndarray], plain: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
    """Gains at the default risk with the hardware, over those without it: ``plain``, by table."""
    nodes = tomllib.loads((DATA / "hardware.toml").read_text())
    gains = []
    for cluster in (name for name in theta if name in nodes):
        known = {c: {n: g for n, g in by.items() if n in nodes} for c, by in tables.items()}
        with_it = predicted(known, cluster, theta[cluster], scaled=partial(by_hardware, nodes, cluster))
        for name, one in with_it.items():
            row = handed_over(one.turns, MOST_PROBABLE)
            gains.append((row["gain"] - plain[name]["gain"]) / max(row["defaults"], 1.0))
    drawn = np.random.default_rng(0).choice(gains, (4000, len(gains))).mean(axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    values = {"": fmean(gains), "_low": low, "_high": high}
    return {f"hardware_gain{end}": float(np.exp(value)) for end, value in values.items()}


def tunings_part(tables: Tables, gained: Mapping[str, float], headroom: Mapping[str, float]) -> dict[str, float]:
    """Of the headroom of each cluster's recorded defaults, what is captured without measuring and by whole tunings."""
    found: dict[str, list[float]] = {"captured_predict": [], "captured_tune_10s": [], "captured_tune_30s": []}
    for cluster in sorted(gained):
        grids = [by[cluster] for by in tables.values() if cluster in by and np.isfinite(by[cluster].default_s).any()]
        found["captured_predict"].append(gained[cluster] / headroom[cluster])
        for budget_s in (10.0, 30.0):
            done = deliver(cluster, grids, budget_s, 0, launch_s=1.0, weights=lambda _n, _p: lambda _scenario: 1.0)
            found[f"captured_tune_{budget_s:.0f}s"].append(done.captured)
    return {name: fmean(values) for name, values in found.items()}


def time_part() -> dict[str, float]:
    """Processor time of `colltune predict` for 32 x 64 ranks, and what it starts: the median, in seconds.

    The modules are compiled, as in an installation, after the first run.
    """
    found = []
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    names = ("allgather", "allreduce", "alltoall", "reduce_scatter")
    with TemporaryDirectory(prefix="colltune-") as place:
        environment |= {"OMP_NUM_THREADS": "1", "PYTHONPYCACHEPREFIX": place}
        command = [sys.executable, "-m", "colltune", "predict", *names, "--nodes", "32", "--ppn", "64", "--out"]
        for number in range(5):
            before, out = os.times(), f"{place}/tuned-{number}"
            subprocess.run([*command, out], check=True, stdout=subprocess.DEVNULL, env=environment)
            after = os.times()
            spent = after.children_user - before.children_user, after.children_system - before.children_system
            found.append(sum(spent))
    return {"seconds_32x64": median(found)}


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--tables", nargs="*", type=Path, default=[], help="further clusters, left out like the others")
    parser.add_argument("--parts", default="hardware,tunings,time", help="beside what is handed over")
    parser.add_argument("--reuse", action="store_true", help="take the hyperparameters of an earlier run, in OUT")
    parser.add_argument("--out", type=Path, default=Path("bench"))
    options = parser.parse_args()
    options.out.mkdir(exist_ok=True)
    tables = grids_of((*PICO, *MPI_ADVANCE), more=options.tables)
    clusters = sorted({name for by_cluster in tables.values() for name in by_cluster})
    theta = fitted(tables, clusters, options.out, reuse=options.reuse)
    risks = {cluster: risk_of(tables, cluster, clusters, theta[cluster]) for cluster in clusters}
    every = {cluster: predicted(tables, cluster, theta[cluster]) for cluster in clusters}
    one_of = {name: (cluster, one) for cluster, some in every.items() for name, one in some.items()}
    recorded = {name: handed_over(one.recorded, risks[cluster]) for name, (cluster, one) in one_of.items()}
    in_turn = {name: handed_over(one.turns, risks[cluster]) for name, (cluster, one) in one_of.items()}
    figures = shares({name: row for name, row in recorded.items() if row["defaults"]})
    figures |= {f"{name}_any": value for name, value in shares(in_turn).items()}
    figures |= {"risk": MOST_PROBABLE, "risk_least": min(risks.values()), "risk_most": max(risks.values())}
    by_risk = {risk: {name: handed_over(one.turns, risk) for name, (_, one) in one_of.items()} for risk in RISKS}
    for risk, rows in by_risk.items():
        figures |= {f"{name}_any_at_{risk:g}": value for name, value in shares(rows).items()}
    parts = options.parts.split(",")
    if "hardware" in parts:
        figures |= hardware_part(tables, theta, by_risk[MOST_PROBABLE])
    if "tunings" in parts:
        sums = {c: sum(recorded[name]["gain"] for name in every[c]) for c in clusters if every[c]}
        headroom = {cluster: sum(one.headroom for one in every[cluster].values()) for cluster in sums}
        figures |= tunings_part({k: by for k, by in tables.items() if len(by) > 1}, sums, headroom)
    if "time" in parts:
        figures |= time_part()
    bins = reliability({name: said_and_lost(one.turns) for name, (_, one) in one_of.items()})
    draw_reliability(bins, f"a loss of more than {LOSS:.0%}", options.out / "predicted_reliability.png")
    rounded = {name: round(float(value), 4) for name, value in figures.items()}
    (options.out / "predicted.json").write_text(json.dumps(rounded, indent=2) + "\n")
    kept = {"risk": risks, "recorded": recorded, "in_turn": in_turn, "reliability": bins}
    (options.out / "predicted_tables.json").write_text(json.dumps(kept, indent=1) + "\n")
    print(json.dumps(kept, indent=1))
    print(json.dumps(rounded, indent=2))


if __name__ == "__main__":
    main()
