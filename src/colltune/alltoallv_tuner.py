"""`colltune tune alltoallv`: measures settings on this job, proves the best, and writes the look-up table."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from colltune.alltoallv.cells import runs, smooth
from colltune.alltoallv.setting import Setting, Shape, candidates
from colltune.alltoallv.table import Entry, Rule, around, save_table
from colltune.alltoallv_proof import PatternProof
from colltune.campaign import Campaign, Outcome
from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import InputError
from colltune.core.scenario import Scenario
from colltune.core.space import Space
from colltune.decide import medians_of
from colltune.learn.forest import ForestLearner
from colltune.measure.alltoallv import COLLECTIVE, AlltoallvSource, direct_above_bytes
from colltune.measure.contract import Effort
from colltune.native_build import build_parts, cache_directory
from colltune.store.journal import Journal
from colltune.verify.gate import GateResult
from colltune.workbench import Workbench

TABLE = "alltoallv.json"
_JOURNAL = "alltoallv.jsonl"
_MEASURING_SHARE = 0.4  # of the budget; the rest is for the proof
_PROMISING = 1.05  # default over best, measured once, from which a proof is tried
_FORWARDING = frozenset({"bruck", "parata", "hieata", "hieata_staggered"})


@dataclass(frozen=True)
class AlltoallvResult:
    """``table``: the file; ``rules``: what is in it; ``gate``: what was judged, library's time over candidate's."""

    table: Path
    rules: Sequence[Rule]
    outcome: Outcome
    gate: Sequence[GateResult]


def choice_of(setting: Setting) -> Choice:
    """The same as a Choice, for learners; the library's own is the default."""
    if setting.algorithm == "library":
        return DEFAULT
    named = (("batch", setting.batch), ("radix", setting.radix), ("direct_above", setting.direct_above))
    return Choice(setting.algorithm, tuple((name, value) for name, value in named if value))


def setting_of(choice: Choice) -> Setting:
    """The inverse."""
    values = {name: int(value) for name, value in choice.parameters}
    return Setting(choice.algorithm, *(values.get(name, 0) for name in ("radix", "batch", "direct_above")))


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
    all collectives pass, and not slower for other patterns that the library cannot tell from the one it was proven on.
    Raises ColltuneError.
    """
    shape = Shape(workbench.nodes, workbench.ppn)
    if shape.ranks < 3:
        raise InputError("alltoallv has nothing to tune on two ranks", "Give --ppn 3 or more")
    began_s = time.monotonic()
    choices = tuple(choice_of(setting) for setting in candidates(shape))
    sizes = [1 << power for power in range(2, max(largest_bytes, 4).bit_length())]
    grid = tuple(Scenario(COLLECTIVE, shape.nodes, shape.ppn, size) for size in sizes)
    space = Space(COLLECTIVE, grid, lambda _scenario: choices)
    open_source = _sources(workbench, seed)
    with Journal.create(out / _JOURNAL, workbench.environment) as journal:
        stage(f"measuring {len(choices)} settings at {len(sizes)} sizes on {shape} ranks")
        outcome = _measure(open_source(), space, journal, budget_s * _MEASURING_SHARE, seed)
        promising = _promising(outcome)
        stage(f"proving settings against the library at {len(promising)} sizes, in fresh launches")
        deadline_s = time.monotonic() + max(budget_s - (time.monotonic() - began_s), 5.0)
        proof = PatternProof(shape, open_source, journal.append, deadline_s)
        kept = proof.run(promising)
    rules = [rule for fill in kept for rule in _rules(kept[fill], fill)]
    entry = Entry((shape.ranks, shape.ranks), (shape.ppn, shape.ppn), tuple(rules))
    environment = workbench.environment
    made = {"mpi": environment.mpi, "version": environment.mpi_version, "machine": environment.machine, "seed": seed}
    save_table(out / TABLE, [entry] if rules else [], made)
    return AlltoallvResult(out / TABLE, rules, outcome, proof.results)


def _sources(workbench: Workbench, seed: int) -> Callable[[], AlltoallvSource]:
    """Opens fresh launches, each of which draws blocks of its own."""
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

    return source


def _measure(source: AlltoallvSource, space: Space, journal: Journal, budget_s: float, seed: int) -> Outcome:
    campaign = Campaign(
        source=source,
        spaces={COLLECTIVE: space},
        learners={COLLECTIVE: ForestLearner(space, seed)},
        record=journal.append,
        budget_s=budget_s,
        effort=Effort(fewest=20, most=50),
    )
    try:
        return campaign.run()
    finally:
        source.close()


def _promising(outcome: Outcome) -> dict[int, Choice]:
    """By average block what looked faster than the library, the greatest gain first; neighbours alike if they can."""
    times: dict[int, dict[Choice, float]] = {}
    for (scenario, choice), time_s in medians_of(outcome.samples).items():
        times.setdefault(scenario.size_bytes, {})[choice] = time_s
    times = {size: found for size, found in times.items() if DEFAULT in found}
    chosen = smooth(times)
    gains = {size: times[size][DEFAULT] / times[size][choice] for size, choice in chosen.items()}
    chosen = {size: choice for size, choice in chosen.items() if choice != DEFAULT and gains[size] >= _PROMISING}
    for together in runs(chosen):
        setting = setting_of(chosen[together[0]])
        if setting.algorithm in _FORWARDING:
            direct = direct_above_bytes(together[-1])
            alike = Setting(setting.algorithm, setting.radix, setting.batch, direct)
            chosen |= {size: choice_of(alike) for size in together}
    return {size: chosen[size] for size in sorted(chosen, key=lambda size: -gains[size])}


def _rules(kept: Mapping[int, Choice], fill: int) -> list[Rule]:
    """Of sizes that were kept in one class of fill."""
    return [
        Rule(around(together[0])[0], around(together[-1])[1], setting_of(kept[together[0]]), (fill,))
        for together in runs(kept)
    ]
