"""Runs the conformance check on the MPI of a workbench."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from colltune.bench.contract import LibraryBench
from colltune.core.errors import ColltuneError
from colltune.core.rules import RuleSet
from colltune.prove.replay.conformance import (
    MAKING,
    PROGRAM,
    ConformanceResult,
    beyond_the_library,
    joined,
    rank_counts,
    replay_arguments,
    run_conformance,
)
from colltune.store.tuning import Tuning, write_files

# The short form may take so long at least, and so many times what a slice of it led to expect.
_SHORT_LIMIT_S, _LIMIT_TIMES = 180.0, 4.0
# Collectives of which a part of the replay consists, whose cases take as long as the mean of all (those of allreduce
# take twice as long); and about how many cases the short form has for a rank count.
_SLICE, _CASES = ("allgather", "gather", "reduce_scatter"), 390
# Blocking collectives of the short form; and how far apart the counts of ranks are at which it runs all of them.
_COLLECTIVES, _APART = 14, 4
_UNKNOWN_LAUNCHES = 4.0  # the assumed length of a replay in launches, where the slice failed
_FULL_TIMEOUT_S = 3600.0
_MOST_LEFT_OUT = 32  # kinds of calls with which the library ends jobs by itself


def replay(
    bench: LibraryBench,
    rule_sets: Mapping[str, RuleSet],
    variables: Mapping[str, str],
    *,
    short: bool,
    counts: Sequence[int] = (),
    expected_s: float = 0.0,
) -> ConformanceResult:
    """Every collective in every form, with ``variables`` set, at rank counts up to the job's.

    With ``counts`` only the collectives that depart from the default, at these rank counts: for rules that reach no
    other call. Failures that the library has without ``variables`` too are left out. Where it ends the job without
    them too, so are the collectives that do not depart, and of the others such calls. ``expected_s``: what the short
    form is expected to take (``ReplaySlice.whole_s``), for its limit.
    """
    limit_s = short_limit_s(expected_s) if short else _FULL_TIMEOUT_S
    ruled = sorted(non_default(rule_sets))
    only: Sequence[str] = ruled if counts else ()
    ranks, thread_level = counts or rank_counts(bench.nodes * bench.ppn), bench.environment.thread_level

    def run(variables: Mapping[str, str], more: Sequence[str]) -> ConformanceResult:
        sets = rule_sets.values()
        arguments = replay_arguments(ranks, sets, short=short, thread_level=thread_level, collectives=only)
        program = bench.program(PROGRAM, [*arguments, *more], variables)
        return run_conformance(program.argv, program.environment, limit_s)

    left_out: list[str] = []
    without: list[str] = []
    begun: list[str] = []
    parts = [run(variables, begun)]
    while (number := parts[-1].crashed_number) is not None and len(left_out) < _MOST_LEFT_OUT:
        # Some calls end a job only behind others.
        again = (run({}, more).crashed_number for more in ([*without, "--case", str(number)], begun))
        if number not in again:
            break
        if ruled and not only and parts[-1].crashed_collective not in ruled:
            only, left_out, without, begun, parts = ruled, ["the collectives without a rule"], [], [], []
        elif parts[-1].crashed_collective != MAKING or "comm=direct" not in parts[-1].crashed_kind:
            left_out.append(parts[-1].crashed_kind)
            without += ["--without", left_out[-1]]
            begun = [*without, "--from", str(number + 1)]
        else:
            break
        parts.append(run(variables, begun))
    result = joined(parts, left_out)
    if result.passed or result.unchecked:
        return result
    return beyond_the_library(result, run({}, without))


def short_limit_s(expected_s: float) -> float:
    """Seconds that the short form may take where ``expected_s`` are expected."""
    return max(_SHORT_LIMIT_S, _LIMIT_TIMES * expected_s)


class UncheckedError(ColltuneError):
    """The replay did not end in its time, so nobody knows whether results are right."""


@dataclass(frozen=True, slots=True)
class ReplaySlice:
    """A part of the replay without a tuning, twice: ``cases``, ``first_s`` and ``again_s`` that they took. The first
    time opens connections. ``rank_counts``: of the whole replay."""

    first_s: float
    again_s: float
    cases: int
    rank_counts: int

    def whole_s(self, launch_s: float, ruled: int) -> float:
        """What the whole replay takes with rules for so many collectives, where a launch takes ``launch_s``."""
        if self.cases == 0 or self.again_s == 0.0:  # nothing ran, or not to its end
            return _UNKNOWN_LAUNCHES * launch_s
        share, some = min(ruled / _COLLECTIVES, 1.0), len({*range(0, self.rank_counts, _APART), self.rank_counts - 1})
        cases = _CASES * (share * self.rank_counts + (1.0 - share) * some)
        return launch_s + self.first_s + cases * self.again_s / self.cases


def replay_slice(bench: LibraryBench) -> ReplaySlice:
    """Runs a few cases, which tells what the replay at the end will take. Compiles it, where need be.

    On the fewest ranks, on all, and on a count in the middle: how much less fewer ranks take differs, by whether they
    share processors.
    """
    counts, thread_level = rank_counts(bench.nodes * bench.ppn), bench.environment.thread_level
    some = sorted({counts[0], counts[len(counts) // 2], counts[-1]})
    arguments = replay_arguments(some, short=True, collectives=_SLICE, thread_level=thread_level)
    program = bench.program(PROGRAM, [*arguments, "--twice"])
    conformance = run_conformance(program.argv, program.environment, _SHORT_LIMIT_S)
    first_s = conformance.cases_s - conformance.again_s
    return ReplaySlice(first_s, conformance.again_s, conformance.cases // 2, len(counts))


def make_safe(
    bench: LibraryBench,
    tuning: Tuning,
    workplace: Path,
    emit: Callable[[Mapping[str, RuleSet]], Tuning],
    counts: Sequence[int] = (),
    expected_s: float = 0.0,
) -> tuple[Tuning, list[str]]:
    """``tuning``, with every collective that fails the replay back at the default.

    Where no rule departs from the default nothing will be loaded, so nothing is replayed. ``emit`` makes a tuning of
    other rules; ``counts`` and ``expected_s`` as of ``replay``. Also: what was found, a line each. Raises
    UncheckedError where the replay does not end in its time, ColltuneError where even the library's own choices fail.
    """
    notes: list[str] = []
    if not non_default(tuning.rule_sets):
        return tuning, notes
    for _ in range(len(tuning.rule_sets) + 1):
        write_files(workplace, tuning.files)
        result = replay(
            bench, tuning.rule_sets, tuning.variables_at(workplace), short=True, counts=counts, expected_s=expected_s
        )
        if result.passed:
            notes += [f"the check of results: {result.message}"] if result.left_out else []
            return tuning, notes
        if result.unchecked:
            raise UncheckedError(result.message, "Give a larger --budget, or tune on fewer nodes")
        blamed = blamed_collectives(result) & non_default(tuning.rule_sets)
        if not blamed:
            blamed = non_default(tuning.rule_sets)
        if not blamed:
            raise ColltuneError(
                f"the conformance check fails with the library's own choices: {result.message}",
                "Nothing was written but the journal; report this to the makers of the MPI",
            )
        notes.append(f"the conformance check failed, so {', '.join(sorted(blamed))} keep the default: {result.message}")
        tuning = emit(RuleSet.without(tuning.rule_sets, blamed))
    raise AssertionError("unreachable: each round takes one collective back to the default")


def non_default(rule_sets: Mapping[str, RuleSet]) -> set[str]:
    """The collectives with a rule other than the default."""
    return {name for name, rules in rule_sets.items() if rules.departs}


def blamed_collectives(result: ConformanceResult) -> set[str]:
    """The collectives that failing cases name; a case's text begins with its number and its collective."""
    cases = [*result.failures, *([result.crashed_case] if result.crashed_case else [])]
    return {word for case in cases for word in case.split()[:4] if word.isidentifier()}
