"""The conformance check: does every legal collective call still give the right result under a tuning?

The work is done by the C program in native/conformance, which is started once for all rank counts. This module says
what to try, starts it, and reads what it found. A case that ends the job or hangs is named: the program keeps the
running case in a file.
"""

import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from colltune.core.errors import LaunchError
from colltune.core.rules import RuleSet
from colltune.core.sample import NONBLOCKING, SizeBasis
from colltune.core.units import format_duration
from colltune.machine.process import run_launch

PROGRAM = "conformance"  # the directory under native/
MAKING = "make_communicator"  # a case that is no call of a collective
BEFORE_FIRST_CASE = "start-up, before the first case"
_EVERY_COUNT_TO = 16
_BESIDE_POWERS_TO = 1024
_LAST_WORDS = re.compile(r"Assertion failed|Abort\(|unknown key|unrecognized key|Unable to open|conformance:")


@dataclass(frozen=True, slots=True)
class ConformanceResult:
    """What a replay found.

    ``cases``: started ones, which took ``cases_s`` together, or less, of which ``again_s`` those of the second time;
    ``failures``: one text per failed case that was printed (the first two thousand), and ``failure_count`` all of them;
    ``crashed_case``: the one that ended the job or never ended, None if it went through; ``hung`` tells these two
    apart; ``unfinished``: the time was up while cases went on to end; ``skipped``: counts that were beyond the byte
    limit; ``detail``: the library's last words; ``command`` is what was run; ``library_failures``: failures that were
    taken out because the library has them without the tuning too; ``left_out``: kinds of calls that were not tried
    further, since the library ends the job there without it too.
    """

    command: tuple[str, ...]
    cases: int
    failures: tuple[str, ...]
    failure_count: int
    crashed_case: str | None
    hung: bool
    skipped: tuple[str, ...]
    detail: str
    wall_s: float
    cases_s: float
    again_s: float = 0.0
    library_failures: int = 0
    unfinished: bool = False
    left_out: tuple[str, ...] = ()

    @property
    def crashed_number(self) -> int | None:
        """The number of the case that ended the job; None where no case did."""
        number = re.match(r"\d+ ", self.crashed_case or "")
        return None if number is None else int(number[0])

    @property
    def crashed_collective(self) -> str:
        """What that case called."""
        return (self.crashed_case or " ").split(" ")[1]

    @property
    def crashed_kind(self) -> str:
        """Which calls are like it: the words that another case has to have."""
        words, kind = (self.crashed_case or "").split(), ["ranks", "root"]
        kind += ["comm"] if self.crashed_collective == MAKING else []
        return " ".join([words[1], *(word for word in words[2:] if word.partition("=")[0] in kind)])

    @property
    def passed(self) -> bool:
        return self.cases > 0 and self.failure_count == 0 and self.crashed_case is None and not self.unfinished

    @property
    def unchecked(self) -> bool:
        """Whether it says nothing: its time was up before all cases had run, and none was wrong."""
        return self.unfinished and self.failure_count == 0

    @property
    def message(self) -> str:
        """What was found, where, and what to do next."""
        if self.passed:
            skipped = f", {len(self.skipped)} sizes left out as too large" if self.skipped else ""
            own = f", {self.library_failures} fail without the tuning too" if self.library_failures else ""
            left_out = " and ".join(self.left_out)
            own += f", leaving out {left_out}: the MPI by itself ends such jobs" if left_out else ""
            right = self.cases - self.library_failures
            return f"{right} cases gave the right result in {format_duration(self.wall_s)}{skipped}{own}"
        if self.crashed_case is not None:
            how = "a collective did not come back" if self.hung else "the job was ended by a collective"
            what, where = f"{how}: {self.detail}" if self.detail else how, self.crashed_case
        elif self.unchecked:
            return (
                f"the check did not end within {format_duration(self.wall_s)}: {self.cases} cases were begun, and none"
                " gave a wrong result"
            )
        else:
            what, where = f"{self.failure_count} of {self.cases} cases gave a wrong result", self.failures[0]
        number = re.match(r"\d+", where)
        again = shlex.join((*self.command, "--case", number[0])) if number else shlex.join(self.command)
        return f"{what}\n  where: {where}\n  next: do not use this tuning; run the case alone with: {again}"


