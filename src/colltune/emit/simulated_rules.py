"""The rules of a simulated cluster: a file of our own, for people and programs. No MPI reads it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from colltune.catalog.simulated_catalogue import load_simulated
from colltune.core.choice import format_choice, parse_choice
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.scenario import SizeBasis
from colltune.machine.files import read_record

FILE = "rules.json"
_ABOUT = "Decisions in terms of the algorithms of a simulated cluster; no MPI library reads this file"


class _Rule(msgspec.Struct):
    max_ppn: int | None
    max_ranks: int | None
    max_size: int | None
    choice: str


class _Rules(msgspec.Struct):
    basis: SizeBasis
    rules: tuple[_Rule, ...]


class _File(msgspec.Struct):
    collectives: dict[str, _Rules]


class SimulatedEmitter:
    """One JSON object: per collective the basis of its sizes, and its rules in their order."""

    name = "simulated"

    def emit(self, rule_sets: Sequence[RuleSet]) -> dict[str, bytes]:
        collectives = {}
        for one in sorted(rule_sets, key=lambda rules: rules.collective):
            rules = (_Rule(*r.bounds, format_choice(r.choice)) for r in one.rules)
            collectives[one.collective] = _Rules(one.basis, tuple(rules))
        text = json.dumps({"about": _ABOUT, "collectives": msgspec.to_builtins(collectives)}, indent=1)
        return {FILE: text.encode() + b"\n"}

    def parse(self, files: Mapping[str, bytes], collective: str) -> RuleSet:
        try:
            written = read_record(files[FILE], _File).collectives.get(collective)
            if written is None:
                return RuleSet.always(collective, load_simulated().collective(collective).basis)
            rules = (Rule(one.max_ppn, one.max_ranks, one.max_size, parse_choice(one.choice)) for one in written.rules)
            return RuleSet(collective, written.basis, tuple(rules))
        except (KeyError, ValueError) as error:
            raise InputError(f"not the rules of a simulated cluster: {error!r}", "Tune it again") from error

    def environment(self, directory: Path) -> dict[str, str]:
        """None: there is no MPI to be told."""
        del directory
        return {}
