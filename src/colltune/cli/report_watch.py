"""`colltune report --watch`: what a running application has measured by now."""

from pathlib import Path


def watch_run(tuned: Path, every: str, *, once: bool) -> None:
    """Says what the latest run with `run --measure` saved by now, until it ends; ``once``: and no more.

    The intervals hold whenever one looks. It only reads files.
    """
    import time

    from colltune.cli.console import echo
    from colltune.cli.terminal import make_console
    from colltune.core.units import parse_duration
    from colltune.session.application.measure_run import latest_gains
    from colltune.session.gain_text import gain_line, gain_page

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
