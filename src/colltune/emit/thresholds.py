"""MPICH by thresholds: the cross-over sizes of MPICH 3, which choose between two or three algorithms in a fixed order.

The model is that of MPICH 3's decision code (and of "Auto-tuning MPI Collective Operations on Large-Scale Parallel
Systems", table I, for whose eight collectives it is given). A library takes one pair of them, whatever the number of
ranks; that paper gives each number of processes its own (section V), and so does a file of one shape here. The best
pair is found exactly: the side of a threshold on which a measured call lies changes only at the measured sizes, so one
value below each of them and one above all cover all cases.

MPICH 3.0 to 3.3 read them, Cray MPICH under names of its own. MPICH 3.4 and later do not: they decide by a selection
file.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from colltune.core.errors import InputError
from colltune.core.sample import PER_BLOCK, Choice, Scenario
from colltune.core.units import format_size

_LARGEST = 2**31 - 1
_ELEMENT_BYTES = 4


@dataclass(frozen=True)
class ThresholdModel:
    """How one collective decides.

    ``variables``: names without MPIR_CVAR_, in the order of the arguments of ``decide``; ``defaults``: their values.
    ``cray``: Cray MPICH's names of the same thresholds, "" where it has none. ``decide``: the algorithm for a scenario
    under values of the thresholds. ``remark``: why there is nothing to decide, or None.
    """

    variables: tuple[str, ...]
    defaults: tuple[int, ...]
    cray: tuple[str, ...]
    decide: Callable[[Scenario, Sequence[int]], str]
    remark: str | None = None


def _bytes(scenario: Scenario) -> int:
    """The size that the thresholds compare, in bytes: a block of alltoall, all blocks of allgather, else the vector."""
    total = scenario.collective in PER_BLOCK and scenario.collective != "alltoall"
    return scenario.size_bytes * (scenario.ranks if total else 1)


def _power_of_two(scenario: Scenario) -> bool:
    return scenario.ranks & (scenario.ranks - 1) == 0


def _fills(scenario: Scenario) -> bool:
    """Whether there are at least as many elements as the largest power of two up to the number of ranks."""
    return scenario.size_bytes // _ELEMENT_BYTES >= 1 << (scenario.ranks.bit_length() - 1)


def _alltoall(scenario: Scenario, values: Sequence[int]) -> str:
    if _bytes(scenario) <= values[0] and scenario.ranks >= 8:
        return "brucks"
    return "scattered" if _bytes(scenario) <= values[1] else "pairwise"


def _allgather(scenario: Scenario, values: Sequence[int]) -> str:
    if _bytes(scenario) < values[1] and _power_of_two(scenario):
        return "recursive_doubling"
    return "brucks" if _bytes(scenario) < values[0] else "ring"


def _allreduce(scenario: Scenario, values: Sequence[int]) -> str:
    short = _bytes(scenario) <= values[0] or not _fills(scenario)
    return "recursive_doubling" if short else "reduce_scatter_allgather"


def _bcast(scenario: Scenario, values: Sequence[int]) -> str:
    if _bytes(scenario) < values[0] or scenario.ranks < 8:
        return "binomial"
    if _bytes(scenario) < values[1] and _power_of_two(scenario):
        return "scatter_recursive_doubling_allgather"
    return "scatter_ring_allgather"


def _reduce(scenario: Scenario, values: Sequence[int]) -> str:
    return "reduce_scatter_gather" if _bytes(scenario) > values[0] and _fills(scenario) else "binomial"


def _reduce_scatter(scenario: Scenario, values: Sequence[int]) -> str:
    return "recursive_halving" if _bytes(scenario) < values[0] else "pairwise"


def _binomial(_scenario: Scenario, _values: Sequence[int]) -> str:
    return "binomial"


_INTER = "the threshold is for communicators between two groups; inside one there is the binomial tree alone"
MODELS: Mapping[str, ThresholdModel] = {
    "alltoall": ThresholdModel(
        ("ALLTOALL_SHORT_MSG_SIZE", "ALLTOALL_MEDIUM_MSG_SIZE"),
        (256, 32768),
        ("MPICH_ALLTOALL_SHORT_MSG", ""),
        _alltoall,
    ),
    "allgather": ThresholdModel(
        ("ALLGATHER_SHORT_MSG_SIZE", "ALLGATHER_LONG_MSG_SIZE"), (81920, 524288), ("", ""), _allgather
    ),
    "allreduce": ThresholdModel(("ALLREDUCE_SHORT_MSG_SIZE",), (2048,), ("",), _allreduce),
    "bcast": ThresholdModel(("BCAST_SHORT_MSG_SIZE", "BCAST_LONG_MSG_SIZE"), (12288, 524288), ("", ""), _bcast),
    "reduce": ThresholdModel(("REDUCE_SHORT_MSG_SIZE",), (2048,), ("MPICH_REDUCE_SHORT_MSG",), _reduce),
    "reduce_scatter": ThresholdModel(("REDSCAT_COMMUTATIVE_LONG_MSG_SIZE",), (524288,), ("",), _reduce_scatter),
    "gather": ThresholdModel(("GATHER_INTER_SHORT_MSG_SIZE",), (2048,), ("",), _binomial, _INTER),
    "scatter": ThresholdModel(("SCATTER_INTER_SHORT_MSG_SIZE",), (2048,), ("",), _binomial, _INTER),
}


@dataclass(frozen=True)
class Fit:
    """The best thresholds of one collective for what was measured.

    ``loss``: geometric mean, over the scenarios, of the time under these thresholds over that of the best of all
    measured choices; ``default_loss``: the same under MPICH's own thresholds. ``scenarios``: how many there were: those
    where each algorithm of the model was measured. ``steps``: on each number of ranks, the algorithms that the
    thresholds give, with the smallest and the largest measured size of each.
    """

    collective: str
    values: tuple[int, ...]
    loss: float
    default_loss: float
    scenarios: int
    steps: Mapping[int, Sequence[tuple[str, int, int]]]

    @property
    def crossings(self) -> str:
        """Where one algorithm follows another, on each number of ranks; or that there is no crossing."""
        return "; ".join(f"{ranks} processes: {_steps_text(steps)}" for ranks, steps in self.steps.items())


def _steps_text(steps: Sequence[tuple[str, int, int]]) -> str:
    if len(steps) == 1:
        name, low, high = steps[0]
        return f"no crossing, {name} from {format_size(low)} to {format_size(high)}"
    return ", ".join(f"{name} to {format_size(high)}" for name, _, high in steps)


def fit(collective: str, medians: Mapping[tuple[Scenario, Choice], float]) -> Fit | None:
    """The thresholds with the least sum of log times; of equals those nearest to MPICH's own. None: nothing to decide.

    ``medians``: seconds by pair. Raises InputError for a collective without such a model.
    """
    if collective not in MODELS:
        raise InputError(f"MPICH 3 has no thresholds of {collective}", f"It has them of {', '.join(MODELS)}")
    model = MODELS[collective]
    times: dict[Scenario, dict[str, float]] = {}
    best: dict[Scenario, float] = {}
    for (scenario, choice), time_s in medians.items():
        if scenario.collective == collective:
            if not choice.parameters:
                times.setdefault(scenario, {})[choice.algorithm] = time_s
            best[scenario] = min(time_s, best.get(scenario, math.inf))
    # Where every algorithm that some thresholds would give was measured.
    scenarios = [scenario for scenario in sorted(times) if _outcomes(model, scenario) <= times[scenario].keys()]
    if model.remark is not None or not any(len(_outcomes(model, scenario)) > 1 for scenario in scenarios):
        return None
    logs = {s: {name: math.log(time_s / best[s]) for name, time_s in times[s].items()} for s in scenarios}

    def loss(values: Sequence[int]) -> float:
        return sum(logs[s][model.decide(s, values)] for s in scenarios) / len(scenarios)

    values = min(_candidates(model, scenarios), key=lambda some: (round(loss(some), 12), _distance(model, some)))
    steps: dict[int, list[tuple[str, int, int]]] = {}
    for scenario in sorted(scenarios, key=lambda s: (s.ranks, s.size_bytes)):
        name, size, own = model.decide(scenario, values), scenario.size_bytes, steps.setdefault(scenario.ranks, [])
        own[-1:] = [(name, own[-1][1], size)] if own and own[-1][0] == name else [*own[-1:], (name, size, size)]
    return Fit(collective, values, math.exp(loss(values)), math.exp(loss(model.defaults)), len(scenarios), steps)


def _outcomes(model: ThresholdModel, scenario: Scenario) -> set[str]:
    """The algorithms that some thresholds would give ``scenario``."""
    return {model.decide(scenario, values) for values in product((0, _LARGEST), repeat=len(model.variables))}


def _candidates(model: ThresholdModel, scenarios: Sequence[Scenario]) -> Iterator[tuple[int, ...]]:
    """All values of the thresholds that decide differently somewhere, and MPICH's own."""
    sizes = sorted({_bytes(scenario) for scenario in scenarios})
    edges = {0, sizes[-1] + 1, _LARGEST}
    for size, following in pairwise(sizes):
        # Collectives differ in whether a size equal to the threshold is short. A value between two sizes leaves no
        # doubt; where there is none, one of the two sizes is it.
        edges |= {(size + following) // 2} if following > size + 1 else {size, following}
    yield model.defaults
    yield from product(sorted(edges), repeat=len(model.variables))


def _distance(model: ThresholdModel, values: Sequence[int]) -> float:
    return sum(abs(math.log((v + 1) / (d + 1))) for v, d in zip(values, model.defaults, strict=True))


def thresholds_file(ranks: int = 0) -> str:
    """The name of the file for a number of processes; 0: for all alike."""
    return f"mpich-thresholds-{ranks}.env" if ranks else "mpich-thresholds.env"


def format_fits(fits: Sequence[Fit], ranks: int = 0) -> bytes:
    """A file of exports for a shell: MPICH 3's names, and Cray MPICH's where it has the same threshold.

    ``ranks``: the number of processes that it is for; 0: for all alike.
    """
    lines = [
        "# Thresholds of MPICH 3.0 to 3.3 and Cray MPICH, written by colltune. Source it in the job script.",
        f"# Set for {f'{ranks} processes' if ranks else 'all numbers of processes alike'}. What they cost against",
        "# rules that can say everything stands with each collective.",
    ]
    for fit in sorted(fits, key=lambda fit: fit.collective):
        model = MODELS[fit.collective]
        lines.append(
            f"# {fit.collective}: {fit.loss:.3f} times the best of {fit.scenarios} measured calls"
            f" (MPICH's own thresholds: {fit.default_loss:.3f})"
        )
        if ranks:
            lines.append(f"# {fit.crossings}")
        for name, cray, value in zip(model.variables, model.cray, fit.values, strict=True):
            lines.append(f"export MPIR_CVAR_{name}={value}")
            if cray:
                lines.append(f"export {cray}={value}")
    return ("\n".join(lines) + "\n").encode("ascii")


_NAMES = frozenset(
    name
    for model in MODELS.values()
    for name in (*(f"MPIR_CVAR_{variable}" for variable in model.variables), *model.cray)
    if name
)
_EXPORT = re.compile(r"export ([A-Z_]+)=([0-9]{1,10})")


def parse_thresholds(data: bytes, source: str) -> dict[str, str]:
    """The variables that a file of thresholds sets. Raises InputError for any other line in it."""
    thresholds = {}
    for number, line in enumerate(data.decode("ascii", "replace").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        match = _EXPORT.fullmatch(line)
        if match is None or match[1] not in _NAMES or int(match[2]) > _LARGEST:
            raise InputError(f"{source}, line {number}: {line[:60]!r} sets no threshold", "Write it by colltune export")
        thresholds[match[1]] = match[2]
    return thresholds
