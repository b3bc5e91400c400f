"""When a choice that nobody proved may replace the default, and what is said of it."""

from collections.abc import Iterator, Sequence
from statistics import geometric_mean

import numpy as np
from numpy.typing import NDArray

from colltune.core.proven import Guess
from colltune.core.sample import DEFAULT
from colltune.learn.scenario_columns import Floats
from colltune.predict.cost import Places
from colltune.predict.deviation import LOSS, probability_of_loss
from colltune.predict.model import Group, TimesModel

# With no more than this predicted probability may a choice that replaces the default lose more than LOSS. On clusters
# that were left out far fewer lost (docs/design/prior.md, which says how it is chosen).
MOST_PROBABLE = 0.15


def safest(mean: Floats, std: Floats, risk: float, group: Places) -> tuple[Places, NDArray[np.bool_]]:
    """Of each group the row (g,) of the choice that is expected to be fastest, among those that are expected to gain
    and lose more than LOSS no more probably than ``risk``; True with it. Where there is none, the row that loses least
    probably, and False.

    ``mean``, ``std`` (n,): of log times over the default's; ``group`` (n,): the number of each row's group, ascending.
    """
    loss, expected = probability_of_loss(mean, std), mean + 0.5 * std**2
    safe = (loss <= risk) & (expected < 0.0)
    order = np.lexsort((np.where(safe, expected, loss), ~safe, group))
    first = order[np.unique(group, return_index=True)[1]]
    return first, safe[first]


def judged(model: TimesModel, collective: str, groups: Sequence[Group], risk: float = MOST_PROBABLE) -> list[Guess]:
    """Of each group the ``safest`` choice, or the default."""
    return vetoed(groups, *model.against(collective, groups), risk)


def vetoed(groups: Sequence[Group], mean: Floats, std: Floats, risk: float) -> list[Guess]:
    """``mean``, ``std`` (n,): of the log times of all others, one group's after another's, over their default's.

    The default stays where a loss of more than LOSS is more probable than ``risk`` and where nothing is expected to be
    gained.
    """
    counts = [len(others) for _, _, others in groups]
    first, safe = safest(mean, std, risk, np.repeat(np.arange(len(groups)), counts))
    places, sureness = first - np.cumsum([0, *counts[:-1]]), 1.0 - probability_of_loss(mean[first], std[first])
    return list(map(_guess, groups, *(each.tolist() for each in (places, safe, np.exp(-mean[first]), sureness))))


def _guess(group: Group, place: int, is_safe: bool, speedup: float, sureness: float) -> Guess:
    scenario, baseline, others = group
    if is_safe:
        text = f"expected to be {speedup:.2f} times as fast as {baseline}"
        return Guess(scenario, others[place], sureness, text, speedup)
    text = f"{others[place]} may be {speedup:.2f} times as fast, and may lose {LOSS:.0%} as well"
    return Guess(scenario, DEFAULT, sureness, text, speedup)


def gain_texts(guesses: Sequence[Guess]) -> list[str]:
    """One or two lines for each collective: where the default is left, what is expected of that and how sure it is; and
    where it stays though another choice may be faster.
    """
    names = dict.fromkeys(guess.scenario.collective for guess in guesses)
    return [text for name in names for text in _texts(name, [g for g in guesses if g.scenario.collective == name])]


def _texts(name: str, own: Sequence[Guess]) -> Iterator[str]:
    made = [guess for guess in own if guess.choice != DEFAULT]
    if made:
        gain, worst = geometric_mean([guess.gain for guess in made]), min(guess.sureness for guess in made)
        yield (
            f"{name}: {gain:.2f} times as fast in {len(made)} of {len(own)} scenarios, by the prediction;"
            f" no loss beyond {LOSS:.0%} in any with {100.0 * worst:.1f}% probability or more"
        )
    else:
        yield f"{name}: the default stays in all {len(own)} scenarios; nothing else is sure enough"
    left = [guess for guess in own if guess.choice == DEFAULT and guess.gain > 1.0]
    if left:
        gain, least = geometric_mean([guess.gain for guess in left]), 1.0 - max(guess.sureness for guess in left)
        yield (
            f"  where it stays another choice may be {gain:.2f} times as fast in {len(left)},"
            f" and lose more than {LOSS:.0%} with {100.0 * least:.0f}% probability or more"
        )
