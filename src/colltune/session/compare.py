"""Compares any two settings, files, tunings or builds of an MPI. What `colltune compare` and `colltune verify` do."""

import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Unpack

from colltune.bench.workbench import MachineOptions
from colltune.core.disturbance import Disturbance
from colltune.core.errors import InputError, LaunchError, on_os_error
from colltune.core.interval import COMPARED, SpeedVerdict
from colltune.core.sample import COLLECTIVES, DEFAULT, Scenario, parse_collectives
from colltune.core.space import message_sizes
from colltune.core.units import format_count
from colltune.deploy.live_selector import require_way
from colltune.judge.verdict import PRACTICAL, Comparison, compare_all, fewest_launches, launches_to_decide
from colltune.machine.benchmark_output import parse_output
from colltune.machine.file_formats import SELECTION, Format, require_format
from colltune.machine.files import read_file
from colltune.measure.contract import Effort
from colltune.prove.compare.guidelines import Guideline, guidelines_at, judge_guidelines
from colltune.prove.compare.two_sides import (
    EFFORT,
    FEWEST_LAUNCHES,
    Side,
    Turns,
    compare_sides,
    launch_by_turns,
    scenarios_to_verify,
)
from colltune.session.sides import NOTHING, NamedSide, open_sides, parse_side
from colltune.store.earlier import tuned_sizes

# The screening: of each side so many launches, of each collective every so manieth size, and of the budget this share.
_LOOKS, _STEP, _SHARE = 3, 3, 0.5
_LOOK = Effort(relative_width=0.03, box_s=0.01, fewest=10, most=200)
# What differs by less in the screening is not looked at further: half of what counts as a difference.
_ALIKE = 1.0 + PRACTICAL / 2
_MOST_LAUNCHES = 12
# A larger budget has more of them: one for so much of it.
_LAUNCH_S = 25.0
# Work that is cut off at the end of the budget would be lost: what decides may take half of it beyond.
_GRACE = 0.5
# What a launch takes over the calls that it measures: their results are checked, and they are timed again.
_OVERHEAD = 2.0
_SIDES = "Give a selection file of this MPI, or what OSU, IMB-MPI1 or ReproMPI printed"
_Mark = tuple[int, dict[str, int]]


@dataclass(frozen=True)
class Verification:
    """The points that were compared, by ``launches`` launches of each side; ``names``: of the sides, A and B.

    None where other programs had the processors, as ``disturbance`` says: then there is no verdict. ``screened``: the
    first look at a comparison of which ``comparisons`` are those that seemed to differ, measured anew.
    ``open``: calls that seemed to differ, or were not looked at, and for which there was no time. ``recorded``: others
    measured, and each launch is a run of theirs. ``budget_s``: what there was to spend; 0 where launches were counted.
    """

    comparisons: Sequence[Comparison]
    launches: int
    disturbance: Disturbance = field(default_factory=Disturbance)
    names: tuple[str, str] = ("default", "tuned")
    screened: Sequence[Comparison] = ()
    open: Sequence[Scenario] = ()
    recorded: bool = False
    budget_s: float = 0.0

    @property
    def counts(self) -> dict[SpeedVerdict, int]:
        """How many points are faster, the same, open, and slower."""
        count = Counter(comparison.verdict for comparison in self.comparisons if comparison.scenario not in self.open)
        return {verdict: count[verdict] for verdict in COMPARED}

    @property
    def undecided(self) -> dict[str, float]:
        """Points that launches left open, and the launches of each side, or the budget, to decide half of these."""
        needed = launches_to_decide(self.comparisons, self.launches)
        budget_s = needed * max(self.budget_s / max(self.launches, 1), _LAUNCH_S) if self.budget_s else 0.0
        return {"points": self.counts[SpeedVerdict.OPEN], "launches": needed, "budget_s": budget_s}

    @property
    def nowhere_slower(self) -> bool | None:
        """Whether B is slower nowhere; None where that cannot be said."""
        if self.slower:
            return False
        return None if self.disturbance.is_busy or self.open else True

    @property
    def slower(self) -> list[Comparison]:
        """The points at which the tuning, or B, is slower beyond the interval."""
        return [comparison for comparison in self.comparisons if comparison.verdict is SpeedVerdict.SLOWER]


