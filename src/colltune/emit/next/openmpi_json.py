"""Rules to the JSON file of dynamic rules that Open MPI reads from 6.0 on, and back.

Written by what the reader of the development branch of 6.0 does (coll_tuned_dynamic_file.c); no release that reads it
was at hand. Names of collectives and keys are the reader's, with which the published schema disagrees. Ranges are
closed. The first communicator that fits decides, then the first size that holds; what no range covers is the library's
own decision. Beside the ranks a communicator is told by how its ranks lie: one on each node, or all on one. So of the
ranks per node the two ends are expressible.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from colltune.catalog.openmpi_components import OpenMpiCatalogue
from colltune.core.choice import DEFAULT, Choice
from colltune.core.decision_table import LEAST_RANKS, ByRanks, BySize, DecisionTable
from colltune.core.errors import InputError
from colltune.core.rules import RuleSet
from colltune.core.steps import Span, Steps
from colltune.emit.next.lint_openmpi_json import INFINITE, Distribution
from colltune.emit.openmpi.rules_file import LARGEST_RANKS, OpenMpiEmitter
from colltune.machine.files import read_record

JSON_FILE = "openmpi-coll-tuned.json"
_DEFAULT: BySize = Steps.always(DEFAULT)


class _Rule(msgspec.Struct):
    msg_size_min: int
    msg_size_max: int | Literal["inf"]
    alg: int
    faninout: int
    seg_size: int
    reqs: int


class _Communicator(msgspec.Struct):
    comm_size_min: int
    comm_size_max: int
    comm_rank_distribution: Distribution
    rules: tuple[_Rule, ...]


class _File(msgspec.Struct):
    """The file as ``OpenMpiJsonEmitter`` writes it."""

    collectives: dict[str, tuple[_Communicator, ...]]


class OpenMpiJsonEmitter:
    """Emitter for the file of 6.0."""

    name = "openmpi"

    def __init__(self, catalogue: OpenMpiCatalogue) -> None:
        self._catalogue = catalogue
        self._classic = OpenMpiEmitter(catalogue)

    def expressible(self, rule_set: RuleSet, shapes: Sequence[tuple[int, int]]) -> RuleSet:
        """As for the classic file, but apart for one rank per node, for a single node, and for what lies between."""
        if not DecisionTable.of(rule_set).by_ppn.bounds:
            return self._classic.expressible(rule_set, shapes)

        def agreed(some: Sequence[tuple[int, int]]) -> ByRanks:
            return DecisionTable.of(self._classic.expressible(rule_set, some)).by_ppn.last

        between = agreed([(nodes, ppn) for nodes, ppn in shapes if nodes > 1 and ppn > 1])
        spread = agreed([shape for shape in shapes if shape[1] == 1])
        packed = {ppn: agreed([(1, ppn)]).at(ppn) for nodes, ppn in sorted(shapes) if nodes == 1 and ppn > 1}
        return _joined(rule_set, spread, packed, between)

    def emit(self, rule_sets: Sequence[RuleSet]) -> dict[str, bytes]:
        collectives = {}
        for rule_set in sorted(rule_sets, key=lambda rule_set: rule_set.collective):
            communicators = list(self._communicators(rule_set))
            if communicators:
                collectives[rule_set.collective] = communicators
        document = {"rule_file_version": 3, "module": "tuned", "collectives": msgspec.to_builtins(collectives)}
        text = json.dumps(document, indent=1)
        return {JSON_FILE: text.encode("ascii") + b"\n"}

    def _communicators(self, rule_set: RuleSet) -> Iterator[_Communicator]:
        """The two special distributions first: they are parts of "any", and the first that fits decides."""
        spread, packed, between = _parted(rule_set)
        for name, by_ranks, special in (
            (Distribution.ONE_PER_NODE, spread, True),
            (Distribution.SINGLE_NODE, packed, True),
            (Distribution.ANY, between, False),
        ):
            for ranks, by_size in by_ranks:
                self._classic.emit([_on(rule_set, ranks, by_size)])  # refuses what neither format can say
                sizes = [
                    (size, choice)
                    for size, choice in by_size.spans()
                    if choice != DEFAULT or (special and by_size == _DEFAULT)
                ]
                if sizes:
                    most = LARGEST_RANKS if ranks.high is None else ranks.high
                    rules = (self._rule(rule_set.collective, size, choice) for size, choice in sizes)
                    yield _Communicator(ranks.low, most, name, tuple(rules))

    def _rule(self, collective: str, size: Span, choice: Choice) -> _Rule:
        columns = self._catalogue.columns(collective, choice)
        return _Rule(size.low, INFINITE if size.high is None else size.high, *columns)

    def environment(self, directory: Path) -> dict[str, str]:
        return {
            "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
            "OMPI_MCA_coll_tuned_dynamic_rules_filename": str(directory / JSON_FILE),
        }

    def parse(self, files: Mapping[str, bytes], collective: str) -> RuleSet:
        basis = self._catalogue.collective(collective).basis
        nothing = RuleSet.always(collective, basis)
        try:
            found = read_record(files[JSON_FILE], _File).collectives.get(collective, ())
            parts = {name: list(self._read(collective, name, found)) for name in Distribution}
        except (KeyError, ValueError) as error:
            raise InputError(
                f"{JSON_FILE}: the rules of {collective} cannot be read: {error!r}", "Write it again"
            ) from None
        between = _by_ranks(parts[Distribution.ANY], Steps.always(_DEFAULT))
        packed = {ranks.low: by_size for ranks, by_size in parts[Distribution.SINGLE_NODE]}
        return _joined(nothing, _by_ranks(parts[Distribution.ONE_PER_NODE], between), packed, between)

    def _read(
        self, collective: str, name: Distribution, found: Sequence[_Communicator]
    ) -> Iterator[tuple[Span, BySize]]:
        choices = {self._catalogue.columns(collective, c): c for c in reversed(self._catalogue.choices(collective))}
        for one in found:
            if one.comm_rank_distribution is not name:
                continue
            most = None if one.comm_size_max >= LARGEST_RANKS else one.comm_size_max
            pairs: list[tuple[int | None, Choice]] = []
            for rule in one.rules:
                high = None if isinstance(rule.msg_size_max, str) else rule.msg_size_max
                pairs += [(rule.msg_size_min - 1, DEFAULT)] if rule.msg_size_min else []
                pairs.append((high, choices[rule.alg, rule.faninout, rule.seg_size, rule.reqs]))
            yield Span(one.comm_size_min, most), Steps.of([*pairs, (None, DEFAULT)])


def _joined(like: RuleSet, spread: ByRanks, packed: Mapping[int, BySize], between: ByRanks) -> RuleSet:
    """Rules from what holds for one rank per node, for all of so many ranks on a node, and for everything else."""
    blocks: list[tuple[int | None, ByRanks]] = [(1, spread)]
    for ppn, by_size in sorted(packed.items()):
        blocks += [(ppn - 1, between), (ppn, _by_ranks([(Span(ppn, ppn), by_size)], between))]
    return DecisionTable(like.collective, like.basis, Steps.of([*blocks, (None, between)])).rule_set()


def _by_ranks(parts: Sequence[tuple[Span, BySize]], elsewhere: ByRanks) -> ByRanks:
    """``elsewhere``, and in the spans of ``parts`` their decisions."""
    bounds = [bound for span, _ in parts for bound in (span.low - 1, span.high)]

    def decided(span: Span) -> BySize:
        return next((by_size for part, by_size in parts if part.holds(span.low)), elsewhere.at(span.low))

    return Steps.cut((*bounds, *elsewhere.bounds), decided, least=1)


_Parts = list[tuple[Span, BySize]]


def _parted(rule_set: RuleSet) -> tuple[_Parts, _Parts, _Parts]:
    """The decisions for one rank per node and for a single node, where they differ from the last: for any communicator.

    Raises InputError for rules that tell other ranks per node apart.
    """
    by_ppn = DecisionTable.of(rule_set).by_ppn
    between, packed = by_ppn.last, []
    for span, by_ranks in by_ppn.spans(2):
        apart = by_ranks.combine(between, lambda one, other: None if one == other else one)
        for ranks, by_size in apart.spans(span.low):
            if by_size is None:
                continue
            if not ranks.low == ranks.high == span.low == span.high:
                raise InputError(
                    f"the rules of {rule_set.collective} ask for ranks per node, of which Open MPI's file knows one, "
                    "and all on a single node, alone",
                    "Reduce them by `expressible` first, or use the live selector",
                )
            packed.append((ranks, by_size))
    spread = [] if by_ppn.at(1) == between else list(by_ppn.at(1).spans(LEAST_RANKS))
    return spread, packed, list(between.spans(LEAST_RANKS))


def _on(rule_set: RuleSet, ranks: Span, by_size: BySize) -> RuleSet:
    """``by_size`` on ``ranks`` alone, without ranks per node."""
    by_ranks = _by_ranks([(ranks, by_size)], Steps.always(_DEFAULT))
    return DecisionTable(rule_set.collective, rule_set.basis, Steps.always(by_ranks)).rule_set()
