"""What is known of each MPI beside its algorithms: one record for each, which all rooms above ask.

Another MPI is a name in ``Library`` and a record here, a catalogue (`colltune.catalog`), and a back end with an emitter
(`colltune.bench.backends`).
"""

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from colltune.machine.described_mpi import VARIABLE, VARIABLES_FILE, Description
from colltune.mpi.installation import Launcher, Library

PLACE = "{directory}"  # in a value: the directory of the tuning
PROVISIONAL = "provisional"  # the folder of files with the provisional decisions too
_NEVER = re.compile(r"(?!)")


@dataclass(frozen=True)
class LibraryRecord:
    """How one MPI is recognised and started, and by which variables it reads files."""

    library: Library
    title: str  # for readers
    mark: bytes  # a text that only its library file holds
    launched: re.Pattern[str] = _NEVER  # what its launcher answers to --version; the group is the version
    launchers: tuple[tuple[int, Launcher], ...] = ((0, Launcher.GENERIC),)  # from which major version on which family
    version_option: str = ""  # by which mpicc says the version; "" where mpichversion does
    version: re.Pattern[str] = re.compile(r"MPICH Version:\s+(\S+)")  # in that answer
    packages: tuple[str, str] | None = None  # that hold what compiling needs: of Debian, of Fedora
    pmi: str = "pmi2"  # how its ranks find each other under a scheduler's launcher
    as_root: Mapping[str, str] = field(default_factory=dict)  # without which its launcher refuses to start as root
    # How variables begin that its launcher hands on to other nodes; all others it has to be told by -x. "": it hands on
    # all.
    hands_on: str = ""
    prefix: str = ""  # how environment variables begin that set control variables
    prefix_in_names: bool = False  # whether MPI_T has the prefix in the names of these variables
    lists_all: bool = True  # whether MPI_T lists every variable that the library reads
    ends_at_faults: bool = False  # whether a job ends at a fault in a file, which others pass over
    tells_nodes: bool = True  # whether a file of it can tell numbers of nodes apart
    files: Mapping[str, str] = field(default_factory=dict)  # by variable, the file of a tuning that it names
    switches: Mapping[str, str] = field(default_factory=dict)  # by variable, what makes the library read files
    described_version: str = ""  # where a user's description says it

    def launcher(self, version: str) -> Launcher:
        """The family of launchers that ``version`` brings."""
        major = int(re.match(r"\d*", version)[0] or 0)  # type: ignore[index]
        return max(since for since in self.launchers if since[0] <= major)[1]

    def control_variable(self, name: str) -> str:
        """The name by which MPI_T knows the environment variable ``name``; "" where it sets no control variable."""
        if not self.prefix or not name.startswith(self.prefix):
            return ""
        return name if self.prefix_in_names else name.removeprefix(self.prefix)

    def refusal(self, variables: Mapping[str, str]) -> str:
        """What ``variables`` set beside the files of a tuning and their switches, "" where that is nothing.

        An application gets these variables from whoever made the tuning, so nothing else may be among them.
        """
        for name, value in variables.items():
            named = {f"{PLACE}/{folder}{self.library}/{self.files.get(name)}" for folder in ("", f"{PROVISIONAL}/")}
            if name not in self.files and name not in self.switches:
                return f"{name!r}, by which {self.library} reads no file of a tuning"
            if value not in (named if name in self.files else {self.switches[name]}):
                return f"{name} to {value!r}, which is no file of a tuning"
        return ""

    def held(self, variables: Mapping[str, str], files: Collection[str]) -> dict[str, str]:
        """Those of ``variables`` that are switches, or name one of the ``files`` that the tuning holds."""
        named = {name: value.removeprefix(f"{PLACE}/") for name, value in variables.items() if name in self.files}
        return {name: value for name, value in variables.items() if name not in named or named[name] in files}


