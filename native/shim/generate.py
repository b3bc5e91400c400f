#!/usr/bin/env python3
"""Writes wrappers.c, real.h and ../common/names.h: one wrapper for each collective of MPI 5.0, in every form and width.

Run it after a change: `python native/shim/generate.py`. A test compares its output with what is committed.
"""

from __future__ import annotations

import sys
from pathlib import Path

_SEND = "sendbuf sendcount sendtype"
_RECV = "recvbuf recvcount recvtype"
_REDUCE = "sendbuf recvbuf count datatype op"
_ALLTOALLV = "sendbuf sendcounts sdispls sendtype recvbuf recvcounts rdispls recvtype"
_ALLTOALLW = "sendbuf sendcounts sdispls sendtypes recvbuf recvcounts rdispls recvtypes"
# Parameters before the communicator.
COLLECTIVES = {
    "Barrier": "",
    "Bcast": "buffer count datatype root",
    "Gather": f"{_SEND} {_RECV} root",
    "Gatherv": f"{_SEND} recvbuf recvcounts displs recvtype root",
    "Scatter": f"{_SEND} {_RECV} root",
    "Scatterv": f"sendbuf sendcounts scatter_displs sendtype {_RECV} root",
    "Allgather": f"{_SEND} {_RECV}",
    "Allgatherv": f"{_SEND} recvbuf recvcounts displs recvtype",
    "Alltoall": f"{_SEND} {_RECV}",
    "Alltoallv": _ALLTOALLV,
    "Alltoallw": _ALLTOALLW,
    "Reduce": f"{_REDUCE} root",
    "Allreduce": _REDUCE,
    "Reduce_scatter": "sendbuf recvbuf recvcounts datatype op",
    "Reduce_scatter_block": "sendbuf recvbuf block_recvcount datatype op",
    "Scan": _REDUCE,
    "Exscan": _REDUCE,
    "Neighbor_allgather": f"{_SEND} {_RECV}",
    "Neighbor_allgatherv": f"{_SEND} recvbuf recvcounts displs recvtype",
    "Neighbor_alltoall": f"{_SEND} {_RECV}",
    "Neighbor_alltoallv": _ALLTOALLV,
    "Neighbor_alltoallw": "sendbuf sendcounts asdispls sendtypes recvbuf recvcounts ardispls recvtypes",
}
# Token: declaration ({count} and {displ} depend on the width), name, field of ct_call.
PARAMETERS = {
    "buffer": ("void *buffer", "buffer", ".send = buffer, .recv = buffer"),
    "sendbuf": ("const void *sendbuf", "sendbuf", ".send = sendbuf"),
    "recvbuf": ("void *recvbuf", "recvbuf", ".recv = recvbuf"),
    "count": ("{count} count", "count", ".send_count = count, .recv_count = count"),
    "sendcount": ("{count} sendcount", "sendcount", ".send_count = sendcount"),
    "recvcount": ("{count} recvcount", "recvcount", ".recv_count = recvcount"),
    "block_recvcount": ("{count} recvcount", "recvcount", ".recv_count = recvcount"),
    "sendcounts": ("const {count} sendcounts[]", "sendcounts", ".send_counts = sendcounts"),
    "recvcounts": ("const {count} recvcounts[]", "recvcounts", ".recv_counts = recvcounts"),
    "displs": ("const {displ} displs[]", "displs", ".recv_displs = displs"),
    "scatter_displs": ("const {displ} displs[]", "displs", ".send_displs = displs"),
    "sdispls": ("const {displ} sdispls[]", "sdispls", ".send_displs = sdispls"),
    "rdispls": ("const {displ} rdispls[]", "rdispls", ".recv_displs = rdispls"),
    "asdispls": ("const MPI_Aint sdispls[]", "sdispls", ".send_displs = sdispls"),
    "ardispls": ("const MPI_Aint rdispls[]", "rdispls", ".recv_displs = rdispls"),
    "datatype": ("MPI_Datatype datatype", "datatype", ".send_type = datatype, .recv_type = datatype"),
    "sendtype": ("MPI_Datatype sendtype", "sendtype", ".send_type = sendtype"),
    "recvtype": ("MPI_Datatype recvtype", "recvtype", ".recv_type = recvtype"),
    "sendtypes": ("const MPI_Datatype sendtypes[]", "sendtypes", ".send_types = sendtypes"),
    "recvtypes": ("const MPI_Datatype recvtypes[]", "recvtypes", ".recv_types = recvtypes"),
    "op": ("MPI_Op op", "op", ".op = op"),
    "root": ("int root", "root", ".root = root"),
    "comm": ("MPI_Comm comm", "comm", ".comm = comm"),
    "info": ("MPI_Info info", "info", ".info = info"),
    "request": ("MPI_Request *request", "request", ".request = request"),
}
FORMS = ("BLOCKING", "NONBLOCKING", "PERSISTENT")
_LINE = 118
_MACROS = r"""#include "shim.h"

#define CT__WRAP(NAME, DECLARED, ARGUMENTS, ...)                \
    static int ct__##NAME DECLARED                              \
    {                                                           \
        ct_call call = {__VA_ARGS__};                           \
        int code;                                               \
        if (!ct_enter(&call))                                   \
            return ct_real.NAME ARGUMENTS;                      \
        if (!ct_modules_before(&call, &code)) {                 \
            comm = call.made_on;                                \
            code = ct_real.NAME ARGUMENTS;                      \
            comm = call.comm;                                   \
        }                                                       \
        return ct_leave(&call, &code) ? code : ct_real.NAME ARGUMENTS; \
    }                                                           \
    CT__EXPORT(MPI_##NAME, PMPI_##NAME, NAME, DECLARED, ARGUMENTS)

#define CT__WRAP_MPIX(NAME, DECLARED, ARGUMENTS, ...)           \
    CT__WRAP(NAME, DECLARED, ARGUMENTS, __VA_ARGS__)            \
    CT__EXPORT(MPIX_##NAME, PMPIX_##NAME, NAME, DECLARED, ARGUMENTS)

#define CT__EXPORT(PLAIN, PROFILING, NAME, DECLARED, ARGUMENTS) \
    CT_EXPORT int PLAIN DECLARED;                               \
    CT_EXPORT int PROFILING DECLARED;                           \
    int PLAIN DECLARED                                          \
    {                                                           \
        if (ct_tool.NAME != NULL)                               \
            return ct_tool.NAME ARGUMENTS;                      \
        return ct_passes() ? ct_real.NAME ARGUMENTS : ct__##NAME ARGUMENTS; \
    }                                                           \
    int PROFILING DECLARED                                      \
    {                                                           \
        if (ct_passes() || ct_is_library(__builtin_return_address(0))) \
            return ct_real.NAME ARGUMENTS;                      \
        return ct__##NAME ARGUMENTS;                            \
    }
"""


