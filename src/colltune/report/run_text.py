"""What runs of the application say of the rules (`run --measure`), as text."""

from collections.abc import Sequence

from colltune.core.switchback import Standing
from colltune.core.text_table import TextTable
from colltune.core.units import format_count
from colltune.judge import wording


def standing_text(one: Standing) -> str:
    """A sentence on what the application says of a choice."""
    calls, whole = wording.text(one.faster_in_calls), wording.text(one.faster)
    text = (
        f"{one.choice} in the application: speed-up of the calls {calls}, with all that lies between {whole}:"
        f" {one.verdict}; {format_count(one.pairs, 'pair')} of blocks, last {one.last}"
    )
    return f"{text}; switched off on {format_count(one.off, 'communicator')}" if one.off else text


def applications_table(found: Sequence[Standing], title: str = "in the application") -> TextTable:
    """A row for each choice and kind of call."""
    headers = ("calls of", "choice", "pairs>", "speed-up in them>", "with all between>", "verdict", "last run")
    table = TextTable(headers, title)
    for one in found:
        table.add_row(*application_row(one))
    return table


def application_row(one: Standing) -> tuple[str, ...]:
    """The calls, the choice, how many pairs, the ratio in the calls and with all between, the finding, the last run."""
    says = f"{one.verdict}, switched off" if one.off else str(one.verdict)
    ratios = wording.text(one.faster_in_calls), wording.text(one.faster)
    return one.place, str(one.choice), str(one.pairs), *ratios, says, one.last
