"""Where two tunings decide differently. What `colltune report --diff` does."""

from pathlib import Path

from colltune.report.diff_text import TuningDifference, compare_decisions, compare_environments
from colltune.store.tuning import load_tuning


def diff(one: Path, other: Path) -> TuningDifference:
    """The differences between two tuning directories. Raises InputError where either holds no tuning."""
    first, second = load_tuning(one), load_tuning(other)
    environments = compare_environments(first.environment, second.environment)
    return TuningDifference(environments, *compare_decisions(first.rule_sets, second.rule_sets))
