"""What the next run of a program does by what earlier runs measured in it: which rules are in force, what it tries.

Nothing but the runs is remembered: the same runs give the same answer. A choice comes into force where, over two runs
or more, its calls are surely more than 3% faster and the time with all between them is not surely longer, and leaves
where a run switched it off. Runs are launches of their own, and their intervals hold what differs between them
(docs/design/switchback.md).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from colltune.core.interval import SpeedVerdict
from colltune.core.proven import THRESHOLD
from colltune.core.sample import DEFAULT, Choice
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


def next_run(kinds: Iterable[CallKind], proven: Callable[[CallKind], Choice], standings: Sequence[Standing]) -> NextRun:
    """``proven``: what the tuning decides for a kind. ``standings``: what the runs of this program say together."""
    known = {(s.collective, s.choice, s.size_most.bit_length(), s.nodes, s.ppn): s for s in standings}
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
        measured = {choice: s for choice, s in of_kind.items() if s is not None and choice != DEFAULT}
        faster = {choice: standing for choice, standing in measured.items() if _pays(standing)}
        if faster:
            in_force[kind] = max(faster, key=lambda choice: faster[choice].faster_in_calls.estimate)
        elif (choice := _tried(kind.choices, measured)) is not None:
            tried[kind] = choice
    return NextRun(in_force, tried)


def _key(kind: CallKind, choice: Choice) -> KindOfCalls:
    return kind.collective, choice, (kind.size.high or 0).bit_length(), kind.nodes, kind.ppn


def _hurts(standing: Standing | None) -> bool:
    """Whether it is surely slower, or was switched off in a run: what a rule was before does not bring it back."""
    return standing is not None and (standing.off > 0 or standing.verdict is SpeedVerdict.SLOWER)


def _pays(standing: Standing) -> bool:
    return len(standing.launches) >= _FEWEST_RUNS and standing.faster_in_calls.low > THRESHOLD and not _hurts(standing)


def _tried(choices: Sequence[Choice], measured: Mapping[Choice, Standing]) -> Choice | None:
    """First what looks faster, for some runs; then what was not looked at, in order; then the rest. None: all choices
    are surely no more than 3% faster."""
    open_choices = []
    for choice in choices:
        standing = measured.get(choice)
        if not _hurts(standing) and (standing is None or standing.faster_in_calls.high > THRESHOLD):
            open_choices.append(choice)

    def promise(choice: Choice) -> tuple[bool, bool, float]:
        s = measured.get(choice)
        gain = 0.0 if s is None else s.faster_in_calls.estimate
        return s is not None and gain > THRESHOLD and len(s.launches) < _PATIENT_RUNS, s is None, gain

    return max(open_choices, key=promise, default=None)
