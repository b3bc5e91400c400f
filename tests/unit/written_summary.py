"""Summaries as tests write them down."""

from colltune.core.proven import Summary
from colltune.machine.files import fitted
from colltune.store.summary_json import WrittenSummary


def read_summary(written: object) -> Summary:
    """The inverse of ``write_summary``. Raises ValueError with the place of what is wrong."""
    return fitted(written, WrittenSummary).read()
