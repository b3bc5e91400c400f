"""Reads back what the emitter of a described MPI wrote."""

from collections.abc import Mapping

from colltune.core.decision_table import DecisionTable
from colltune.core.rules import Region, RuleSet, Span
from colltune.core.sample import DEFAULT, Choice, SizeBasis
from colltune.machine.described_mpi import VARIABLES_FILE, Description, Form, parse_variables


def rules_in(files: Mapping[str, bytes], description: Description, collective: str) -> RuleSet:
    """The rules of ``collective`` that the variables in ``files`` say."""
    form = description.forms[collective]
    basis = SizeBasis(description.collectives[collective]["basis"])
    table = DecisionTable.always(collective, basis)
    text = parse_variables(files.get(VARIABLES_FILE, b"")).get(form.variable)
    keys = {value: Choice(key) for key, value in form.values.items()}
    ranks, after = Span(0, None), 0
    for row in form.parse(text) if text is not None else ():
        most = _bound(row.get("ranks_high"), form)
        if most != ranks.high:
            before = -1 if ranks.high is None else ranks.high
            ranks, after = Span(int(row.get("ranks_low", before + 1)), most), 0
        sizes = Span(int(row.get("low", after)), _bound(row.get("high"), form))
        after = 0 if sizes.high is None else sizes.high + 1
        here = DecisionTable.always(collective, basis, keys.get(row["value"], DEFAULT))
        table = table.merge(here.restrict(Region(Span(0, None), ranks, sizes)))
    return table.rule_set()


def _bound(text: str | None, form: Form) -> int | None:
    return None if text is None or int(text) >= form.largest else int(text)
