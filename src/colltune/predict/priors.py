"""Where a campaign's prior comes from: earlier tunings, tables of times, a simulated twin, or other clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from colltune.core.choice import Choice
from colltune.core.errors import InputError
from colltune.core.hardware import Hardware
from colltune.core.model_answers import Model, Prediction
from colltune.core.sample import Status
from colltune.core.scenario import Scenario
from colltune.core.space import Space
from colltune.predict.bursts import Times
from colltune.predict.families import family_of_choice
from colltune.predict.model import PretrainedModel, load_model
from colltune.predict.transfer import TransferPrior, times_of
from colltune.store.dataset import load_grids
from colltune.store.journal import read_journal
from colltune.store.tuning import JOURNAL

SHIPPED = "shipped"  # in place of a file: the model that colltune ships


@dataclass(frozen=True)
class FamilyPrior:
    """A Model: what the forests of other clusters say of the family that a choice belongs to."""

    model: PretrainedModel
    hardware: Hardware

    def predict(self, pairs: Sequence[tuple[Scenario, Choice]]) -> Prediction:
        """Logarithm of the time over the best family's; NaN where a choice is of none, or nobody measured it."""
        log_time = np.full(len(pairs), np.nan)
        for collective in {scenario.collective for scenario, _ in pairs}:
            rows = [row for row, (scenario, _) in enumerate(pairs) if scenario.collective == collective]
            said = self.model.relative(collective, [pairs[row][0] for row in rows], self.hardware)
            for place, row in enumerate(rows):
                name = family_of_choice(collective, pairs[row][1])
                if name in said:
                    log_time[row] = said[name][place]
        return Prediction(log_time, np.where(np.isfinite(log_time), 0.5, np.inf))


@dataclass(frozen=True)
class PriorSources:
    """Times by collective of each source, and a pre-trained model, if any."""

    times: Mapping[str, Sequence[Times]]
    families: FamilyPrior | None = None

    def prior(self, space: Space, note: Callable[[str], None] = lambda _text: None) -> Model | None:
        """What is known of ``space``; None where no source measured two of its choices."""
        choices = space.all_choices
        found = TransferPrior(self.times.get(space.collective, ()), choices)
        if found.choices:
            note(f"{space.collective}: the prior knows {len(found.choices)} of {len(choices)} choices")
            return found
        if self.families is not None and self._knows(self.families, space):
            note(f"{space.collective}: starting from what other clusters found")
            return self.families
        note(f"{space.collective}: the prior knows nothing of it")
        return None

    @staticmethod
    def _knows(prior: FamilyPrior, space: Space) -> bool:
        said = prior.predict(list(space.pairs())).log_time
        return bool(np.isfinite(said).any())


def load_prior_sources(names: Sequence[str], hardware: Callable[[], Hardware]) -> PriorSources:
    """Each of ``names``: a tuning directory or its journal, a table of times, a model, or "shipped".

    Raises InputError for one that cannot be read as any of these.
    """
    times: dict[str, list[Times]] = {}
    families = None
    for name in names:
        path = Path(name)
        if name == SHIPPED or path.suffix == ".npz":
            families = FamilyPrior(load_model(None if name == SHIPPED else path), hardware())
            continue
        if not path.exists():
            raise InputError(f"there is no {name} to start from", f"Give a tuning, a table, a model, or {SHIPPED}")
        for collective, found in _times_of(path).items():
            times.setdefault(collective, []).append(found)
    return PriorSources(times, families)


def _times_of(path: Path) -> dict[str, Times]:
    journal = path / JOURNAL if path.is_dir() else path
    if journal.suffix == ".jsonl":
        return _of_journal(journal)
    return {grid.collective: times_of(grid) for grid in load_grids([path], 1)}


def _of_journal(journal: Path) -> dict[str, Times]:
    found: dict[str, dict[tuple[Scenario, Choice], list[float]]] = {}
    for sample in read_journal(journal).samples:
        if sample.status is Status.OK and sample.times_s:
            pairs = found.setdefault(sample.scenario.collective, {})
            pairs.setdefault((sample.scenario, sample.choice), []).append(sample.time_s)
    return {
        name: {pair: float(np.median(some)) for pair, some in pairs.items()} for name, pairs in sorted(found.items())
    }
