"""How an unchanged program gets MPI_Alltoallv by a table: libcolltune.so is loaded into it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from colltune.alltoallv.lookup_table import TABLE, load_table
from colltune.core.sample import Environment
from colltune.machine.compile import cache_directory, preload_variables
from colltune.mpi.detect import describe_machine, mpi_at_hand
from colltune.mpi.program import forwarded
from colltune.mpi.programs import library_for
from colltune.site.entry import fabric_here

_VARIABLE = "COLLTUNE_ALLTOALLV"


def with_alltoallv(
    command: Sequence[str], table: Path, environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Command and environment with libcolltune.so loaded into the program, and MPI_Alltoallv by ``table``.

    ``table``: the file, or the directory that `colltune tune alltoallv` wrote. Raises InputError for one of another
    MPI or machine.
    """
    table = table / TABLE if table.is_dir() else table
    if not table.is_file():
        load_table(table)  # which says why, whatever MPI is here
    installation = mpi_at_hand(command, environment)
    here = Environment(
        mpi=str(installation.library),
        mpi_version=installation.version,
        mpi_build=installation.build,
        machine=describe_machine(),
        nodes=0,
        ppn=0,
        thread_level="",
    )
    load_table(table, here.with_fabric(fabric_here(environment)))
    library = library_for(installation, cache_directory(environment))
    variables = {**preload_variables(library, environment), _VARIABLE: str(table.resolve())}
    options = forwarded(command[0], installation.library, variables)
    return [command[0], *options, *command[1:]], {**environment, **variables}
