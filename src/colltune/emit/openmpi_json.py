"""Rules to the JSON file of dynamic rules that Open MPI reads from 6.0 on, and back. Written by its documentation; no
release that reads it was at hand.

Ranges are closed, the first that holds decides, and what no range covers is the library's own decision, so no guard is
needed. Collectives, bases and preconditions are those of the classic file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from colltune.catalog.openmpi import OpenMpiCatalogue
from colltune.core.choice import DEFAULT, Choice
from colltune.core.decision_table import LEAST_RANKS
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.scenario import SizeBasis
from colltune.core.steps import Span
from colltune.emit.openmpi import LARGEST_RANKS, OpenMpiEmitter
from colltune.emit.without_ppn import by_ranks_of

JSON_FILE = "openmpi-coll-tuned.json"
_INFINITE = "inf"


class OpenMpiJsonEmitter:
    """Emitter for the file of 6.0."""

    name = "openmpi"

    def __init__(self, catalogue: OpenMpiCatalogue) -> None:
        self._catalogue = catalogue
        self._classic = OpenMpiEmitter(catalogue)

    def expressible(self, rule_set: RuleSet, shapes: Sequence[tuple[int, int]]) -> RuleSet:
        """As for the classic file, though this one could also compare whether all ranks share a node."""
        return self._classic.expressible(rule_set, shapes)

    def emit(self, rule_sets: Sequence[RuleSet]) -> dict[str, bytes]:
        self._classic.emit(rule_sets)  # refuses what neither format can say
        collectives = {}
        for rule_set in sorted(rule_sets, key=lambda rule_set: rule_set.collective):
            communicators = list(self._communicators(rule_set))
            if communicators:
                collectives[rule_set.collective] = communicators
        text = json.dumps({"rule_file_version": 3, "module": "tuned", "collectives": collectives}, indent=1)
        return {JSON_FILE: text.encode("ascii") + b"\n"}

    def _communicators(self, rule_set: RuleSet) -> Iterator[dict[str, Any]]:
        for ranks, by_size in by_ranks_of(rule_set, "Open MPI's file").spans(LEAST_RANKS):
            rules = [
                self._rule(rule_set.collective, size, choice) for size, choice in by_size.spans() if choice != DEFAULT
            ]
            if rules:
                most = LARGEST_RANKS if ranks.high is None else ranks.high
                shown = {"comm_size_min": ranks.low, "comm_size_max": most, "comm_rank_distribution": "any"}
                yield {**shown, "rules": rules}

    def _rule(self, collective: str, size: Span, choice: Choice) -> dict[str, Any]:
        algorithm, fanout, segment, requests = self._catalogue.columns(collective, choice)
        return {
            "msg_size_min": size.low,
            "msg_size_max": _INFINITE if size.high is None else size.high,
            "alg": algorithm,
            "faninout": fanout,
            "seg_size": segment,
            "reqs": requests,
        }

    def environment(self, directory: Path) -> dict[str, str]:
        return {
            "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
            "OMPI_MCA_coll_tuned_dynamic_rules_filename": str(directory / JSON_FILE),
        }

    def parse(self, files: Mapping[str, bytes], collective: str) -> RuleSet:
        basis = self._catalogue.collective(collective).basis
        try:
            found = json.loads(files[JSON_FILE])["collectives"].get(collective, [])
            return RuleSet(collective, basis, tuple(self._rules(collective, basis, found)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"{JSON_FILE}: the rules of {collective} cannot be read: {error!r}", "Write it again"
            ) from None

    def _rules(self, collective: str, basis: SizeBasis, found: Sequence[Mapping[str, Any]]) -> Iterator[Rule]:
        choices = {self._catalogue.columns(collective, c): c for c in reversed(self._catalogue.choices(collective))}
        least = 2
        for communicators in found:
            low, most = communicators["comm_size_min"], communicators["comm_size_max"]
            if low > least:
                yield Rule(None, low - 1, None, DEFAULT)
            ranks, size = (None if most >= LARGEST_RANKS else most), 0
            for rule in communicators["rules"]:
                if rule["msg_size_min"] > size:
                    yield Rule(None, ranks, rule["msg_size_min"] - 1, DEFAULT)
                bound = None if rule["msg_size_max"] == _INFINITE else rule["msg_size_max"]
                columns = (rule["alg"], rule["faninout"], rule["seg_size"], rule["reqs"])
                yield Rule(None, ranks, bound, choices[columns])
                size = (bound or 0) + 1
            if bound is not None and basis is not SizeBasis.NONE:
                yield Rule(None, ranks, None, DEFAULT)
            least = most + 1
        if not found or most < LARGEST_RANKS:
            yield Rule(None, None, None, DEFAULT)
