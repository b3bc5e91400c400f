"""What runs of the application say of the rules (`run --measure`), as text."""

from collections.abc import Sequence

from colltune.core.switchback import Interval, Standing
from colltune.core.text_table import TextTable
from colltune.core.units import format_count


def standing_text(one: Standing) -> str:
    """A sentence on what the application says of a choice."""
    text = (
        f"{one.choice} in the application: speed-up of the calls {ratio_text(one.faster_in_calls)}, with all that lies"
        f" between {ratio_text(one.faster)}: {one.finding}; {format_count(one.pairs, 'pair')} of blocks,"
        f" last {one.last}"
    )
    return f"{text}; switched off on {format_count(one.off, 'communicator')}" if one.off else text


def applications_table(found: Sequence[Standing], title: str = "in the application") -> TextTable:
    """A row for each choice and kind of call."""
    headers = ("calls of", "choice", "pairs>", "in the calls>", "with all between>", "says", "last run")
    table = TextTable(headers, title)
    for one in found:
        table.add_row(*application_row(one))
    return table


def application_row(one: Standing) -> tuple[str, ...]:
    """The calls, the choice, how many pairs, the ratio in the calls and with all between, the finding, the last run."""
    says = f"{one.finding}, switched off" if one.off else str(one.finding)
    ratios = ratio_text(one.faster_in_calls), ratio_text(one.faster)
    return one.place, str(one.choice), str(one.pairs), *ratios, says, one.last


def ratio_text(interval: Interval) -> str:
    """``1.20 (1.05 to 1.37)``; "not known" where there were too few pairs for bounds."""
    if interval.low is None and interval.high is None:
        return "not known"
    return f"{interval.estimate:.2f} ({interval.bounds_text()})"
