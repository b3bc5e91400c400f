"""What is wrong in the files of a tuning, whoever made it: they are read before an application gets them."""

from collections.abc import Callable, Iterator

from colltune.catalog import load
from colltune.core.errors import InputError
from colltune.deploy.live_selector import FOLDER
from colltune.emit.intelmpi import FILE as INTEL_FILE
from colltune.emit.intelmpi import collectives_in, read_table, steps_of
from colltune.emit.live_rules import LIVE_FILE, live_faults
from colltune.emit.openmpi.han import HAN_FILE, parse_han
from colltune.machine.described_mpi import LIBRARY, VARIABLES_FILE, parse_variables
from colltune.mpi.libraries import PROVISIONAL, record_of
from colltune.store.tuning import Tuning


def _read_intel(data: bytes) -> None:
    for collective in collectives_in(read_table(data)).values():
        steps_of(collective)


def _read_variables(data: bytes) -> None:
    if why := record_of(LIBRARY).refusal(parse_variables(data)):
        raise InputError(why)


# Of the files that no lint knows.
_READERS: dict[str, Callable[[bytes], object]] = {
    f"openmpi/{HAN_FILE}": parse_han,
    f"intelmpi/{INTEL_FILE}": _read_intel,
    f"{LIBRARY}/{VARIABLES_FILE}": _read_variables,
}


def require_sound(tuning: Tuning, name: str) -> None:
    """Raises InputError with the first fault in the files of ``tuning``; ``name``: of it, for the message."""
    for fault in faults_in(tuning):
        raise InputError(f"{name}: {fault}", "Nothing was run. Tune again, or ask who made it")


def faults_in(tuning: Tuning) -> Iterator[str]:
    """What no MPI should be given of the files of ``tuning``, a line each."""
    from colltune.emit.lint.check import Severity
    from colltune.emit.lint.selection_file import lint_files
    from colltune.emit.openmpi.lint_rules import lint_rules_files

    here = tuning.environment
    known = {f"{here.mpi}/{file}" for file in record_of(here.mpi).files.values()}
    live = f"{FOLDER}/{LIVE_FILE}"
    catalogue = load(here.mpi, here.mpi_version)
    own: dict[str, bytes] = {}
    for name, data in tuning.files.items():
        plain = name.removeprefix(f"{PROVISIONAL}/")
        if plain == live:
            yield from (f"{name}: {fault}" for fault in live_faults(data, tuning.live, catalogue))
        elif plain in known and (read := _READERS.get(plain)) is not None:
            try:
                read(data)
            except InputError as error:
                yield f"{name}: {error.what}"
        elif plain in known:
            own[name] = data
        else:
            yield f"{name!r} is no file that {here.mpi} or the live selector reads"
    check = lint_rules_files if here.mpi == "openmpi" else lint_files
    checks = check(own, here.mpi_version, catalogue)
    yield from (f"{fault.file}: {fault.what}" for fault in checks if fault.severity is Severity.ERROR)
