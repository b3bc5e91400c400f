"""The choice ``nb`` of a blocking collective: MPICH then makes the non-blocking call and waits for it.

So ``nb`` of allgather runs whatever the rules of iallgather say. A file cannot tell the two calls apart: they come on
the same communicator. Measured under the library's own trees, ``nb`` would be another algorithm with such a file.
"""

from collections.abc import Iterable

from colltune.core.decision_table import DecisionTable
from colltune.core.errors import InputError
from colltune.core.rules import RuleSet
from colltune.core.sample import NONBLOCKING, Choice, blocking_form

NB = Choice("nb")


def runs_nb(rule_set: RuleSet) -> bool:
    """Whether some rule hands calls to the non-blocking form."""
    return any(choice == NB for _, choice in DecisionTable.of(rule_set).walk())


def require_apart(rule_sets: Iterable[RuleSet]) -> None:
    """Raises InputError where a collective has a rule for ``nb``, and its non-blocking form has rules."""
    by_name = {rule_set.collective: rule_set for rule_set in rule_sets}
    for name in NONBLOCKING:
        blocking = by_name.get(blocking_form(name))
        if name in by_name and by_name[name].departs and blocking is not None and runs_nb(blocking):
            raise InputError(
                f"a rule of {blocking.collective} makes the non-blocking call, which the rules of {name} would change",
                f"Tune {name} into another directory, or {blocking.collective} and {name} together",
            )
