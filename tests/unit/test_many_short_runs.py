"""A program that runs often and for short: what trying costs over all runs, and after how many of them it is decided.

The sequence is that of native/shim/switchback.c, with times that are known; what runs leave and what the next one does
is as in `run --auto`.
"""

import ctypes
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from memory_bench import ENVIRONMENT
from numpy.typing import NDArray

from colltune.core.proven import THRESHOLD
from colltune.core.rules import Span
from colltune.core.sample import DEFAULT, Choice, SizeBasis
from colltune.core.switchback import BlockPair, BlockTimes, Cell, Experiment
from colltune.deploy.explored import CallKind
from colltune.judge.evidence import ALPHA, interval_of, scale_of_few
from colltune.prove.in_run.earned import accounts, resting
from colltune.prove.in_run.in_application import NextRun, expected, in_calls, next_run, standings
from colltune.store.applications import ApplicationRun, RunRecord
from compiled import shared

SHIM = Path(__file__).resolve().parents[2] / "native" / "shim"
RING, TREE, CHAIN = CHOICES = tuple(Choice(name) for name in ("ring", "tree", "chain"))
CALL_S, BETWEEN_S, AGREE_S = 100e-6, 100e-6, 200e-6  # of a call, between two calls, and to meet and agree for a pair
# Standard deviations: of the logarithm of a call's time, and of the ratio from run to run.
NOISE, RUN_TO_RUN = 0.3, 0.05
RISK = 1e-3


@cache
def sequence() -> ctypes.CDLL:
    return ctypes.CDLL(str(shared("switchback_run.c", SHIM / "switchback.c", f"-I{SHIM}", "-O2")))


@dataclass
class Program:
    """Runs of ``calls`` calls, in which each choice takes ``ratios`` times as long as the default.

    ``warming_s``: what the first call of a choice takes longer in each run.
    """

    calls: int
    ratios: Mapping[Choice, float]
    warming_s: float = 0.0
    runs: list[ApplicationRun] = field(default_factory=list)
    lost_s: float = 0.0  # as it is, and not as it was measured

    def __post_init__(self) -> None:
        """As before the first run that tries anything."""
        self.random = np.random.default_rng(1)
        known = (0.3, float(self.calls), self.calls * CALL_S, 1, tuple(self.ratios))
        self.kind = CallKind("bcast", SizeBasis.MESSAGE, 2, 4, Span(64, 127), *known)
        self.plan = self.next_run()

    def next_run(self) -> NextRun:
        said = standings(self.runs, ALPHA / max(len(self.ratios), 1))
        return next_run([self.kind], lambda _kind: DEFAULT, said, expected(self.runs, in_calls))

    @property
    def in_force(self) -> Choice:
        return self.plan.in_force.get(self.kind, DEFAULT)

    def run(self) -> None:
        """Without a rule in force."""
        choice = self.plan.tried[self.kind]
        account = accounts(self.runs, self.plan.tried)[self.kind]
        said = expected(self.runs).get((self.kind.where, choice))
        ratio = self.ratios[choice] * np.exp(self.random.normal(0.0, RUN_TO_RUN))
        pairs, tuned, agreed_s = self.sequence_of(account.words(said), ratio)
        self.lost_s += len(pairs) * AGREE_S + tuned * CALL_S * (ratio - 1.0) + self.warming_s * (tuned > 0)
        self.runs.insert(0, self.left(choice, tuned, self.calls - tuned, agreed_s, pairs))
        if pairs:
            self.plan = self.next_run()

    def left(
        self, choice: Choice, tuned: int, default: int, agreed_s: float = 0.0, pairs: tuple[BlockPair, ...] = ()
    ) -> ApplicationRun:
        cell = Cell("bcast", 0, 64, 64, 8, 2, 4, tuned, default, 1, 0, agreed_s, pairs)
        record = RunRecord(ENVIRONMENT, (choice,), {"bcast": SizeBasis.MESSAGE}, 1, candidates=1)
        experiment = Experiment(8, 2, 1, self.calls * (CALL_S + BETWEEN_S), (cell,))
        return ApplicationRun(Path(f"{len(self.runs):06}"), record, (experiment,))

    def sequence_of(self, words: Sequence[int], ratio: float) -> tuple[tuple[BlockPair, ...], int, float]:
        """The pairs of a run, how many calls ran tuned, and the seconds of agreeing."""
        factors: NDArray[np.float64] = np.exp(self.random.normal(0.0, NOISE, self.calls))
        rows, tuned, most = np.zeros((64, 6)), ctypes.c_int(0), 64
        times = [1e9 * CALL_S, 1e9 * BETWEEN_S, 1e9 * AGREE_S, ratio, 1e9 * self.warming_s]
        count = sequence().switchback_run(
            (ctypes.c_int64 * 9)(*words), ctypes.c_double(RISK), ctypes.c_uint64(int(self.random.integers(1 << 62))),
            self.calls, (ctypes.c_double * 5)(*times), factors.ctypes.data_as(ctypes.c_void_p),
            rows.ctypes.data_as(ctypes.c_void_p), most, ctypes.byref(tuned),
        )  # fmt: skip
        assert count < most
        pairs = []
        for timed, tuned_ns, default_ns, tuned_wall_ns, default_wall_ns, _agreed_ns in rows[:count]:
            sides = ((default_ns, default_wall_ns), (tuned_ns, tuned_wall_ns))
            default, by_choice = (BlockTimes(1e-9 * call_ns, 1e-9 * wall_ns) for call_ns, wall_ns in sides)
            pairs.append(BlockPair(int(timed), True, default, by_choice))
        return tuple(pairs), tuned.value, 1e-9 * float(rows[:count, 5].sum())

    @property
    def cost(self) -> float:
        """What trying took, as a share of the time in the calls of all runs and of the one that was recorded."""
        return self.lost_s / (CALL_S * self.calls * (1 + len(self.runs)))


