"""Where a campaign's prior comes from: earlier tunings, tables of times, a simulated cluster, or other clusters."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from colltune.core.errors import InputError
from colltune.core.grouping import grouped
from colltune.core.model_answers import Model
from colltune.core.sample import Status
from colltune.core.space import Space
from colltune.predict.bursts import Times
from colltune.predict.model import TimesModel, TrainedTimes, load_model
from colltune.predict.transfer import TransferPrior, times_of
from colltune.store.dataset import load_grids
from colltune.store.journal import read_journal
from colltune.store.tuning import JOURNAL

SHIPPED = "shipped"  # in place of a file: the model that colltune ships


@dataclass(frozen=True)
class PriorSources:
    """Times by collective of each source, and a model of other clusters, if any."""

    times: Mapping[str, Sequence[Times]]
    model: TimesModel | None = None

    def prior(self, space: Space, note: Callable[[str], None] = lambda _text: None) -> Model | None:
        """What is known of ``space``; None where no source measured two of its choices."""
        choices = space.all_choices
        found = TransferPrior(self.times.get(space.collective, ()), choices)
        if found.choices:
            note(f"{space.collective}: the prior knows {len(found.choices)} of {len(choices)} choices")
            return found
        if self.model is not None and self.model.knows(space.collective):
            told = TrainedTimes(self.model.of(space.collective))
            if np.isfinite(told.predict(list(space.pairs())).log_time).any():
                note(f"{space.collective}: starting from what other clusters found")
                return told
        note(f"{space.collective}: the prior knows nothing of it")
        return None


def load_prior_sources(names: Sequence[str]) -> PriorSources:
    """Each of ``names``: a tuning directory or its journal, a table of times, a model, or "shipped".

    Raises InputError for one that cannot be read as any of these.
    """
    times: dict[str, list[Times]] = {}
    model = None
    for name in names:
        path = Path(name)
        if name == SHIPPED or path.suffix == ".npz":
            model = load_model(None if name == SHIPPED else path)
            continue
        if not path.exists():
            raise InputError(f"there is no {name} to start from", f"Give a tuning, a table, a model, or {SHIPPED}")
        for collective, found in _times_of(path).items():
            times.setdefault(collective, []).append(found)
    return PriorSources(times, model)


def _times_of(path: Path) -> dict[str, Times]:
    journal = path / JOURNAL if path.is_dir() else path
    if journal.suffix == ".jsonl":
        return _of_journal(journal)
    return {grid.collective: times_of(grid) for grid in load_grids([path], 1)}


def _of_journal(journal: Path) -> dict[str, Times]:
    timed = [one for one in read_journal(journal).samples if one.status is Status.OK and one.times_s]
    found: dict[str, Times] = {}
    for name, mine in sorted(grouped(timed, lambda one: one.scenario.collective).items()):
        pairs = grouped(mine, lambda one: (one.scenario, one.choice))
        found[name] = {pair: float(np.median([one.time_s for one in some])) for pair, some in pairs.items()}
    return found
