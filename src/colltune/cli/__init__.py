"""The command line: one file per command. The only place that prints, and that ends the process."""

import gc
import os
import sys

from colltune.cli.app import app
from colltune.cli.console import degrade_output, echo
from colltune.cli.stopping import ended_by_signals
from colltune.core.errors import ColltuneError

# A command makes many objects that live to its end, and few cycles: the collector is started less often than by default
# (700), where it takes a twentieth of the time of a short command.
OBJECTS_TO_COLLECT = 50_000


def main() -> None:
    """Runs the command; an error becomes one line and an exit code."""
    gc.set_threshold(OBJECTS_TO_COLLECT)
    degrade_output()
    try:
        with ended_by_signals():
            app(prog_name="colltune")
    except ColltuneError as error:
        echo(f"colltune: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone, as `colltune ... | head` does; there is nothing left to say to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
