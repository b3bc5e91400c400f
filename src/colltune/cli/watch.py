"""`colltune watch`: what a running application has measured by now."""

from __future__ import annotations

from typing import Annotated

import typer

from colltune.cli.options import Tuned


def watch(
    tuned: Tuned,
    every: Annotated[str, typer.Option(help="How often to look.")] = "10s",
    once: Annotated[bool, typer.Option("--once", help="Look once, and end.")] = False,
) -> None:
    """Look at the latest run with `run --measure` while it works: what the tuning saved by now.

    The intervals hold whenever one looks. Ends when the run ends; it only reads files.
    """
    import time

    from colltune.cli.console import echo
    from colltune.cli.terminal import make_console
    from colltune.core.units import parse_duration
    from colltune.session.gain_text import gain_line, gain_page
    from colltune.session.measure_run import latest_gains

    pause_s, said = max(parse_duration(every), 0.1), ""
    while True:
        gains, has_ended = latest_gains(tuned)
        line = " ".join(f"{gain_line(gain)}." for gain in gains) or "No rank has begun to measure."
        if line != said:
            echo(line)
            said = line
        if once or has_ended:
            for gain in gains:
                echo("\n".join(["", *gain_page(gain, make_console().width)[2:]]))
            return
        time.sleep(pause_s)
