"""Rules to environment variables of an MPI that its user describes: the last resort, where no file can be written."""

from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path

from colltune.core.decision_table import DecisionTable, agreed
from colltune.core.errors import InputError
from colltune.core.rules import RuleSet, Steps
from colltune.core.sample import DEFAULT
from colltune.emit.without_ppn import by_ranks_of, merge_ppn
from colltune.machine.described_mpi import LIBRARY, VARIABLES_FILE, Description, Form


class DescribedEmitter:
    """The variables stand in a file of the tuning, a line each, and are read from there."""

    name = LIBRARY

    def __init__(self, description: Description) -> None:
        self._description = description

    def expressible(self, rule_set: RuleSet, shapes: Sequence[tuple[int, int]]) -> RuleSet:
        """What the form can say of ``rule_set``: where it knows no ranks, what all ``shapes`` agree on."""
        form, basis = self._description.forms[rule_set.collective], rule_set.basis
        rules = merge_ppn(rule_set, shapes)
        if not form.tells_ranks:
            by_ranks = by_ranks_of(rules, form.variable)
            sizes = reduce(agreed, (by_ranks.at(nodes * ppn) for nodes, ppn in shapes))
            rules = DecisionTable(rule_set.collective, basis, Steps.always(Steps.always(sizes))).rule_set()
        return rules

    def emit(self, rule_sets: Sequence[RuleSet]) -> dict[str, bytes]:
        variables = {}
        for rule_set in rule_sets:
            if rule_set.departs:
                form = self._description.forms[rule_set.collective]
                variables[form.variable] = form.separator.join(self._ranges(form, rule_set))
        if variables:
            variables |= self._description.needs
        text = "".join(f"{name}={value}\n" for name, value in sorted(variables.items()))
        return {VARIABLES_FILE: text.encode("ascii")}

    def _ranges(self, form: Form, rule_set: RuleSet) -> Iterator[str]:
        by_ranks = by_ranks_of(rule_set, form.variable)
        if by_ranks.bounds and not form.tells_ranks:
            raise InputError(f"{form.variable} knows no numbers of ranks", "Reduce the rules by `expressible` first")
        for ranks, by_size in by_ranks.spans():
            for sizes, choice in by_size.spans():
                value = form.library if choice == DEFAULT else form.values.get(choice.algorithm)
                if value is None and choice != DEFAULT:
                    raise InputError(f"{form.variable} has no value for {choice}", "Tune again by this description")
                if value is not None:
                    high, most = (form.largest if span.high is None else span.high for span in (sizes, ranks))
                    yield form.rule.format(value=value, low=sizes.low, high=high, ranks_low=ranks.low, ranks_high=most)

    def environment(self, directory: Path) -> dict[str, str]:  # noqa: ARG002
        """What the description needs alone; the others depend on the rules (``variables_for``)."""
        return dict(self._description.needs)