def beyond_the_library(tuned: ConformanceResult, default: ConformanceResult) -> ConformanceResult:
    """``tuned`` without the failures that the same replay has in ``default``, a run without any tuning.

    Some libraries fail legal calls by themselves (MPICH 4.0: reductions on inter-communicators). Cases are identified
    by their text, so both runs must have the same arguments.
    """
    known = {_case_text(failure) for failure in default.failures}
    own = tuple(failure for failure in tuned.failures if _case_text(failure) not in known)
    shared = len(tuned.failures) - len(own)
    return replace(
        tuned,
        failures=own,
        failure_count=tuned.failure_count - shared,
        library_failures=tuned.library_failures + shared,
    )


def joined(parts: Sequence[ConformanceResult], left_out: Sequence[str]) -> ConformanceResult:
    """Of runs each of which begins behind the case that ended the one before."""
    *ended, last = parts
    before = ended[-1].cases - len(ended) if ended else 0
    return replace(
        last,
        cases=last.cases + before if last.crashed_case is None else last.cases,
        failures=tuple(failure for part in parts for failure in part.failures),
        failure_count=sum(part.failure_count for part in parts),
        skipped=tuple(dict.fromkeys(skipped for part in parts for skipped in part.skipped)),
        wall_s=sum(part.wall_s for part in parts),
        cases_s=sum(part.cases_s for part in parts),
        left_out=tuple(left_out),
    )


def _case_text(failure: str) -> str:
    return failure.partition(" | ")[0]


