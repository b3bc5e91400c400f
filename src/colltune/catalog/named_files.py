"""By which variables each MPI reads the files of a tuning: one table, for who writes tunings and for who reads them."""

from collections.abc import Collection, Mapping

PLACE = "{directory}"  # in a value: the directory of the tuning
PROVISIONAL = "provisional"  # the folder of files with the provisional decisions too
# Of each MPI, in whose folder the files lie: the file that a variable names, and what a switch is set to.
FILES: Mapping[str, Mapping[str, str]] = {
    "mpich": {
        "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": "mpich-coll.json",
        "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE": "mpich-ch4-coll.json",
        "MPIR_CVAR_CH4_POSIX_COLL_SELECTION_TUNING_JSON_FILE": "mpich-posix-coll.json",
    },
    "openmpi": {
        "OMPI_MCA_coll_tuned_dynamic_rules_filename": "openmpi-coll-tuned.conf",
        "OMPI_MCA_coll_han_dynamic_rules_filename": "openmpi-coll-han.conf",
    },
}
SWITCHES: Mapping[str, Mapping[str, str]] = {
    "openmpi": {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1", "OMPI_MCA_coll_han_use_dynamic_file_rules": "1"}
}


def refusal_of(mpi: str, variables: Mapping[str, str]) -> str:
    """What ``variables`` set beside the files of a tuning for ``mpi`` and their switches, "" where that is nothing.

    An application gets these variables from whoever made the tuning, so nothing else may be among them.
    """
    files, switches = FILES.get(mpi, {}), SWITCHES.get(mpi, {})
    for name, value in variables.items():
        named = {f"{PLACE}/{folder}{mpi}/{files.get(name)}" for folder in ("", f"{PROVISIONAL}/")}
        if name not in files and name not in switches:
            return f"{name!r}, by which {mpi} reads no file of a tuning"
        if value not in (named if name in files else {switches[name]}):
            return f"{name} to {value!r}, which is no file of a tuning"
    return ""


def held_of(mpi: str, variables: Mapping[str, str], files: Collection[str]) -> dict[str, str]:
    """Those of ``variables`` that are switches, or name one of the ``files`` that the tuning holds."""
    named = {name: value.removeprefix(f"{PLACE}/") for name, value in variables.items() if name in FILES.get(mpi, {})}
    return {name: value for name, value in variables.items() if name not in named or named[name] in files}
