"""When a choice that nobody proved may replace the default, and what is said of it."""

from collections.abc import Iterator, Sequence
from statistics import geometric_mean

import numpy as np

from colltune.core.proven import Guess
from colltune.core.sample import DEFAULT, Choice, Scenario
from colltune.learn.scenario_columns import Floats
from colltune.predict.deviation import LOSS, probability_of_loss
from colltune.predict.model import TimesModel

# With no more than this predicted probability may a choice that replaces the default lose more than LOSS. On clusters
# that were left out far fewer lost (docs/design/prior.md, which says how it is chosen).
MOST_PROBABLE = 0.15


def safest(mean: Floats, std: Floats, risk: float) -> int | None:
    """The place of the choice that is expected to be fastest, of those that ``vetoed`` lets pass; None: of none."""
    expected = mean + 0.5 * std**2
    safe = np.flatnonzero((probability_of_loss(mean, std) <= risk) & (expected < 0.0))
    return int(safe[np.argmin(expected[safe])]) if len(safe) else None


def vetoed(
    scenario: Scenario, baseline: Choice, others: Sequence[Choice], mean: Floats, std: Floats, risk: float
) -> Guess:
    """The one of ``others`` (m,) that is expected to be fastest, or the default.

    ``mean``, ``std`` (m,): of their log times over that of ``baseline``, the default's algorithm. The default stays
    where a loss of more than LOSS is more probable than ``risk`` and where nothing is expected to be gained.
    """
    loss, safe = probability_of_loss(mean, std), safest(mean, std, risk)
    place = int(np.argmin(loss)) if safe is None else safe
    speedup, sureness = float(np.exp(-mean[place])), 1.0 - float(loss[place])
    if safe is not None:
        text = f"expected to be {speedup:.2f} times as fast as {baseline}"
        return Guess(scenario, others[place], sureness, text, speedup)
    text = f"{others[place]} may be {speedup:.2f} times as fast, and may lose {LOSS:.0%} as well"
    return Guess(scenario, DEFAULT, sureness, text, speedup)


def judged(
    model: TimesModel,
    collective: str,
    groups: Sequence[tuple[Scenario, Choice, Sequence[Choice]]],
    reasons: Sequence[str],
    risk: float = MOST_PROBABLE,
) -> list[Guess]:
    """Of each group (scenario, the default's algorithm, others) what ``vetoed`` says; where there are no others the
    default, for its reason in ``reasons``.
    """
    compared = iter(model.against(collective, [group for group in groups if group[2]]))
    return [
        vetoed(*group, *next(compared), risk) if group[2] else Guess(group[0], DEFAULT, 0.0, reason)
        for group, reason in zip(groups, reasons, strict=True)
    ]


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