# In the order in which a library file is asked: Intel MPI and MVAPICH are made from MPICH, and hold its marks too.
RECORDS = (
    LibraryRecord(
        Library.INTELMPI,
        "Intel MPI",
        b"Intel(R) MPI Library",
        launched=re.compile(r"Intel\(R\) MPI Library.*?Version (\d+(?:\.\d+)*)"),
        launchers=((0, Launcher.HYDRA),),
        files={"I_MPI_TUNING_BIN": "intelmpi-tuning.dat"},
    ),
    LibraryRecord(Library.UNKNOWN, "an unknown MPI", b"MVAPICH"),
    LibraryRecord(
        Library.MPICH,
        "MPICH",
        b"MPICH Version:",
        launched=re.compile(r"HYDRA(?:[\s\S]*?Version:\s+(\S+))?"),
        launchers=((0, Launcher.HYDRA),),
        packages=("libmpich-dev", "mpich-devel"),
        prefix="MPIR_CVAR_",
        prefix_in_names=True,
        ends_at_faults=True,
        files={
            "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": "mpich-coll.json",
            "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE": "mpich-ch4-coll.json",
            "MPIR_CVAR_CH4_POSIX_COLL_SELECTION_TUNING_JSON_FILE": "mpich-posix-coll.json",
        },
    ),
    LibraryRecord(
        Library.OPENMPI,
        "Open MPI",
        b"Open MPI v",
        launched=re.compile(r"\((?:Open MPI|OpenRTE)\) (\d+(?:\.\d+)*\w*)"),
        launchers=((0, Launcher.ORTE), (5, Launcher.PRRTE)),
        version_option="--showme:version",
        version=re.compile(r"Open MPI (\S+)"),
        packages=("libopenmpi-dev", "openmpi-devel"),
        pmi="pmix",
        # Inside a container everyone is root.
        as_root={
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PRTE_ALLOW_RUN_AS_ROOT": "1",
            "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        },
        hands_on="OMPI_",
        prefix="OMPI_MCA_",
        lists_all=False,
        tells_nodes=False,
        files={
            "OMPI_MCA_coll_tuned_dynamic_rules_filename": "openmpi-coll-tuned.conf",
            "OMPI_MCA_coll_han_dynamic_rules_filename": "openmpi-coll-han.conf",
        },
        switches={"OMPI_MCA_coll_tuned_use_dynamic_rules": "1", "OMPI_MCA_coll_han_use_dynamic_file_rules": "1"},
    ),
)
_NO_MARK = b""
_BY_NAME = {str(record.library): record for record in RECORDS}


@dataclass(frozen=True)
class _DescribedRecord(LibraryRecord):
    """Of the MPI that the user describes, which takes variables and no file."""

    description: Description | None = None

    def refusal(self, variables: Mapping[str, str]) -> str:
        if self.description is None:
            return f"variables of an MPI that {VARIABLE} has to describe, and that is not set"
        return self.description.refusal(variables)

    def held(self, variables: Mapping[str, str], files: Collection[str]) -> dict[str, str]:  # noqa: ARG002
        return dict(variables)


def _described() -> LibraryRecord:
    files = {"": VARIABLES_FILE}
    if not os.environ.get(VARIABLE):
        return _DescribedRecord(Library.DESCRIBED, "an MPI that is not described here", _NO_MARK, files=files)
    from colltune.machine.described_file import described_mpi  # late: few name one

    here = described_mpi()
    assert here is not None
    return _DescribedRecord(
        Library.DESCRIBED, here.title, here.mark, described_version=here.version, files=files, description=here
    )


def record_of(mpi: str) -> LibraryRecord:
    """Of the MPI of that name (a ``Library``, or what a tuning says); that of an unknown one for any other name.

    Raises InputError for a described MPI whose description has a fault.
    """
    return _described() if mpi == Library.DESCRIBED else _BY_NAME.get(mpi, _BY_NAME[Library.UNKNOWN])


def library_in(content: bytes) -> Library:
    """The MPI whose library file holds ``content``. Raises as ``record_of``."""
    known = (_described(), *RECORDS)
    return next((mpi.library for mpi in known if mpi.mark != _NO_MARK and mpi.mark in content), Library.UNKNOWN)
