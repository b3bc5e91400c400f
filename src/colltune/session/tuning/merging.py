"""What a tuning directory holds already, and how a campaign is laid over it.

One directory holds the collectives and the shapes of jobs of one MPI at one thread level on one kind of machine. What a
campaign does not look at stays as it was.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from colltune.core.errors import InputError
from colltune.core.proven import Decision, Summary, Verdict, refused
from colltune.core.sample import NONBLOCKING, Environment, blocking_form
from colltune.core.space import Space
from colltune.distill.overlay import Layer, Layers
from colltune.emit.mpich.selection_file import NB, runs_nb
from colltune.store.earlier import measured_in
from colltune.store.tuning import MANIFEST, Tuning, load_tuning

Stays = Callable[[Decision], bool]
_WITH_RULE = frozenset({Verdict.KEPT, Verdict.PROVISIONAL})


@dataclass(frozen=True)
class Held:
    """The tuning that is in a directory before a campaign ends; None where there is none to keep."""

    tuning: Tuning | None

    @property
    def jobs(self) -> tuple[tuple[int, int], ...]:
        return self.tuning.tuned_in if self.tuning is not None else ()

    @property
    def reproducible(self) -> tuple[str, ...]:
        return self.tuning.summary.reproducible if self.tuning is not None else ()

    @cached_property
    def layers(self) -> Layers:
        """Its rules; of a release that did not keep those of the selector, these are those of the file."""
        if self.tuning is None:
            return Layers()
        both = [(held.by_shape or held.rule_sets, held.live) for held in (self.tuning, self.tuning.with_provisional())]
        return Layers(*(Layer(rules, rules if live is None else live) for rules, live in both))

    def decisions(self, newer: Sequence[Decision], stays: Stays, unsafe: Mapping[str, str]) -> tuple[Decision, ...]:
        """All decisions that hold: those of before that stay, and ``newer``.

        ``stays``: whether the rule of a decision of before is still there. ``unsafe``: collectives that were put back
        to the default, with the reason.
        """
        remaining = {decision.scenario: decision for decision in newer}
        merged: list[Decision] = []
        for held in self.tuning.summary.decisions if self.tuning is not None else ():
            now = remaining.get(held.scenario)
            if not stays(held) or (now is not None and held.verdict not in _WITH_RULE):
                continue
            if now is not None and (now.verdict is not Verdict.PROVISIONAL or now.choice == held.choice):
                del remaining[held.scenario]
            merged.append(held)
        return (*refused(merged, unsafe, _WITH_RULE), *remaining.values())

    def summary(self, newer: Summary, collectives: Collection[str]) -> Summary:
        """``newer`` with what stays of before. ``collectives``: those of the newer campaign."""
        if self.tuning is None:
            return newer
        kept = {name: why for name, why in self.tuning.summary.reasons.items() if name not in collectives}
        still = {name for name in self.reproducible if name not in collectives}
        return replace(
            newer,
            reasons={**kept, **newer.reasons},
            reproducible=tuple(sorted({*newer.reproducible, *still})),
            added_to=True,
        )


def hold(directory: Path, here: Environment, note: Callable[[str], None], *, gated: bool) -> Held:
    """What ``directory`` holds for a campaign in the environment ``here``.

    Raises InputError where it is of another MPI, build, thread level or machine, and where proven rules would be mixed
    with those of a campaign without the gate.
    """
    tuning = None
    if (directory / MANIFEST).exists():
        try:
            tuning = load_tuning(directory)
        except InputError as error:
            note(f"the tuning that was here cannot be kept: {error.what}")
    there = tuning.environment if tuning is not None else measured_in(directory)
    if there is not None and (differences := replace(there, nodes=here.nodes, ppn=here.ppn).differences(here)):
        changes = "; ".join(f"{name} {then} there, {now} here" for name, then, now in differences)
        raise InputError(f"{directory} is of another environment: {changes}", "Give another directory by --out")
    if tuning is None:
        return Held(None)
    if not tuning.summary.gated:
        note("the rules that were here were not proven, so they are not kept")
        return Held(None)
    if not gated:
        raise InputError(
            f"{directory} holds proven rules, and --gate off proves none", "Give another directory by --out"
        )
    return Held(tuning)


def keep_apart(spaces: Mapping[str, Space], held: Held) -> dict[str, Space]:
    """``spaces`` without the choice of a blocking call to make the non-blocking one where that has rules of its own.

    Raises InputError where the directory holds such a choice, which the rules to come would change behind it.
    """
    apart, rules = dict(spaces), held.layers.provisional.file
    for name in NONBLOCKING:
        blocking = blocking_form(name)
        ruled = name in spaces or (name in rules and rules[name].departs)
        if name in spaces and blocking in rules and runs_nb(rules[blocking]):
            raise InputError(
                f"a rule of {blocking} that is here makes the non-blocking call, which rules of {name} would change",
                "Give another directory by --out",
            )
        if ruled and blocking in spaces:
            apart[blocking] = _without_nb(spaces[blocking])
    return apart


def _without_nb(space: Space) -> Space:
    return replace(space, legal=lambda scenario: tuple(choice for choice in space.legal(scenario) if choice != NB))


def largest_job(environment: Environment, jobs: Collection[tuple[int, int]]) -> Environment:
    """``environment`` with the shape of the largest of ``jobs``."""
    nodes, ppn = max(jobs, key=lambda job: (job[0] * job[1], job[0]))
    return replace(environment, nodes=nodes, ppn=ppn)
