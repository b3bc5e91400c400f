"""Where the commands print."""

from __future__ import annotations

import sys

from rich.console import Console

_FILE_WIDTH = 140


def make_console() -> Console:
    """The terminal; a wide page where the output goes to a file, which nobody wants cut to 80 columns."""
    return Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else _FILE_WIDTH)