def verify(
    directory: Path,
    machine: MachineOptions,
    *,
    launches: int = 8,
    seed: int = 1,
    via: str = "file",
    note: Callable[[str], None] = lambda _text: None,
) -> Verification:
    """Compares nothing with the tuning in ``directory``: all its collectives, in launches of their own.

    Raises ColltuneError.
    """
    if launches < 2:
        raise InputError(f"{launches} launch of each kind says nothing of how launches differ", "Give 2 or more")
    require_way(via)
    if (tuned := parse_side(str(directory))).tuning is None:
        raise InputError(f"{directory} is no directory of a tuning", "Give the one that `colltune tune` wrote")
    names = ("default", "tuned")
    default, tuned_side = open_sides(NamedSide(NOTHING), tuned, machine, os.environ, names=names, via=via, note=note)
    scenarios = scenarios_to_verify(tuned.tuning, tuned_sizes(directory), default.bench)
    compared = compare_sides(default, tuned_side, scenarios, launches, seed, note=note)
    return _judged(Verification(compared, launches, names=names), default)


def compare(
    a: str,
    b: str,
    machine: MachineOptions,
    *,
    builds: tuple[str | None, str | None] = (None, None),
    collectives: Sequence[str] = (),
    sizes: tuple[int, int] = (1, 1 << 20),
    budget_s: float = 300.0,
    seed: int = 1,
    note: Callable[[str], None] = lambda _text: None,
) -> Verification:
    """Compares any two of: nothing, settings, a selection file, a tuning; and ``builds``, by the mpiexec of each.

    Or two files of what a benchmark printed: then nothing is run.

    Every call is looked at in a few launches of each side. Those that seem to differ are measured anew, in launches
    of which nothing is known yet, as many as ``budget_s`` allows. Named ``collectives`` are looked at in every power of
    two of ``sizes``, and measured anew wherever there is time; else all are looked at in a few sizes. ``note`` hears
    what is done. Raises ColltuneError.
    """
    names = parse_collectives(collectives)
    if (recorded := _compare_outputs((a, b), (machine.nodes, machine.ppn), names, sizes, note)) is not None:
        return recorded
    named = parse_side(a), parse_side(b)
    sides = open_sides(*named, machine, os.environ, builds=builds, note=note)
    for side, named_side in zip(sides, named, strict=True):
        of_build = f", {side.bench.environment.facts['mpiexec']}" if builds != (None, None) else ""
        note(f"{side.name}: {named_side} ({side.bench.headline}{of_build})")
    bench, step = sides[0].bench, 1 if names else _STEP
    each = ((name, size) for name in names or COLLECTIVES for size in message_sizes(name, *sizes)[::step])
    calls = [Scenario(name, bench.nodes, bench.ppn, size) for name, size in each]
    # Short calls first, since what takes long may be cut off.
    scenarios = sorted(calls, key=lambda scenario: scenario.size_bytes)
    return look_and_compare(*sides, scenarios, budget_s, seed, all_of=bool(names), note=note)


def look_and_compare(
    a: Side,
    b: Side,
    scenarios: Sequence[Scenario],
    budget_s: float,
    seed: int,
    *,
    all_of: bool = False,
    note: Callable[[str], None] = lambda _text: None,
) -> Verification:
    """What ``compare`` does once both sides can be launched. ``all_of``: also what looks alike is measured anew."""
    began_s = a.bench.now_s()
    note(f"looking at {format_count(len(scenarios), 'call')} in {_LOOKS} launches of each side ...")
    looks = compare_sides(
        a, b, scenarios, _LOOKS, seed, effort=_LOOK, launch_s=_SHARE * budget_s / (2 * _LOOKS), note=note
    )
    looked = _mark(a)
    look_s, ends_s = (a.bench.now_s() - began_s) / (2 * _LOOKS), began_s + budget_s
    chosen, untried = _affordable(looks, look_s, ends_s - a.bench.now_s(), all_of=all_of)
    anew: list[Comparison] = []
    if chosen:
        note(f"comparing {format_count(len(chosen), 'call')} in new launches ...")
        until_s, most = ends_s + _GRACE * budget_s, max(_MOST_LAUNCHES, int(budget_s / _LAUNCH_S))
        anew = compare_sides(a, b, sorted(chosen), most, seed + _LOOKS, deadline_s=ends_s, until_s=until_s)
    seen, compared = {c.scenario for c in looks}, {c.scenario for c in anew}
    missing = [s for s in chosen if s not in compared] + untried + [s for s in scenarios if s not in seen]
    launches = max((len(c.a_launches_s) for c in anew), default=0)
    whole = Verification(anew, launches, names=("A", "B"), screened=looks, open=missing, budget_s=budget_s)
    judged = _judged(whole, a, looked)
    if not looks and not judged.disturbance.is_busy:
        raise LaunchError("no call could be measured on both sides", "Try each: colltune doctor --mpiexec PATH")
    return judged


