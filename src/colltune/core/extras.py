"""Libraries that a plain install leaves out: imported where they are used, named as pip knows them if missing."""

from importlib import import_module
from typing import Any

from colltune.core.errors import InputError

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
