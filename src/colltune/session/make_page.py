"""Makes the HTML page of a tuning, and its summary in a picture: for the command line and the Python interface."""

from pathlib import Path

from colltune.report.html import PAGE, write_page
from colltune.report.picture import curves_picture, require_picture
from colltune.session.explain import load_findings


def make_page(directory: Path, out: Path | None = None, profile: Path | None = None) -> Path:
    """Writes the page of the tuning in ``directory``, by default into it, and returns where it is.

    ``profile``: of the application whose gain is told. Raises InputError where there is no tuning, the page cannot be
    written, or what makes it is not installed.
    """
    return write_page(load_findings(directory, profile), out or directory / PAGE, directory)


def make_picture(directory: Path, out: Path, profile: Path | None = None) -> Path:
    """The summary of the tuning in ``directory`` as an SVG or PNG file, for a ticket. Raises InputError as above."""
    require_picture(out)
    return curves_picture(load_findings(directory, profile)).save(out)
