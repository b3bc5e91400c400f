"""The strategies that can be compared, by name. Each is a learner (``colltune.learn.contract``).

``module:attribute`` names one of somebody else: a callable that takes a space and a seed. ``NAME@N`` is the same
strategy with N repetitions at every pair, whatever it would take by itself.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from colltune.bench.replay import MeasuringCost
from colltune.core.errors import InputError
from colltune.core.sample import Sample
from colltune.core.space import Model, Point, Space
from colltune.learn.decision import DecisionLearner, DecisionSettings
from colltune_study.research.contract import MakeStrategy, Strategy
from colltune_study.research.learners.acclaim import AcclaimLearner, AcclaimProgramLearner
from colltune_study.research.learners.fact import FactLearner
from colltune_study.research.learners.published import PublishedSettings, RandomLearner
from colltune_study.research.learners.scaling import Scaling
from colltune_study.research.learners.tuned_parameters import TunedFactLearner
from colltune_study.research.simulate import Pace

OURS = "ours"
NAMES = (OURS, "acclaim", "fact", "random")
ACCLAIM_CODE = "acclaim-code"  # as the public program does, where "acclaim" is as the paper says
TUNED = "fact-tuned"  # slow, and so compared only where it is named
RANDOM_LOG = "random-log"  # samples as ``random`` does; its forests are fitted to the logarithm of the time
# Growing a forest for each choice is slow: the states about the one that counts are scored exactly, others coarsely.
_PACE = Pace(growth=0.35, dense=2, exact=0.04)
# These have no stop but the end of the space.
_ENDLESS = Pace(growth=0.35, dense=2, exact=0.04, to_stop=False)
_STOPPING = (OURS, "acclaim", ACCLAIM_CODE)
_PUBLISHED: dict[str, Callable[[Space, int, PublishedSettings], Strategy]] = {
    "acclaim": AcclaimLearner,
    ACCLAIM_CODE: AcclaimProgramLearner,
    "fact": FactLearner,
    TUNED: TunedFactLearner,
    "random": RandomLearner,
    RANDOM_LOG: RandomLearner,
}
# What a published method learns by itself; Scaling.LOG_ALGORITHM where nothing is said.
_SCALINGS = {"random": Scaling.NONE, RANDOM_LOG: Scaling.LOG}


@dataclass(frozen=True)
class Contestant:
    """A strategy and how often its state is scored. ``settings``: None for those that have none to set here.

    ``kind``: which strategy it is, where it is shown under another name. ``repetitions``: at every pair; 0: as many as
    the strategy takes by itself.
    """

    name: str
    pace: Pace
    settings: PublishedSettings | None = None
    kind: str = ""
    repetitions: int = 0

    def __call__(self, space: Space, seed: int) -> Strategy:
        kind = self.kind or self.name
        if kind == OURS:
            return DecisionLearner(space, seed, _one_look(self.repetitions) if self.repetitions else None)
        made = _foreign(kind)(space, seed) if self.settings is None else _PUBLISHED[kind](space, seed, self.settings)
        return _Repeating(made, self.repetitions) if self.repetitions else made


def _one_look(repetitions: int) -> DecisionSettings:
    """Our learner without first looks."""
    usual = DecisionSettings()
    warm_up = max(1, round(usual.warm_up * repetitions / usual.repetitions))
    return replace(usual, repetitions=repetitions, fewest=repetitions, warm_up=warm_up)


class _Repeating:
    """Another strategy, which measures every pair ``repetitions`` times."""

    def __init__(self, inner: Strategy, repetitions: int) -> None:
        self._inner, self._repetitions = inner, repetitions

    def ask(self, count: int) -> list[Point]:
        return [replace(point, repetitions=self._repetitions) for point in self._inner.ask(count)]

    def tell(self, samples: Sequence[Sample]) -> None:
        self._inner.tell(samples)

    def should_stop(self) -> str | None:
        return self._inner.should_stop()

    def model(self) -> Model:
        return self._inner.model()


def contestants(names: Sequence[str], scaling: str = "") -> list[Contestant]:
    """The strategies of ``names``, each once. ``scaling`` replaces the one that a published method has by itself.

    Raises InputError for a name of either that is none.
    """
    if scaling and scaling not in list(Scaling):
        raise InputError(f"there is no scaling {scaling!r}", f"There are {', '.join(Scaling)}")
    asked = Scaling(scaling) if scaling else None
    found = []
    for name in dict.fromkeys(names):
        kind, repetitions = _parse_name(name)
        settings = None
        if kind in _PUBLISHED:
            settings = PublishedSettings(scaling=asked or _SCALINGS.get(kind, Scaling.LOG_ALGORITHM))
        elif kind != OURS:
            _foreign(kind)
        found.append(Contestant(name, _pace(kind), settings, kind, repetitions))
    if not found:
        raise InputError("no strategy to evaluate", f"There are {', '.join(NAMES)}")
    return found


def _pace(kind: str) -> Pace:
    if kind in _STOPPING:
        return _PACE
    return _ENDLESS if kind in _PUBLISHED else Pace()


def _parse_name(name: str) -> tuple[str, int]:
    """The strategy, and its repetitions at every pair: 0 where none are said."""
    kind, at, number = name.partition("@")
    if not at:
        return name, 0
    if not (number.isdecimal() and 1 <= int(number) <= MeasuringCost().repetitions):
        raise InputError(
            f"{name}: {number!r} is no number of repetitions",
            f"Give 1 to {MeasuringCost().repetitions}, as in {kind}@3",
        )
    return kind, int(number)


def _foreign(name: str) -> MakeStrategy:
    module, colon, attribute = name.partition(":")
    if not colon:
        raise InputError(
            f"there is no strategy {name!r}",
            f"There are {', '.join((*NAMES, ACCLAIM_CODE, RANDOM_LOG, TUNED))}; your own is given as module:name",
        )
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"cannot load the strategy {name}: {error}", "Give module:name of a callable on PYTHONPATH"
        ) from error
    if not callable(found):
        raise InputError(f"the strategy {name} cannot be called", "It takes a space and a seed")
    make: MakeStrategy = found
    return make
