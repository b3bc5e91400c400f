"""The pre-trained model: what it holds, its file, and what it says of a machine that nobody has measured.

The file is a NumPy archive of plain arrays and one JSON text: reading it runs no code. Its schema is numbered.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colltune.core.errors import InputError
from colltune.core.hardware import Hardware
from colltune.core.scenario import Scenario
from colltune.machine.arrays import Archive
from colltune.machine.files import parse_json, read_file
from colltune.predict.columns import COLUMNS, Floats, columns_of
from colltune.predict.relative import with_families
from colltune.predict.trees import Forest

SCHEMA = 1
FILE = "model.npz"
_LARGEST_BYTES = 64 << 20
# How far beyond the clusters it was trained on a model is asked, in doublings of nodes, ranks per node and size.
_BEYOND = 0.5


@dataclass(frozen=True)
class Range:
    """The log2 nodes, ppn and size that were trained on, least and greatest."""

    low: tuple[float, float, float]
    high: tuple[float, float, float]

    @classmethod
    def of(cls, scenarios: Sequence[Scenario]) -> Range:
        z = _logs(scenarios)
        return cls(tuple(z.min(axis=0).tolist()), tuple(z.max(axis=0).tolist()))

    def holds(self, scenarios: Sequence[Scenario]) -> NDArray[np.bool_]:
        """(n,)."""
        z = _logs(scenarios)
        inside = (z >= np.array(self.low) - _BEYOND) & (z <= np.array(self.high) + _BEYOND)
        return np.asarray(inside.all(axis=1))


def _logs(scenarios: Sequence[Scenario]) -> Floats:
    raw = np.array([(s.nodes, s.ppn, max(s.size_bytes, 1)) for s in scenarios], dtype=float).reshape(-1, 3)
    return np.asarray(np.log2(raw))


@dataclass(frozen=True, eq=False)
class FamilyForest:
    """A forest over algorithm families of one collective.

    ``kind`` "classifier": one output per family, its share of the votes. "relative": one output, the logarithm of time
    over best, with a column per family behind COLUMNS. ``threshold``: from where on its word was right often enough on
    clusters that it had not seen (a vote share; a gap of log times), None where it never was. ``precision``: how often.
    """

    kind: str
    families: tuple[str, ...]
    forest: Forest
    trained: Range
    threshold: float | None
    precision: float


@dataclass(frozen=True, slots=True)
class Opinion:
    """Of one scenario: the best family, or None where the model is not sure; how sure, and why."""

    family: str | None
    sureness: float
    reason: str


@dataclass(frozen=True)
class PretrainedModel:
    """Forests by collective, and the card of what they were trained on."""

    forests: Mapping[str, Sequence[FamilyForest]]
    card: Mapping[str, Any] = field(default_factory=dict)

    def relative(self, collective: str, scenarios: Sequence[Scenario], hardware: Hardware) -> dict[str, Floats]:
        """Per family, (n,): the logarithm of its time over the best one's; NaN outside of what was trained on."""
        found: dict[str, Floats] = {}
        for forest in self.forests.get(collective, ()):
            if forest.kind == "relative":
                values = _relative(forest, scenarios, hardware)
                values[~forest.trained.holds(scenarios)] = np.nan
                found |= {name: values[:, place] for place, name in enumerate(forest.families)}
        return found

    def knows(self, collective: str, scenarios: Sequence[Scenario]) -> list[bool]:
        """(n,): whether some forest was trained on clusters that are like each of ``scenarios``."""
        inside = np.zeros(len(scenarios), dtype=bool)
        for forest in self.forests.get(collective, ()):
            inside |= forest.trained.holds(scenarios)
        return [bool(one) for one in inside]

    def opinions(
        self, collective: str, scenarios: Sequence[Scenario], hardware: Hardware, now: Sequence[str | None]
    ) -> list[Opinion]:
        """Per scenario, a family better than ``now``, which is what the library runs by itself (None: unknown)."""
        said = [_opinions(one, scenarios, hardware, now) for one in self.forests.get(collective, ())]
        if not said:
            return [Opinion(None, 0.0, "no other cluster measured this collective")] * len(scenarios)
        return [_agreed(opinions) for opinions in zip(*said, strict=True)]


def _agreed(opinions: Sequence[Opinion]) -> Opinion:
    sure = [one for one in opinions if one.family is not None]
    if not sure:
        return max(opinions, key=lambda one: one.sureness)
    if len({one.family for one in sure}) > 1:
        return Opinion(None, 0.0, "tables of times and tables of best algorithms disagree")
    return max(sure, key=lambda one: one.sureness)


def _relative(forest: FamilyForest, scenarios: Sequence[Scenario], hardware: Hardware) -> Floats:
    """(n, k)."""
    x = with_families(columns_of(scenarios, [hardware] * len(scenarios)), forest.families)
    return np.asarray(forest.forest.predict(x).mean(axis=0)[:, 0].reshape(len(scenarios), -1))


