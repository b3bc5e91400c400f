"""The strategies that can be compared, by name. Each is a learner (``colltune.learn.contract``).

``module:attribute`` names one of somebody else: a callable that takes a space and a seed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from colltune.core.errors import InputError
from colltune.core.space import Space
from colltune.evaluate.contract import MakeStrategy, Strategy
from colltune.evaluate.simulate import Pace
from colltune.learn.decision import DecisionLearner
from colltune.learn.fact import FactLearner
from colltune.learn.published import AcclaimLearner, PublishedSettings, RandomLearner
from colltune.learn.scaling import Scaling
from colltune.learn.tuned import TunedFactLearner

OURS = "ours"
NAMES = (OURS, "acclaim", "fact", "random")
TUNED = "fact-tuned"  # slow, and so compared only where it is named
# Growing a forest for each choice is slow: the states about the one that counts are scored exactly, others coarsely.
_PACE = Pace(growth=0.35, dense=2, exact=0.04)
# These have no stop but the end of the space.
_ENDLESS = Pace(growth=0.35, dense=2, exact=0.04, to_stop=False)
_PACES = {OURS: _PACE, "acclaim": _PACE, "fact": _ENDLESS, TUNED: _ENDLESS, "random": _ENDLESS}
_TREES = 30
_PUBLISHED: dict[str, Callable[[Space, int, PublishedSettings], Strategy]] = {
    "acclaim": AcclaimLearner,
    "fact": FactLearner,
    TUNED: TunedFactLearner,
    "random": RandomLearner,
}
_OWN: dict[str, MakeStrategy] = {OURS: DecisionLearner}


@dataclass(frozen=True)
class Contestant:
    """A strategy and how often its state is scored. ``settings``: None for those that have none to set here.

    ``kind``: which strategy it is, where it is shown under another name.
    """

    name: str
    pace: Pace
    settings: PublishedSettings | None = None
    kind: str = ""

    def __call__(self, space: Space, seed: int) -> Strategy:
        kind = self.kind or self.name
        if self.settings is not None:
            return _PUBLISHED[kind](space, seed, self.settings)
        if kind in _OWN:
            return _OWN[kind](space, seed)
        return _foreign(kind)(space, seed)


def contestants(names: Sequence[str], scaling: Scaling | None = None) -> list[Contestant]:
    """The strategies of ``names``, each once. ``scaling`` replaces the one that a published method has by itself.

    Raises InputError for a name that is none.
    """
    found = []
    for name in dict.fromkeys(names):
        settings = None
        if name in _PUBLISHED:
            own = Scaling.NONE if name == "random" else Scaling.LOG_ALGORITHM
            settings = PublishedSettings(trees=_TREES, scaling=scaling or own)
        elif name not in _OWN:
            _foreign(name)
        found.append(Contestant(name, _PACES.get(name, Pace()), settings))
    if not found:
        raise InputError("no strategy to evaluate", f"There are {', '.join(NAMES)}")
    return found


def shown_as(contestant: Contestant, name: str, pace: Pace | None = None) -> Contestant:
    """The same strategy under another name, scored at another pace."""
    return replace(contestant, name=name, pace=pace or contestant.pace, kind=contestant.kind or contestant.name)


def _foreign(name: str) -> MakeStrategy:
    module, colon, attribute = name.partition(":")
    if not colon:
        raise InputError(
            f"there is no strategy {name!r}",
            f"There are {', '.join((*NAMES, TUNED))}; your own is given as module:name",
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
