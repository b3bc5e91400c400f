"""colltune: tunes the collectives of an MPI library inside the job that will use them."""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from colltune.core.extras import __version__

if TYPE_CHECKING:
    from colltune.alltoallv.call import tuned_alltoallv
    from colltune.api import (
        Tuned,
        compare,
        doctor,
        guidelines,
        lint,
        load,
        plan,
        predict,
        profile,
        run,
        tune,
        tune_alltoallv,
    )

__all__ = [
    "Tuned",
    "__version__",
    "compare",
    "doctor",
    "guidelines",
    "lint",
    "load",
    "plan",
    "predict",
    "profile",
    "run",
    "tune",
    "tune_alltoallv",
    "tuned_alltoallv",
]


def __getattr__(name: str) -> Any:
    """The interface is imported when it is asked for, so that the command line starts at once."""
    if name not in __all__:
        raise AttributeError(f"module 'colltune' has no attribute {name!r}")
    if name == "tuned_alltoallv":
        from colltune.alltoallv import call as alltoallv_call

        return alltoallv_call.tuned_alltoallv
    from colltune import api

    return getattr(api, name)


class _Interface(ModuleType):
    """The functions of the interface stay where rooms of the same names (profile, predict) are imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in __all__ or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Interface
