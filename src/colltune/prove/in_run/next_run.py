"""What the next run of a program does by what earlier runs measured in it: which rules are in force, what it tries.

Nothing but the runs is remembered: the same runs give the same answer. A choice comes into force where, over two runs
or more, its calls are surely more than 3% faster and the time with all between them is not surely longer, and leaves
where a run switched it off. Runs are launches of their own, and their intervals hold what differs between them
(docs/design/switchback.md).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from colltune.core.choice import DEFAULT, Choice
from colltune.core.interval import SpeedVerdict
from colltune.core.proven import THRESHOLD
from colltune.core.switchback import Standing
from colltune.deploy.explored import CallKind
from colltune.prove.in_run.in_application import KindOfCalls

_FEWEST_RUNS, _PATIENT_RUNS = 2, 4


@dataclass(frozen=True)
class NextRun:
    """``in_force``: by kind, the choice, or the default where a rule of the tuning was found slower. ``tried``: one
    choice of each kind that is still open."""

    in_force: Mapping[CallKind, Choice]
    tried: Mapping[CallKind, Choice]


def next_run(kinds: Iterable[CallKind], proven: Callable[[CallKind], Choice], said: Sequence[Standing]) -> NextRun:
    """``proven``: what the tuning decides for a kind. ``said``: what the runs of this program say together."""
    known = {(one.collective, one.choice, one.size_most.bit_length(), one.nodes, one.ppn): one for one in said}
    in_force: dict[CallKind, Choice] = {}
    tried: dict[CallKind, Choice] = {}
    for kind in kinds:
        own = proven(kind)
        of_kind = {choice: known.get(_key(kind, choice)) for choice in dict.fromkeys((own, *kind.choices))}
        if own != DEFAULT and not _hurts(of_kind[own]):
            in_force[kind] = own
            continue
        if own != DEFAULT:
            in_force[kind] = DEFAULT
        found = {choice: one for choice, one in of_kind.items() if one is not None and choice != DEFAULT}
        faster = {choice: one for choice, one in found.items() if _pays(one)}
        if faster:
            in_force[kind] = max(faster, key=lambda choice: faster[choice].faster_in_calls.estimate)
        elif (choice := _tried(kind.choices, found)) is not None:
            tried[kind] = choice
    return NextRun(in_force, tried)


def _key(kind: CallKind, choice: Choice) -> KindOfCalls:
    return kind.collective, choice, (kind.size.high or 0).bit_length(), kind.nodes, kind.ppn


def _hurts(one: Standing | None) -> bool:
    """Whether it is surely slower, or was switched off in a run: what a rule was before does not bring it back."""
    return one is not None and (one.off > 0 or one.verdict is SpeedVerdict.SLOWER)


def _pays(one: Standing) -> bool:
    return len(one.launches) >= _FEWEST_RUNS and one.faster_in_calls.low > THRESHOLD and not _hurts(one)


def _tried(choices: Sequence[Choice], found: Mapping[Choice, Standing]) -> Choice | None:
    """First what looks faster, for some runs; then what was not looked at, in order; then the rest. None: all choices
    are surely no more than 3% faster."""
    open_choices = []
    for choice in choices:
        one = found.get(choice)
        if not _hurts(one) and (one is None or one.faster_in_calls.high > THRESHOLD):
            open_choices.append(choice)

    def promise(choice: Choice) -> tuple[bool, bool, float]:
        one = found.get(choice)
        gain = 0.0 if one is None else one.faster_in_calls.estimate
        return one is not None and gain > THRESHOLD and len(one.launches) < _PATIENT_RUNS, one is None, gain

    return max(open_choices, key=promise, default=None)