def violations_of(
    side: Side, sizes: tuple[int, int], budget_s: float, seed: int, note: Callable[[str], None] = lambda _text: None
) -> Verification:
    """Which calls take longer than others that do the same, by ``guidelines_at`` for the whole job: those are slower.

    All are looked at in a few launches, and what seems violated is measured anew, as by ``compare``.
    """
    bench, began_s = side.bench, side.bench.now_s()
    guidelines = guidelines_at(bench.nodes, bench.ppn, *sizes)
    note(f"{bench.headline}: looking at {format_count(len(guidelines), 'guideline')} in {_LOOKS} launches ...")

    def measured(some: Sequence[Guideline], launches: int, seed: int, **turns: Unpack[Turns]) -> list[Comparison]:
        calls = sorted({s for g in some for s in (g.call, *g.mock_up)}, key=lambda scenario: scenario.size_bytes)
        return judge_guidelines(some, launch_by_turns((side,), calls, launches, seed, **turns)[0])

    looks = measured(guidelines, _LOOKS, seed, effort=_LOOK, launch_s=_SHARE * budget_s / _LOOKS, note=note)
    looked = _mark(side)
    suspect = {(look.scenario, look.choice.algorithm) for look in looks if look.speedup.estimate < 1.0 / _ALIKE}
    suspected = [g for g in guidelines if (g.call, g.text) in suspect]
    if suspected:
        note(f"measuring {format_count(len(suspected), 'guideline')} that may be violated in new launches ...")
    ends_s, until_s = began_s + budget_s, began_s + (1.0 + _GRACE) * budget_s
    most = max(_MOST_LAUNCHES, int(budget_s / _LAUNCH_S)) if suspected else 0
    anew = measured(suspected, most, seed + _LOOKS, deadline_s=ends_s, until_s=until_s)
    launches = max((len(c.a_launches_s) for c in anew), default=0)
    compared = {(c.scenario, c.choice.algorithm) for c in anew}
    seen = {(c.scenario, c.choice.algorithm) for c in looks}
    missing = [g.call for g in guidelines if (g.call, g.text) not in (compared if g in suspected else seen)]
    whole = Verification(anew, launches, names=("mock-up", "call"), screened=looks, open=missing, budget_s=budget_s)
    return _judged(whole, side, looked)


def _affordable(
    looks: Sequence[Comparison], look_s: float, left_s: float, *, all_of: bool
) -> tuple[list[Scenario], list[Scenario]]:
    """What to measure anew in ``left_s``, and what seems to differ and has to be left out.

    First comes where every launch of one side was faster than every one of the other, and of these the largest gap.
    ``look_s``: what a launch of ``looks`` took. ``all_of``: also what seems alike, where there is time.
    """
    ordered = sorted(looks, key=lambda look: (_is_apart(look), _gap(look)), reverse=True)
    calls_s = _OVERHEAD * sum(_LOOK.expected_cost_s(max(look.a_s, look.b_s)) for look in looks)
    launch_s = max(look_s - calls_s, 0.0)
    chosen: list[Scenario] = []
    for look in ordered:
        if not all_of and _gap(look) <= math.log(_ALIKE):
            continue
        launch_s += _OVERHEAD * EFFORT.expected_cost_s(max(look.a_s, look.b_s))
        launches = max(fewest_launches(len(chosen) + 1), FEWEST_LAUNCHES)
        if chosen and 2 * launches * launch_s > left_s:
            break
        chosen.append(look.scenario)
    return chosen, [s for s in (look.scenario for look in looks if _gap(look) > math.log(_ALIKE)) if s not in chosen]