def run_until_decided(program: Program, most: int) -> int:
    while program.plan.tried and len(program.runs) < most:
        program.run()
    return len(program.runs)


@pytest.mark.parametrize(("calls", "runs"), [(400, 300), (4000, 40)])
@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0])
def test_trying_costs_no_more_of_all_runs_than_it_may(calls: int, runs: int, ratio: float) -> None:
    program = Program(calls, dict.fromkeys(CHOICES, ratio))
    made = run_until_decided(program, runs)
    assert sum(len(cell.pairs) for run in program.runs for job in run.jobs for cell in job.cells) >= 8
    assert program.cost <= 1.1 * RISK  # as far as is known
    # What is twice as fast is in force, what is twice as slow given up, and what is as fast still open.
    assert (program.in_force in CHOICES) == (ratio == 0.5)
    assert (made == runs) == (ratio == 1.0)


def test_short_runs_decide_as_long_ones_do() -> None:
    """So many calls decide, in whatever runs."""
    ratios = {RING: 1.5, TREE: 0.6, CHAIN: 1.0}
    few, many = Program(200, ratios), Program(8000, ratios)
    calls = [program.calls * run_until_decided(program, 400_000 // program.calls) for program in (few, many)]
    assert few.in_force == many.in_force == TREE
    assert calls[0] < 3 * calls[1]


def test_what_only_opens_connections_for_a_run_is_paid_for() -> None:
    """The first call of the choice takes as long as thirty in each run, which no timed call shows."""
    program = Program(400, {RING: 0.5}, warming_s=30 * CALL_S)
    run_until_decided(program, 1000)
    assert program.in_force == RING
    assert program.lost_s <= program.warming_s + RISK * CALL_S * 400 * len(program.runs)
    assert len(program.runs) > 200


@pytest.mark.slow
def test_one_pair_a_run_confirms_falsely_in_less_than_1_of_100_choices() -> None:
    """Of choices that are exactly as much faster as is the least that counts, looking after every run."""
    random, confirmed = np.random.default_rng(5), 0
    for number in range(300):
        logs = (math.log(THRESHOLD) + random.normal(0.0, (0.2, 0.3, 0.5)[number % 3], 12)).tolist()
        looks = (interval_of(some, scale_of_few(some), ALPHA) for some in (logs[:count] for count in range(3, 13)))
        confirmed += any(one.low > math.log(THRESHOLD) for one in looks)
    assert confirmed <= 3


def test_a_rule_is_compared_when_its_calls_pay_for_that() -> None:
    program = Program(400, {RING: 0.5})
    kind, side = program.kind, BlockTimes(1e-3, 1e-3)
    some, compared = program.left(RING, 2500, 0), program.left(RING, 8, 8, 0.0, (BlockPair(3, True, side, side),))

    def rests(*runs: ApplicationRun) -> bool:
        return kind in resting(runs, {kind: RING})

    assert rests()  # 400 calls in the run that was recorded, of 5,000 that it takes
    assert rests(program.left(RING, 2499, 0))
    assert not rests(some)
    assert not rests(program.left(TREE, 5000, 0), compared)  # a single run pays for it
    assert not rests(program.left(RING, 400, 0), some, some)
    assert rests(program.left(RING, 400, 0), compared, some, some)
