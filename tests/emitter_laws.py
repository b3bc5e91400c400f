"""The laws of an emitter, as a test class to inherit."""

import abc
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from colltune.catalog import Catalogue
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, PER_BLOCK, Choice, Scenario, SizeBasis
from colltune.emit.contract import Emitter

# Of these the first are for every change.
SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 12))]


def choices_in_file(catalogue: Catalogue, name: str) -> list[Choice]:
    """Those that a file of the library can say."""
    found = catalogue.choices(name)
    return [c for c in found if c == DEFAULT or catalogue.algorithm(name, c).in_file]


def random_rules(seed: int, collective: str, basis: SizeBasis, choices: Sequence[Choice]) -> RuleSet:
    """A rule set with up to three bounds per level, the same for the same seed."""
    draw = random.Random(f"{seed} {collective}")

    def bounds(largest: int) -> list[int | None]:
        return [*sorted({draw.randint(1, largest) for _ in range(draw.randint(0, 3))}), None]

    rules = []
    for max_ppn in bounds(16):
        for max_ranks in bounds(70):
            sizes = [None] if basis is SizeBasis.NONE else bounds(draw.choice([40, 4096, 2**24]))
            rules += [Rule(max_ppn, max_ranks, max_size, draw.choice(choices)) for max_size in sizes]
    return RuleSet(collective, basis, tuple(rules))


def scenarios_at_bounds(rule_set: RuleSet) -> Iterator[Scenario]:
    """Every scenario at a bound of ``rule_set`` and one step to each side, in all combinations; two ranks at least."""
    ppns = _around({rule.max_ppn for rule in rule_set.rules}, 1)
    ranks = _around({rule.max_ranks for rule in rule_set.rules}, 1)
    sizes = _around({rule.max_size for rule in rule_set.rules}, 0)
    for ppn in ppns:
        for nodes in sorted({max(1, count // ppn) for count in ranks} | {-(-count // ppn) for count in ranks}):
            if nodes * ppn < 2:
                continue
            per_block = rule_set.collective in PER_BLOCK and rule_set.basis is SizeBasis.TOTAL
            unit = nodes * ppn if per_block else 1
            blocks = {size // unit for size in sizes} | {-(-size // unit) for size in sizes}
            for size in sorted(blocks):
                yield Scenario(rule_set.collective, nodes, ppn, size)


def _around(bounds: set[int | None], least: int) -> list[int]:
    """Each bound and its neighbours, the least value, and one well beyond all; none below ``least``."""
    near = {bound + step for bound in bounds if bound is not None for step in (-1, 0, 1)}
    return sorted(value for value in near | {least, max(near, default=1) + 1000} if value >= least)


class EmitterContract(abc.ABC):
    """Inherit, and say which emitter is under test and what it can be asked to write."""

    @abc.abstractmethod
    def emitter(self) -> Emitter: ...

    @abc.abstractmethod
    def collectives(self) -> dict[str, tuple[SizeBasis, tuple[Choice, ...]]]:
        """Per collective the basis of its rules, and its choices, the default among them."""

    def rule_sets(self, seed: int) -> list[RuleSet]:
        rule_sets = [random_rules(seed, name, basis, choices) for name, (basis, choices) in self.collectives().items()]
        return [self.expressible(rule_set) for rule_set in rule_sets]

    def expressible(self, rule_set: RuleSet) -> RuleSet:
        """What the format can say of ``rule_set``; most say all."""
        return rule_set

    def parsed(self, files: Mapping[str, bytes], collective: str) -> RuleSet:
        """The rules of ``collective`` in ``files``."""
        return self.emitter().parse(files, collective)

    def require_decided(self, files: Mapping[str, bytes], rule_set: RuleSet) -> None:
        """Asserts that ``files`` decide every scenario at a bound as ``rule_set``."""
        parsed = self.parsed(files, rule_set.collective)
        for scenario in scenarios_at_bounds(rule_set):
            assert parsed.evaluate(scenario) == rule_set.evaluate(scenario), scenario

    @pytest.mark.parametrize("seed", SEEDS)
    def test_the_files_decide_as_the_rules(self, seed: int) -> None:
        emitter, rule_sets = self.emitter(), self.rule_sets(seed)
        files = emitter.emit(rule_sets)
        for rule_set in rule_sets:
            self.require_decided(files, rule_set)

    def test_equal_rules_give_equal_bytes_in_any_order(self) -> None:
        emitter, rule_sets = self.emitter(), self.rule_sets(1)
        assert emitter.emit(rule_sets) == emitter.emit(rule_sets[::-1]) == self.emitter().emit(self.rule_sets(1))

    def test_a_collective_without_rules_is_left_to_the_library(self) -> None:
        first, *others = self.rule_sets(2)
        self.require_decided(self.emitter().emit(others), RuleSet.always(first.collective, first.basis, DEFAULT))

    def test_the_environment_names_every_file(self) -> None:
        directory = Path("/opt/tuned")
        named = set(self.emitter().environment(directory).values())
        assert {str(directory / name) for name in self.emitter().emit(self.rule_sets(3))} <= named