def _is_apart(comparison: Comparison) -> bool:
    a_s, b_s = comparison.a_launches_s, comparison.b_launches_s
    return max(a_s) < min(b_s) or max(b_s) < min(a_s)


def _gap(comparison: Comparison) -> float:
    """How far the two sides are apart: of the logarithms, in the state of the heap where it is most."""
    return max(abs(math.log(state.speedup.estimate)) for state in (comparison, comparison.kept) if state is not None)


def _judged(compared: Verification, side: Side, looks: _Mark = (0, {})) -> Verification:
    """``found`` with what other programs did; then nothing of it counts where that was too much.

    ``looks``: the mark of the watch after the looks: what decides has to be calm by itself.
    """
    watch = side.bench.watch
    if watch is None:
        return compared
    deciding = watch.tally.total(looks, watch.nodes)
    disturbance = deciding if deciding.is_busy else watch.tally.total(names=watch.nodes)
    return replace(compared, disturbance=disturbance, comparisons=() if disturbance.is_busy else compared.comparisons)


def _mark(side: Side) -> _Mark:
    return (0, {}) if side.bench.watch is None else side.bench.watch.tally.mark


def _compare_outputs(
    sides: tuple[str, str],
    shape: tuple[int | None, int | None],
    collectives: Sequence[str],
    sizes: tuple[int, int],
    note: Callable[[str], None],
) -> Verification | None:
    """Of two files of what a benchmark printed, whose runs count as launches; None if neither side is such a file.

    ``shape``: nodes and ranks per node, where no line of the file says them. Calls with too few runs are open.
    """
    with on_os_error("cannot read a side", "Give files that can be read"):
        contents = [read_file(Path(text), link=True) if Path(text).is_file() else None for text in sides]
    sides_known = (*SELECTION, Format.BENCHMARK)
    printed = [
        content is not None
        and require_format(text, content, sides_known, "side of a comparison", _SIDES)[0] is Format.BENCHMARK
        for text, content in zip(sides, contents, strict=True)
    ]
    if not any(printed):
        return None
    if not all(printed):
        raise InputError(f"only {sides[printed.index(True)]} is output of a benchmark", "Give two such files, or none")
    stated = (shape[0], shape[1]) if shape[0] and shape[1] else None
    both = [parse_output(content or b"", Path(text), stated) for content, text in zip(contents, sides, strict=True)]
    programs = [output.program for output in both]
    if programs[0] != programs[1]:
        raise InputError(f"{' and '.join(programs)} do not measure the same", "Give output of one program")
    a, b = ({scenario: times_s for (scenario, _), times_s in output.times_s.items()} for output in both)
    if len(a) < len(both[0].times_s) or len(b) < len(both[1].times_s):
        raise InputError("a file holds times of several algorithms", "Give one algorithm in a file")
    calls = [call for call in sorted(a.keys() & b.keys()) if call.collective in (collectives or COLLECTIVES)]
    calls = [call for call in calls if call.collective == "barrier" or sizes[0] <= call.size_bytes <= sizes[1]]
    if not calls:
        raise InputError("no call of these sizes is in both files", "Give output of the same collectives and shapes")
    note(
        f"Times of {programs[0]} that others measured: {len(calls)} calls are in both files,"
        f" {len(a.keys() | b.keys()) - len(calls)} are not or were not asked for. Not known: whether the machine was"
        " the same and idle, and whether results were right. Runs that took no turns also show what changed meanwhile."
    )
    compared = compare_all({(call, DEFAULT): (a[call], b[call]) for call in calls})
    runs = min(len(side[call]) for call in calls for side in (a, b))
    unsure = [comparison.scenario for comparison in compared if comparison.speedup.low <= 0.0]
    return Verification(compared, runs, names=("A", "B"), open=unsure, recorded=True)
