"""The version of colltune, and the libraries that a plain install leaves out.

These are imported where they are used, and named as pip knows them if missing. colltune-study is one of them: a
distribution of the same repository, for people who study how tuning works.
"""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from colltune.core.errors import InputError

# Written by the build (pyproject.toml). A file, because importlib.metadata would delay every command.
_FILE = "version.txt"


def read_version(directory: Path) -> str:
    """The version that the build wrote into ``directory``; without a build that of the installed package.

    "0+unknown" for a source tree that was never installed.
    """
    try:
        return (directory / _FILE).read_text(encoding="ascii").strip()
    except OSError:
        return _installed("colltune") or "0+unknown"


def _installed(name: str) -> str:
    """The version of a distribution; "" where it is not installed."""
    # Imported late: it would delay every command.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return ""


__version__ = read_version(Path(__file__).parent)


_PACKAGE = {"sklearn": "scikit-learn", "vl_convert": "vl-convert-python"}


def extra(module: str, purpose: str, instead: str = "") -> Any:
    """The imported ``module``. Raises InputError where it is not installed: what it is for, and how to get it.

    ``instead``: what else the user may do, as in "or give --plots none".
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = _PACKAGE.get(module.partition(".")[0], module.partition(".")[0])
        raise InputError(
            f"{purpose} needs {package}", f"Run pip install {package}{', ' if instead else ''}{instead}"
        ) from error


@dataclass(frozen=True)
class CommandEntry:
    """A command, of colltune or of the study, before anything of it is imported.

    ``summary``: its line in the help. ``module``: with its package; "" for that of its name in ``colltune.cli``.

    ``command_class``: a class there that reads the arguments. ``passes_on``: what follows belongs to another program.
    ``is_group``: the command has commands itself.
    """

    summary: str
    module: str = ""
    passes_on: bool = False
    command_class: str = ""
    is_group: bool = False


_STUDY = "colltune-study"


def has_study() -> bool:
    """Whether colltune-study is installed, and of this release."""
    return _fits(_study_version())


def study(part: str) -> Any:
    """The entry point ``part`` of colltune-study; no other distribution can provide it.

    Raises InputError where that is not installed, is of another release, or cannot be imported.
    """
    from importlib.metadata import distribution

    how = "Run pip install ./packaging/study in the checkout of colltune"
    installed = _study_version()
    if not installed:
        raise InputError(f"this needs {_STUDY}, which is not installed", how)
    if not _fits(installed):
        raise InputError(f"{_STUDY} {installed} does not fit colltune {__version__}", how)
    try:
        (entry,) = distribution(_STUDY).entry_points.select(group="colltune.study", name=part)
        return entry.load()
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"{_STUDY} {installed} cannot be loaded: {error}", how) from error


def _study_version() -> str:
    return _installed(_STUDY)


def _fits(version: str) -> bool:
    """Whether ``version`` is of this release, but for what marks a state between two releases."""
    installed, ours = (text.partition(".dev")[0].partition("+")[0] for text in (version, __version__))
    return installed == ours
