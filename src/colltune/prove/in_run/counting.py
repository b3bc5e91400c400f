"""Counts the calls of a program that match a rule: sets up the preloaded library, and reads the counts."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from colltune.catalog import load
from colltune.core.errors import InputError
from colltune.emit.live_rules import LIVE_FILE, LIVE_VARIABLE, LiveEmitter
from colltune.machine.compile import build_library, cache_directory
from colltune.machine.preload import preload_variables
from colltune.mpi.detect import mpi_at_hand
from colltune.prove.in_run.matched_calls import RuleEffect, read_effect
from colltune.store.tuning import Tuning

_COUNT, _RULES = "COLLTUNE_COUNT", "COLLTUNE_COUNT_RULES"


@dataclass(frozen=True)
class Counting:
    """``variables``: the environment that the program needs; empty where nothing is counted, because of ``failure``."""

    variables: Mapping[str, str] = field(default_factory=dict)
    place: Path | None = None
    failure: str = ""

    def finish(self) -> RuleEffect:
        """Reads the counts, after the program has ended."""
        if self.place is None:
            return RuleEffect(failure=self.failure)
        try:
            return read_effect(path for path in self.place.glob("count.*") if path.suffix != ".new")
        except InputError as error:
            return RuleEffect(failure=error.what)

    def discard(self) -> None:
        """Removes the files."""
        if self.place is not None:
            shutil.rmtree(self.place, ignore_errors=True)


def begin_counting(tuning: Tuning, environment: Mapping[str, str], command: Sequence[str]) -> Counting:
    """Counts the calls of ``command`` that runs under ``tuning``, by its files, or live where that is in force.

    ``environment``: of the program, with ``tuning`` in force; what is preloaded already stays.
    """
    try:
        installation = mpi_at_hand(command, environment, build=tuning.environment.mpi_build)
        library = build_library(installation.mpicc, cache_directory(environment))
        place = Path(tempfile.mkdtemp(prefix="count-", dir=cache_directory(environment)))
        variables = {**preload_variables(library, environment), _COUNT: str(place / "count")}
        if LIVE_VARIABLE not in tuning.variables:
            # As the live selector reads them, but without settings: looked up, and nothing is set.
            made = tuning.environment
            emitter = LiveEmitter(load(made.mpi, made.mpi_version), lambda _collective, _choice: ())
            (place / "rules").write_bytes(emitter.emit(list(tuning.rule_sets.values()))[LIVE_FILE])
            variables[_RULES] = str(place / "rules")
    except InputError as error:
        return Counting(failure=error.what)
    except OSError as error:
        return Counting(failure=f"{error.filename}: {error.strerror}")
    return Counting(variables, place)