def function_name(base: str, form: str, large: bool) -> str:
    """``("Bcast", "PERSISTENT", True)`` -> ``Bcast_init_c``."""
    name = {"BLOCKING": base, "NONBLOCKING": "I" + base.lower(), "PERSISTENT": base + "_init"}[form]
    return name + "_c" if large else name


def variants() -> list[tuple[str, str, str, bool, list[str]]]:
    """(name, collective, form, large, parameters) of every function."""
    found = []
    for base, text in COLLECTIVES.items():
        for form in FORMS:
            tokens = [*text.split(), "comm"]
            tokens += {"BLOCKING": [], "NONBLOCKING": ["request"], "PERSISTENT": ["info", "request"]}[form]
            for large in (False, True) if base != "Barrier" else (False,):
                found.append((function_name(base, form, large), base, form, large, tokens))
    return found


def declaration(tokens: list[str], large: bool) -> str:
    """The parameters as C declares them."""
    width = {"count": "MPI_Count", "displ": "MPI_Aint"} if large else {"count": "int", "displ": "int"}
    return ", ".join(PARAMETERS[token][0].format(**width) for token in tokens)


def fold(text: str, indent: int = 4) -> str:
    """Breaks a long line at its commas."""
    lines, line = [], ""
    for part in text.split(", "):
        more = f"{line}, {part}" if line else part
        if line and len(more) > _LINE:
            lines.append(line + ",")
            more = " " * indent + part
        line = more
    return "\n".join([*lines, line])


def wrapper(name: str, base: str, form: str, large: bool, tokens: list[str]) -> str:
    """The macro that makes one wrapper, under all its names."""
    arguments = ", ".join(PARAMETERS[token][1] for token in tokens)
    fields = [f".function = CT_{base.upper()}", f".form = CT_{form}", f".large = {str(large).lower()}"]
    fields += [PARAMETERS[token][2] for token in tokens]
    # Open MPI 4 has persistent collectives as MPIX_.
    macro = "CT__WRAP_MPIX" if form == "PERSISTENT" and not large else "CT__WRAP"
    return fold(f"{macro}({name}, ({declaration(tokens, large)}), ({arguments}), {', '.join(fields)})")


def main(directory: Path) -> None:
    head = "/* Made by generate.py; change that. */\n"
    real = [head + "#ifndef CT_REAL_H\n#define CT_REAL_H\n\n#include <mpi.h>\n", "/* The library's own functions. */"]
    real += ["typedef struct {"]
    real += [
        fold(f"    int (*{name})({declaration(tokens, large)})", 8) + ";" for name, _, _, large, tokens in variants()
    ]
    real += ["} ct_real_functions;\n", "#endif"]
    names = [head + "#ifndef CT_NAMES_H\n#define CT_NAMES_H\n", "#define CT_REAL_NAMES(X) \\"]
    names += [" \\\n".join(f"    X({name})" for name, *_ in variants()), "\n#endif"]
    (directory / "real.h").write_text("\n".join(real) + "\n", encoding="utf-8")
    (directory.parent / "common" / "names.h").write_text("\n".join(names) + "\n", encoding="utf-8")
    wrappers = [head + _MACROS, *(wrapper(*one) for one in variants())]
    (directory / "wrappers.c").write_text("\n".join(wrappers).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent)