_OUTSIDE = Opinion(None, 0.0, "no cluster that was trained on is like this")


def _opinions(
    forest: FamilyForest, scenarios: Sequence[Scenario], hardware: Hardware, now: Sequence[str | None]
) -> list[Opinion]:
    if forest.threshold is None:
        return [Opinion(None, 0.0, "other clusters do not agree among themselves")] * len(scenarios)
    inside = forest.trained.holds(scenarios).tolist()
    asked = [scenario for scenario, is_inside in zip(scenarios, inside, strict=True) if is_inside]
    if not asked:
        return [_OUTSIDE] * len(scenarios)
    if forest.kind == "classifier":
        x = columns_of(asked, [hardware] * len(asked))
        said = iter(_votes(forest, forest.forest.predict(x).mean(axis=0)))
    else:
        current = [name for name, is_inside in zip(now, inside, strict=True) if is_inside]
        said = iter(_gaps(forest, _relative(forest, asked, hardware), current))
    return [next(said) if is_inside else _OUTSIDE for is_inside in inside]


def _votes(forest: FamilyForest, shares: Floats) -> list[Opinion]:
    found = []
    for share in shares:
        place = int(share.argmax())
        sure = share[place] >= (forest.threshold or 1.0)
        reason = f"{share[place]:.0%} of the trees say {forest.families[place]}"
        found.append(Opinion(forest.families[place] if sure else None, float(share[place]), reason))
    return found


def _gaps(forest: FamilyForest, values: Floats, now: Sequence[str | None]) -> list[Opinion]:
    found = []
    for row, current in zip(values, now, strict=True):
        place = int(row.argmin())
        if current not in forest.families:
            found.append(Opinion(None, 0.0, "what the library runs by itself is of no known family"))
        else:
            gap = float(row[forest.families.index(current)] - row[place])
            sure = gap >= (forest.threshold or np.inf)
            reason = f"{forest.families[place]} is expected to be {np.exp(gap):.2f} times as fast as {current}"
            if forest.families[place] == current:
                reason = "what the library runs by itself is expected to be fastest"
            found.append(Opinion(forest.families[place] if sure else None, forest.precision if sure else 0.0, reason))
    return found


def save_model(model: PretrainedModel, path: Path, times: Mapping[str, NDArray[Any]] | None = None) -> None:
    """``times``: the arrays of the model of times, beside it. Raises InputError where it cannot be written."""
    arrays: dict[str, NDArray[Any]] = dict(times or {})
    described: dict[str, list[dict[str, Any]]] = {}
    for collective, forests in sorted(model.forests.items()):
        for place, one in enumerate(forests):
            described.setdefault(collective, []).append(
                {
                    "kind": one.kind,
                    "families": list(one.families),
                    "trained": asdict(one.trained),
                    "threshold": one.threshold,
                    "precision": one.precision,
                }
            )
            arrays |= {f"{collective}.{place}.{name}": array for name, array in one.forest.arrays().items()}
    head = {"schema": SCHEMA, "columns": list(COLUMNS), "forests": described, "card": dict(model.card)}
    arrays["head"] = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(buffer.getvalue())
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", "Give another place by --out") from error


def load_model(path: Path | None = None) -> PretrainedModel:
    """The model of a file, or the one that colltune ships. Raises InputError for a file that is no model."""
    try:
        data = resources.files("colltune.predict").joinpath(FILE).read_bytes() if path is None else None
        if data is None and path is not None:
            data = read_file(path, _LARGEST_BYTES, link=True)
        return _read(Archive(data or b""))
    except (OSError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(
            f"{path or 'the shipped model'} is not a model: {error!r}", "Make one by `colltune study train`"
        ) from error


def _read(arrays: Mapping[str, NDArray[Any]]) -> PretrainedModel:
    head = parse_json(bytes(arrays["head"]))
    if head["schema"] != SCHEMA or head["columns"] != list(COLUMNS):
        raise ValueError(f"it has schema {head['schema']}, and this colltune reads {SCHEMA}")
    forests: dict[str, list[FamilyForest]] = {}
    for collective, described in head["forests"].items():
        for place, one in enumerate(described):
            families = tuple(str(name) for name in one["families"])
            prefix = f"{collective}.{place}."
            own = {name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)}
            columns = len(COLUMNS) + (len(families) if one["kind"] == "relative" else 0)
            forest = Forest.from_arrays(own, columns)
            if forest.value.shape[1] != (len(families) if one["kind"] == "classifier" else 1):
                raise ValueError(f"{collective}: {forest.value.shape[1]} outputs")
            trained = Range(tuple(one["trained"]["low"]), tuple(one["trained"]["high"]))
            threshold = None if one["threshold"] is None else float(one["threshold"])
            forests.setdefault(collective, []).append(
                FamilyForest(one["kind"], families, forest, trained, threshold, float(one["precision"]))
            )
    return PretrainedModel(forests, head["card"])
