"""What is wrong with selection files, whoever wrote them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from colltune.catalog import load
from colltune.catalog.read import catalogue_of
from colltune.core.errors import InputError, on_os_error
from colltune.core.units import format_count
from colltune.emit.lint.check import Check, Severity, format_check
from colltune.emit.lint.selection_file import lint_files
from colltune.emit.openmpi.lint_han import lint_han_files
from colltune.emit.openmpi.lint_rules import lint_rules_files
from colltune.machine.file_formats import SELECTION, Format, require_format
from colltune.machine.files import read_file
from colltune.mpi.installation import Installation, Library
from colltune.mpi.libraries import record_of

_LIBRARIES = dict.fromkeys(SELECTION, Library.OPENMPI) | {Format.MPICH_TREES: Library.MPICH}


@dataclass(frozen=True)
class Linted:
    """What was found in ``contents``, the files by name.

    ``library``: who reads them, "mpich" or "openmpi", in the release ``version``; "described" of descriptions of an
    MPI, which colltune reads. ``formats``: of the files. ``note``: what the reader should know of that release, and of
    tunings that were predicted, "" for nothing. ``installation``: the MPI that was asked, if one was.
    """

    library: str
    version: str
    findings: tuple[Check, ...]
    contents: Mapping[str, bytes] = field(repr=False)
    formats: Mapping[str, Format] = field(repr=False)
    note: str = ""
    installation: Installation | None = field(default=None, repr=False)

    @property
    def errors(self) -> int:
        """How many of the findings are errors; the others are warnings."""
        return sum(check.severity is Severity.ERROR for check in self.findings)

    def __str__(self) -> str:
        """Each finding in up to four lines, and how many there are."""
        reader = f"{record_of(self.library).title} {self.version}".rstrip()
        if self.library == Library.DESCRIBED:
            reader = "COLLTUNE_MPI"
        warnings = len(self.findings) - self.errors
        counted = f"{format_count(self.errors, 'error')}, {format_count(warnings, 'warning')}"
        last = f"{format_count(len(self.contents), 'file')} for {reader}: {counted}"
        return "\n".join([*map(format_check, self.findings), last])


def lint_selection(
    files: Sequence[Path],
    environment: Mapping[str, str],
    *,
    mpi_version: str | None = None,
    mpiexec: str | None = None,
) -> Linted:
    """Finds what would abort, hang or be ignored in ``files``, or in those of tuning directories.

    ``mpi_version``: of the MPI that is to read them; None is the one that is found here, and where that is another than
    tunings are for, theirs. Raises InputError for files that cannot be read or are for two libraries.
    """
    contents = {str(path): _read(path) for given in files for path in _files_of(given)}
    if contents and all(name.endswith(".toml") for name in contents):
        return Linted(Library.DESCRIBED, "", tuple(_faults_of_descriptions(contents)), contents, {})
    formats = {name: _format_of(name, data) for name, data in contents.items()}
    library = _library_of(formats)
    installation = None
    if mpi_version is None:
        try:
            installation = _find(library, mpiexec, environment)
        except InputError:
            mpi_version = None if mpiexec else _tuned_version(files)
            if mpi_version is None:
                raise
    version = mpi_version or (installation.version if installation else "")
    findings = tuple(_findings(library, contents, formats, version))
    notes = [load(library, version).warning or "", *map(_predicted_text, files)]
    note = "; ".join(text for text in notes if text)
    return Linted(library, version, findings, contents, formats, note, installation)


def _predicted_text(given: Path) -> str:
    """The statement on a tuning that was predicted; "" for other files."""
    if not given.is_dir():
        return ""
    from colltune.store.tuning import load_tuning

    how = load_tuning(given).summary.predicted_text
    return f"{given} is {how}" if how else ""


def _tuned_version(files: Sequence[Path]) -> str | None:
    """Of the MPI that all ``files`` were tuned for, where they are tunings."""
    from colltune.store.tuning import load_tuning

    versions = {load_tuning(file).environment.mpi_version if file.is_dir() else None for file in files}
    return versions.pop() if len(versions) == 1 else None


def _files_of(given: Path) -> list[Path]:
    """``given``; of a tuning directory, the selection files in it. Raises InputError for any other directory."""
    if not given.is_dir():
        return [given]
    from colltune.store.tuning import MANIFEST, load_tuning

    if not (given / MANIFEST).is_file():
        raise InputError(f"{given} is a directory and holds no tuning", "Name its selection files, or a tuning")
    tuning = load_tuning(given)
    paths = [given / name for name in tuning.files if Path(name).parts[0] == tuning.environment.mpi]
    if not paths:
        raise InputError(
            f"{given} holds no selection file: the library's own choice stands everywhere", "There is nothing to lint"
        )
    return paths


def _format_of(name: str, data: bytes) -> Format:
    kind, packed = require_format(name, data, SELECTION, "selection file", "Give one of MPICH or Open MPI")
    if packed:
        raise InputError(f"{name} is gzipped, and no library reads that", f"Uncompress it: gunzip {name}")
    return kind


def _library_of(formats: Mapping[str, Format]) -> str:
    """The library that reads the files: "mpich" or "openmpi"."""
    libraries = {name: _LIBRARIES[of_file] for name, of_file in formats.items()}
    if not libraries:
        raise InputError("there is no file to lint", "Name a selection file")
    if len(set(libraries.values())) > 1:
        lists = "; ".join(f"{name} is for {record_of(library).title}" for name, library in libraries.items())
        raise InputError(f"the files are for two libraries: {lists}", "Lint them one library at a time")
    return next(iter(libraries.values()))


def _faults_of_descriptions(contents: Mapping[str, bytes]) -> Iterator[Check]:
    from colltune.machine.described_file import parse_description

    for name, data in contents.items():
        description, faults = parse_description(data)
        if description is not None:
            try:
                catalogue_of(description)
            except InputError as error:
                faults = [str(error)]
        for fault in faults:
            why = "colltune takes no MPI by a description that it cannot understand as a whole"
            yield Check(Severity.ERROR, name, 1, (), fault, why, "see docs/how-to/describe-an-mpi.md")


def _findings(library: str, contents: Mapping[str, bytes], formats: Mapping[str, Format], version: str) -> list[Check]:
    catalogue = load(library, version)
    lints: dict[Format, Callable[[Mapping[str, bytes]], list[Check]]] = {
        Format.MPICH_TREES: lambda files: lint_files(files, version, catalogue),
        Format.TUNED_RULES: lambda files: lint_rules_files(files, version, catalogue),
        Format.HAN_RULES: lambda files: lint_han_files(files, version),
    }
    of_each = ((lint, {name: contents[name] for name in contents if formats[name] is kind})
               for kind, lint in lints.items())  # fmt: skip
    return [check for lint, files in of_each for check in lint(files)]


def _find(library: str, mpiexec: str | None, environment: Mapping[str, str]) -> Installation:
    from colltune.mpi.detect import find_mpi

    here = find_mpi(mpiexec, environment, compiles=False)
    if here.library.value != library:
        raise InputError(
            f"{here.mpiexec} is {here.library} {here.version}, and the files are for {record_of(library).title}",
            f"Give --mpi-version, or an {record_of(library).title}'s --mpiexec",
        )
    return here


def _read(path: Path) -> bytes:
    with on_os_error(f"cannot read {path}", "Name a selection file"):
        return read_file(path, link=True)
