"""A terminal that cuts no words."""

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from colltune.cli.console import Visible, folded, visible

_FILE_WIDTH = 140


class Terminal(Console):
    """Goes on in the next line between words: where a terminal wraps, it cuts words and numbers.

    Controls are those of rich alone, and none in what is printed.
    """

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))

    def print(self, *objects: Any, **options: Any) -> None:
        if self.is_terminal and len(objects) == 1 and isinstance(objects[0], str) and "soft_wrap" not in options:
            objects = (folded(objects[0], self.width),)
        super().print(*objects, **options)


def make_console(*, err: bool = False) -> Console:
    """The terminal; a wide page where the output goes to a file, which nobody wants cut to 80 columns.

    ``err``: on standard error.

    Colours and the like are left out for NO_COLOR and in a file. ``soft_wrap=True`` prints a line as it is: a command.
    """
    stream = sys.stderr if err else sys.stdout
    file = stream.beneath if isinstance(stream, Visible) else stream if err else None
    width = None if stream.isatty() else _FILE_WIDTH
    return Terminal(file=file, markup=False, highlight=False, soft_wrap=True, width=width)
