"""`colltune tune alltoallv`: measures settings on this job, proves the best, and writes the look-up table."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from colltune.alltoallv.setting import Setting, Shape, candidates
from colltune.alltoallv.table import Entry, Rule, around, save_table
from colltune.campaign import Campaign, Outcome
from colltune.confirm import Confirmation
from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import InputError
from colltune.core.scenario import Scenario
from colltune.core.space import Space
from colltune.decide import medians_of
from colltune.learn.forest import ForestLearner
from colltune.measure.alltoallv import AlltoallvSource, direct_above_bytes
from colltune.measure.contract import Effort
from colltune.native_build import build_parts, cache_directory
from colltune.store.journal import Journal
from colltune.verify.gate import GateResult, Verdict
from colltune.workbench import Workbench

COLLECTIVE = "alltoallv"
TABLE = "alltoallv.json"
_JOURNAL = "alltoallv.jsonl"
_MEASURING_SHARE = 0.6
_PROMISING = 1.05  # default over best, measured once, from which a proof is tried


@dataclass(frozen=True)
class AlltoallvResult:
    """``table``: the file; ``gate``: what was judged, the library's time over the candidate's."""

    table: Path
    outcome: Outcome
    gate: Sequence[GateResult]


def choice_of(setting: Setting) -> Choice:
    """The same as a Choice, for learners; the library's own is the default."""
    if setting.algorithm == "library":
        return DEFAULT
    named = (("batch", setting.batch), ("radix", setting.radix))
    return Choice(setting.algorithm, tuple((name, value) for name, value in named if value))


def setting_of(choice: Choice, average_bytes: int) -> Setting:
    """The inverse, with the largest block that is forwarded where the average is ``average_bytes``."""
    values = {name: int(value) for name, value in choice.parameters}
    direct = direct_above_bytes(average_bytes)
    return Setting(choice.algorithm, values.get("radix", 0), values.get("batch", 0), direct)


def tune_alltoallv(
    workbench: Workbench,
    out: Path,
    largest_bytes: int,
    budget_s: float,
    seed: int,
    stage: Callable[[str], None] = lambda _text: None,
) -> AlltoallvResult:
    """Measures the job's whole shape for average blocks up to ``largest_bytes``, and writes out/alltoallv.json.

    A setting is in the table only where it was proven faster than the library in fresh launches, by the gate that
    all collectives pass. Raises ColltuneError.
    """
    shape = Shape(workbench.nodes, workbench.ppn)
    if shape.ranks < 3:
        raise InputError("alltoallv has nothing to tune on two ranks", "Give --ppn 3 or more")
    began_s = time.monotonic()
    choices = tuple(choice_of(setting) for setting in candidates(shape))
    sizes = [1 << power for power in range(2, max(largest_bytes, 4).bit_length())]
    grid = tuple(Scenario(COLLECTIVE, shape.nodes, shape.ppn, size) for size in sizes)
    space = Space(COLLECTIVE, grid, lambda _scenario: choices)
    program = build_parts(
        workbench.installation.mpicc, ("alltoallv_measure", COLLECTIVE), cache_directory(workbench.process_environment)
    )
    launches = iter(range(10_000))

    def source() -> AlltoallvSource:
        command = workbench.command([str(program)])
        if command.host_file is not None:
            path, content = command.host_file
            Path(path).write_text(content, encoding="utf-8")
        variables = {**workbench.process_environment, **command.environment}
        number = next(launches)
        return AlltoallvSource(workbench.environment, command.argv, variables, seed + number, launch=number)

    with Journal.create(out / _JOURNAL, workbench.environment) as journal:
        stage(f"measuring {len(choices)} settings at {len(sizes)} sizes on {shape} ranks")
        outcome = _measure(source(), space, journal, budget_s * _MEASURING_SHARE, seed)
        promising = _promising(space, outcome)
        stage(f"proving {len(promising)} settings against the library in fresh launches")
        confirmation = Confirmation(open_source=source, record=journal.append)
        deadline_s = time.monotonic() + max(budget_s - (time.monotonic() - began_s), 5.0)
        gate = confirmation.run(promising, deadline_s) if promising else []
    rules = [_rule(result) for result in gate if result.verdict is Verdict.KEPT]
    entry = Entry((shape.ranks, shape.ranks), (shape.ppn, shape.ppn), tuple(rules))
    environment = workbench.environment
    made = {"mpi": environment.mpi, "version": environment.mpi_version, "machine": environment.machine, "seed": seed}
    save_table(out / TABLE, [entry] if rules else [], made)
    return AlltoallvResult(out / TABLE, outcome, gate)


def _measure(source: AlltoallvSource, space: Space, journal: Journal, budget_s: float, seed: int) -> Outcome:
    campaign = Campaign(
        source=source,
        spaces={COLLECTIVE: space},
        learners={COLLECTIVE: ForestLearner(space, seed)},
        record=journal.append,
        budget_s=budget_s,
        effort=Effort(fewest=8, most=50),
    )
    try:
        return campaign.run()
    finally:
        source.close()


def _promising(space: Space, outcome: Outcome) -> dict[Scenario, Choice]:
    """The best setting of each size that looked faster than the library, the greatest gain first."""
    medians = medians_of(outcome.samples)
    gains: list[tuple[float, Scenario, Choice]] = []
    for scenario in space.scenarios:
        times = {choice: time_s for (where, choice), time_s in medians.items() if where == scenario}
        if DEFAULT not in times:
            continue
        best = min(times, key=lambda choice: times[choice])
        gain = times[DEFAULT] / times[best]
        if best != DEFAULT and gain >= _PROMISING:
            gains.append((gain, scenario, best))
    gains.sort(key=lambda found: -found[0])
    return {scenario: choice for _, scenario, choice in gains}


def _rule(result: GateResult) -> Rule:
    low, high = around(result.scenario.size_bytes)
    return Rule(low, high, setting_of(result.choice, result.scenario.size_bytes))