def rank_counts(world: int) -> list[int]:
    """The rank counts to try in a job of ``world`` ranks, ascending.

    All up to 16. Above: around every power of two (one less, itself, one more), a prime between each two, the
    largest prime in reach, and the job's own count. Above 1024 a case takes long, and an algorithm has no new form
    there: of each power of two only itself and the prime.
    """
    counts = set(range(1, min(world, _EVERY_COUNT_TO) + 1)) | {world}
    power = _EVERY_COUNT_TO
    while power <= world + 1:
        beside = {power - 1, power + 1} if power <= _BESIDE_POWERS_TO else set()
        counts |= {power, _prime_at_most(power * 3 // 2), *beside}
        power *= 2
    if world >= 2:
        counts.add(_prime_at_most(world))
    return sorted(count for count in counts if 1 <= count <= world)


def _prime_at_most(limit: int) -> int:
    """The largest prime <= ``limit``, which is at least 2."""
    return next(n for n in range(limit, 1, -1) if all(n % d for d in range(2, int(n**0.5) + 1)))


def boundaries(rule_set: RuleSet) -> tuple[int, ...]:
    """Each rule's size bound, one byte less and one byte more, ascending, in the basis of ``rule_set``."""
    bounds = {rule.max_size for rule in rule_set.rules if rule.max_size is not None}
    return tuple(sorted({size for bound in bounds for size in (bound - 1, bound, bound + 1) if size >= 0}))


def replay_arguments(
    ranks: Sequence[int],
    rule_sets: Iterable[RuleSet] = (),
    *,
    short: bool = False,
    thread_level: str = "single",
    collectives: Sequence[str] = (),
    max_bytes: int | None = None,
    case_limit_s: int = 60,
) -> list[str]:
    """Arguments of the program: rank counts (ascending), and what else is to be tried.

    Non-blocking collectives are among it where ``rule_sets`` has one, or ``collectives`` names them. ``short``: one
    case of each kind, for the end of a campaign, and collectives without a rule at every fourth count of ``ranks`` and
    at the last: there the library decides by its own rules. ``collectives``: only these. ``max_bytes``: the
    largest buffer of a rank (None: 4 MiB, 256 KiB in the short form).
    """
    arguments = ["--ranks", ",".join(map(str, ranks)), "--thread-level", thread_level]
    arguments += ["--case-limit", str(case_limit_s)]
    rule_sets = tuple(rule_sets)
    if any(rule_set.collective in NONBLOCKING for rule_set in rule_sets) and not collectives:
        arguments.append("--nonblocking")
    often = [rule_set.collective for rule_set in rule_sets if rule_set.departs]
    if short:
        arguments.append("--short")
    if collectives:
        arguments += ["--only", ",".join(collectives)]
    elif short and often:
        arguments += ["--often", ",".join(often)]
    if max_bytes is not None:
        arguments += ["--max-bytes", str(max_bytes)]
    for rule_set in rule_sets:
        sizes = boundaries(rule_set)
        if sizes and rule_set.basis is not SizeBasis.NONE:
            option = "--totals" if rule_set.basis is SizeBasis.TOTAL else "--sizes"
            arguments += [option, f"{rule_set.collective}={','.join(map(str, sizes))}"]
    return arguments


def run_conformance(command: Sequence[str], environment: Mapping[str, str], timeout_s: float) -> ConformanceResult:
    """Runs the replay: ``command`` is launcher, program and its arguments; ``environment`` is all that it gets.

    Raises LaunchError where nothing could be started, or the arguments cannot be used. A job that is ended by the
    library, or is still running after ``timeout_s`` seconds, is a result. A case that hangs ends by its own limit.
    """
    with tempfile.TemporaryDirectory(prefix="colltune-check-") as directory:
        progress = Path(directory) / "case"
        started_s = time.monotonic()
        stdout, stderr, code = _run([*command, "--progress", str(progress)], environment, timeout_s)
        wall_s = time.monotonic() - started_s
        running = progress.read_text(errors="replace").strip() if progress.exists() else ""
    return parse_output(command, stdout, stderr, running, code, wall_s)


def _run(command: Sequence[str], environment: Mapping[str, str], timeout_s: float) -> tuple[str, str, int | None]:
    """Both streams and the exit code; None as the code where the time was up."""
    try:
        done = run_launch(command, environment, timeout_s)
    except subprocess.TimeoutExpired as error:
        return str(error.stdout), str(error.stderr), None
    except OSError as error:
        raise LaunchError(
            f"cannot run {command[0]}: {error.strerror}", "Check the launcher with colltune doctor"
        ) from error
    return done.stdout, done.stderr, done.returncode


def parse_output(
    command: Sequence[str], stdout: str, stderr: str, running: str, code: int | None, wall_s: float
) -> ConformanceResult:
    """The result from what the program wrote; ``running``: the last state of its progress file ("case 17 ...").

    ``code``: the exit code, None where the job was stopped because its time was up. Raises LaunchError where the
    program refused its arguments.
    """
    lines = stdout.splitlines()
    by_word = {
        word: tuple(line.removeprefix(word + " ").rstrip() for line in lines if line.startswith(word + " "))
        for word in ("case", "FAIL", "HANG", "skip", "done")
    }
    last = running.removeprefix("case ").strip() or (by_word["case"][-1] if by_word["case"] else "")
    totals = dict(item.partition("=")[::2] for item in by_word["done"][-1].split()) if by_word["done"] else None
    complaint = next((line for line in stderr.splitlines() if _LAST_WORDS.search(line)), "").strip()
    if totals is None and not last and code == 2 and complaint.startswith("conformance:"):
        raise LaunchError(complaint.removeprefix("conformance: "), "This is a fault of colltune or of the launcher")
    crashed: str | None = None
    unfinished = code is None and totals is None and not by_word["HANG"] and bool(last)
    if by_word["HANG"]:
        crashed = by_word["HANG"][0]
    elif not unfinished and (totals is None or code not in (0, 1)):
        crashed = BEFORE_FIRST_CASE if not last else last if totals is None else "the end of the job, after all cases"
    number = re.match(r"\d+", last)
    return ConformanceResult(
        command=tuple(command),
        cases=int(totals["cases"]) if totals else int(number[0]) if number else 0,
        failures=by_word["FAIL"],
        failure_count=int(totals["failures"]) if totals else len(by_word["FAIL"]),
        crashed_case=crashed,
        hung=bool(by_word["HANG"]) or (code is None and not unfinished),
        skipped=by_word["skip"],
        detail=complaint or ("" if code in (0, None) else f"exit status {code}"),
        wall_s=wall_s,
        cases_s=float((totals or {}).get("seconds", wall_s)),
        again_s=float((totals or {}).get("again", 0.0)),
        unfinished=unfinished,
    )
