"""What a tuning is asked for, whom it tells how it goes, and what comes of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from colltune.core.errors import InputError, on_os_error
from colltune.core.proven import THRESHOLD, Budget, Decision, Verdict
from colltune.core.sample import parse_collectives
from colltune.core.space import Weight, weights_in_job
from colltune.core.units import format_duration, parse_duration, parse_size, require_sizes
from colltune.measure.contract import Effort
from colltune.session.arguments import (
    LARGEST_BYTES,
    MachineArguments,
    PathLike,
    TuneArguments,
    complete,
    machine_options,
    paths_of,
)

# A slip of the fingers is told at once, and not after the import of what learns.
if TYPE_CHECKING:
    from colltune.bench.contract import Bench
    from colltune.bench.workbench import MachineOptions
    from colltune.learn.expected_gain import ExpectedGain
    from colltune.profile.application_profile import Profile
    from colltune.prove.time_plan import TimePlan
    from colltune.search.campaign import Outcome, Progress
    from colltune.store.tuning import Tuning


@dataclass(frozen=True)
class TuneOptions:
    """What to tune.

    ``gate`` False keeps every decision unproven: for research only. ``reproducible`` restricts reductions to one
    algorithm per shape, whose order of operations depends on neither message size nor timing. ``weights``: of gains, in
    a job of so many nodes and ranks per node. With ``expected_gain``, whose shares are weights, only
    their scenarios are measured, as far as the job can form them, and the bounds of sizes do not matter.
    ``topology`` says which parts of the job may measure at once: a file, the name of a scheme, or serial; None is what
    Slurm says, or serial. With ``application`` it is tuned for what that calls in the ``runtime_s`` to come, and
    ``check`` runs it at the end; ``allowed_s`` is the user's budget, where it is expected to save less than that.
    ``machine`` is where; ``thread_level`` is "" where nobody said one. ``sizes``: in bytes, in place of those between
    the bounds; none: as the bench has them.
    """

    collectives: Sequence[str]
    smallest_bytes: int = 1
    largest_bytes: int = LARGEST_BYTES
    budget_s: float = 300.0
    resume: bool = False
    seed: int = 1
    gate: bool = True
    reproducible: bool = False
    threshold: float = THRESHOLD
    effort: Effort = field(default_factory=Effort)
    weights: Callable[[int, int], Weight] = weights_in_job
    expected_gain: ExpectedGain | None = None
    topology: str | None = None
    application: tuple[Profile, ...] = ()
    runtime_s: float = 7200.0
    allowed_s: float | None = None
    check: bool = False
    machine: MachineOptions | None = None
    thread_level: str = ""
    store: Path | None = None
    sizes: tuple[int, ...] = ()

    @classmethod
    def of(cls, collectives: Sequence[str], arguments: TuneArguments) -> TuneOptions:
        """What a caller said. Raises InputError for what cannot be understood, or does not go together."""
        given = complete(TuneArguments, arguments)
        parse_collectives(collectives)
        if given["gate"] not in ("on", "off"):
            what = f"--gate {given['gate']} is neither on nor off"
            raise InputError(what, "Leave it out, unless you do research on colltune")
        if not given["profile"] and not collectives:
            raise InputError("nothing to tune is given", "Name collectives, or give a profile by --profile app.json")
        options = cls(
            collectives,
            parse_size(given["min_size"]),
            parse_size(given["max_size"]),
            parse_duration(given["budget"]),
            given["resume"],
            given["seed"],
            given["gate"] == "on",
            given["reproducible"],
            topology=given["topology"],
            application=load_given_profiles(given["profile"]),
            runtime_s=parse_duration(given["runtime"]),
            check=given["check"],
            machine=machine_of(given),
            thread_level=given["thread_level"],
            store=_store_of(given),
            sizes=_sizes_of(given),
        )
        options.require_something()
        if options.check and len(options.application) != 1:
            what = f"{len(options.application)} are" if options.application else "none is"
            raise InputError(f"--check runs the application of a profile, and {what} given", "Give one by --profile")
        return options

    def require_something(self) -> None:
        """Raises InputError where the budget or the range of sizes is empty."""
        require_sizes(self.smallest_bytes, self.largest_bytes)
        if self.budget_s <= 0.0:
            raise InputError("the budget must not be empty", "Give for example --budget 5m")


def machine_of(given: TuneArguments) -> MachineOptions:
    """Where to run."""
    where = MachineArguments(mpiexec=given["mpiexec"], hostfile=given["hostfile"], launch_line=given["launch_line"])
    where |= MachineArguments(nodes=given["nodes"], ppn=given["ppn"])
    return machine_options(where, given["thread_level"] or "single")


def _sizes_of(given: TuneArguments) -> tuple[int, ...]:
    """The sizes that were named. Raises InputError for what is none."""
    named = given["sizes"] or ()
    each = named.split(",") if isinstance(named, str) else named
    return tuple(sorted({parse_size(text) for text in each}))


def _store_of(given: TuneArguments) -> Path | None:
    """The store that was named, by the argument or for the whole site. Raises InputError for no store.

    One that cannot be read costs a warning later, and no tuning.
    """
    from colltune.site.store import VARIABLE, SiteStore

    named = given["store"] or os.environ.get(VARIABLE)
    if given["store"]:
        try:
            SiteStore.opened(Path(given["store"]))
        except InputError as error:
            if not isinstance(error.__cause__, PermissionError):
                raise
    return Path(named) if named else None


def load_given_profiles(files: PathLike | Sequence[PathLike] | None) -> tuple[Profile, ...]:
    """The profiles in files, or the latest of tunings. Raises InputError."""
    if not files:
        return ()
    from colltune.profile.profile_files import load_profile
    from colltune.store.earlier import latest_profile

    return tuple(load_profile(latest_profile(path) if path.is_dir() else path) for path in paths_of(files))


@dataclass
class Listener:
    """Hears of what goes on; a command line shows it, a library user may not care.

    ``opened`` hears of the job or the simulated cluster, before anything is measured, and ``planned`` when it is to be
    over, on the bench's clock.
    """

    progress: Callable[[Progress], None] = lambda _progress: None
    proof: Callable[[Sequence[Decision]], None] = lambda _results: None
    stage: Callable[[str], None] = lambda _text: None
    note: Callable[[str], None] = lambda _text: None
    opened: Callable[[Bench], None] = lambda _bench: None
    planned: Callable[[float], None] = lambda _ends_s: None


@dataclass(frozen=True, slots=True)
class Payoff:
    """Core-seconds: what the proven decisions are expected to save over the run time to come, and what tuning took.

    ``proven`` decisions; ``measured`` of the ``kinds`` of calls (shape and size) that can be tuned.
    ``unknown``: why it is not known what is saved, and how to tune ``again``; "" where it is.
    """

    saving_core_s: float
    saving_low_core_s: float
    cost_core_s: float
    runtime_s: float
    proven: int
    measured: int
    kinds: int
    unknown: str = ""
    again: str = ""

    def text(self) -> str:
        core_s = (self.saving_low_core_s, self.saving_core_s, self.cost_core_s)
        low, mean, cost = (f"{value / 3600.0:.3g}" for value in core_s)
        seen = f"{self.measured} of its {self.kinds} kinds of calls (collective, shape and size) were measured"
        if self.unknown:
            why = f"{self.unknown}, so it is not known what tuning saves"
            return f"{why}; cost {cost} core-hours. Tune again {self.again}."
        if not self.proven:
            return f"Nothing was proven faster, so nothing is saved; {seen}; cost {cost} core-hours."
        return (
            f"Saves about {mean} core-hours (at least {low}) over {format_duration(self.runtime_s)} of this "
            f"application; {seen}; cost {cost} core-hours."
        )


@dataclass(frozen=True)
class TuneResult:
    """A tuning, and how it was come by.

    ``payoff``: what it saves the application, where it was for one and was not cut off.
    """

    tuning: Tuning
    outcome: Outcome
    decisions: Sequence[Decision]
    nothing_to_tune: Mapping[str, str]
    payoff: Payoff | None = None


def budget_of(options: TuneOptions, plan: TimePlan, decisions: Sequence[Decision], rest_s: float) -> Budget:
    """What was given and what the tuning takes at least; and which budget would do, where it was too short for all."""
    untried = any(result.verdict is Verdict.NOT_TRIED for result in decisions)
    enough_s = plan.budget_for(rest_s) if untried else None
    return Budget(plan.budget_s, plan.fixed_cost_s, enough_s, options.allowed_s, plan.runtime_s)


def require_writable(directory: Path) -> None:
    """Raises InputError where nothing could be written there: better before the measuring than after."""
    with on_os_error(f"cannot write to {directory}", "Give another directory by --out"):
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / ".colltune-probe"
        probe.write_bytes(b"")
        probe.unlink()
