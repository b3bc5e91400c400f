"""The tables of native/common/collectives.h, of which all wrappers are made, hold every collective of MPI."""

import shutil
from pathlib import Path

import pytest

from commands import run_to_end

_COMMON = Path(__file__).resolve().parents[2] / "native" / "common"
_ASK = """#include "collectives.h"
#define NAME(NAME, UPPER, SIGNATURE, FORM, COUNT, DISPL, LARGE) NAME FORM CT_PARAMETERS(SIGNATURE, FORM, COUNT, DISPL);
CT_EACH_FUNCTION(NAME)
"""


@pytest.fixture(scope="module")
def functions() -> dict[str, str]:
    """By name, the form and the parameters of each function, as the preprocessor makes them."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    command = [compiler, "-E", "-P", "-x", "c", f"-I{_COMMON}", "-"]
    text = run_to_end(command, input=_ASK, check=True).stdout
    lines = (" ".join(line.split()) for line in text.split(";") if line.strip())
    return dict(line.split(" ", 1) for line in lines)


def test_every_form_of_every_collective_is_there(functions: dict[str, str]) -> None:
    # 17 collectives and 5 neighbourhood ones, in 3 forms and, but for the barrier, 2 widths.
    assert len(functions) == 3 * (2 * 22 - 1)
    assert functions.keys() >= {"Alltoallv", "Alltoallw_c", "Ialltoallv_c", "Alltoallv_init_c", "Ineighbor_alltoallw"}


def test_parameters_are_those_of_the_standard(functions: dict[str, str]) -> None:
    assert functions["Ibarrier"] == "NONBLOCKING ( MPI_Comm comm , MPI_Request *request)"
    assert functions["Bcast_init_c"] == (
        "PERSISTENT (void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm , MPI_Info info, "
        "MPI_Request *request)"
    )
    assert functions["Neighbor_alltoallw"] == (
        "BLOCKING (const void *send, const int send_counts[], const MPI_Aint send_displs[], "
        "const MPI_Datatype send_types[], void *recv, const int recv_counts[], const MPI_Aint recv_displs[], "
        "const MPI_Datatype recv_types[], MPI_Comm comm )"
    )
