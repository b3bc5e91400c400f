"""What runs of the application say of the rules (`run --measure`), as text."""

from collections.abc import Sequence

from colltune.core.switchback import Standing
from colltune.core.text_table import TextTable
from colltune.core.units import format_count
from colltune.judge import wording


def standing_text(standing: Standing) -> str:
    """A sentence on what the application says of a choice."""
    calls, whole = wording.text(standing.faster_in_calls), wording.text(standing.faster)
    text = (
        f"{standing.choice} in the application: speed-up of the calls {calls}, with all that lies between {whole}:"
        f" {standing.verdict}; {format_count(standing.pairs, 'pair')} of blocks, last {standing.last}"
    )
    return f"{text}; switched off on {format_count(standing.off, 'communicator')}" if standing.off else text


def applications_table(standings: Sequence[Standing], title: str = "in the application") -> TextTable:
    """A row for each choice and kind of call."""
    headers = ("calls of", "choice", "pairs>", "speed-up in them>", "with all between>", "verdict", "last run")
    table = TextTable(headers, title)
    for standing in standings:
        table.add_row(*application_row(standing))
    return table


def application_row(standing: Standing) -> tuple[str, ...]:
    """The calls, the choice, how many pairs, the ratio in the calls and with all between, the finding, the last run."""
    says = f"{standing.verdict}, switched off" if standing.off else str(standing.verdict)
    ratios = wording.text(standing.faster_in_calls), wording.text(standing.faster)
    return standing.place, str(standing.choice), str(standing.pairs), *ratios, says, standing.last
