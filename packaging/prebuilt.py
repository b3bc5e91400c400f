"""Puts colltune's C programs into the wheel, compiled for ABIs of MPI: a build hook of hatch.

COLLTUNE_ABIS says for which, and with which headers: "mpich=DIR openmpi=DIR abi=DIR", each DIR with an mpi.h. Without
it the wheel is pure, and its user needs a compiler. CC is the compiler. No library of an MPI has to be there. The tag
of the wheel is made from the oldest glibc that has all which the programs ask for.
"""

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "COLLTUNE_ABIS"
HEADER = "#include_next <mpi.h>\n"
# Libraries of MPI 3.1, as Cray's and MVAPICH's, have MPICH's or Open MPI's ABI with fewer functions and constants.
OLDER = f"{HEADER}#undef MPI_VERSION\n#define MPI_VERSION 3\n#undef MPI_ERRORS_ABORT\n"
# By folder of the wheel, what mpi.h is. MPICH's is that of the standard ABI by a switch.
ABIS = {"mpich": HEADER, "mpich-3": OLDER, "openmpi": HEADER, "openmpi-3": OLDER, "abi": f"#define MPI_ABI\n{HEADER}"}
PROGRAMS = (("agent",), ("agent", "alltoallv_measure", "alltoallv"), ("conformance",))
LIBRARIES = (("alltoallv",),)
OLDEST_GLIBC = 17  # 2.17: no policy of PyPI is older for all architectures
# As the wrapper of an MPI: compiles, or links. What stands before any MPI is linked as needed, so to none.
WRAPPER = """#!/bin/sh
link="-s -Wl,--build-id=none"
mpi="-Wl,--as-needed -lrt -lpthread -Wl,--no-as-needed {stub} -Wl,--enable-new-dtags -Wl,-rpath,{place}"
case " $* " in
*" -c "*) link= mpi= ;;
*" -Wl,--as-needed "*) mpi= ;;
*" -shared "*) ;;
*) link="$link -pie" ;;
esac
exec {cc} -fPIC {headers} "$@" $link $mpi
"""


class PrebuiltHook(BuildHookInterface):  # type: ignore[type-arg]
    """``place``: what is put into the wheel, until it is written."""

    place: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        named = dict(word.split("=", 1) for word in os.environ.get(VARIABLE, "").split())
        if not named or version == "editable":
            return
        if unknown := set(named) - set(ABIS):
            raise ValueError(f"{VARIABLE} names {', '.join(sorted(unknown))}; there are {', '.join(ABIS)}")
        sys.path.insert(0, str(Path(self.root, "src")))
        self.place = Path(tempfile.mkdtemp())
        make(self.place, {abi: Path(place).resolve() for abi, place in named.items()}, os.environ.get("CC", "cc"))
        build_data["force_include"][str(self.place / "ready")] = "colltune/_native/ready"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_2_{glibc_of(self.place / 'ready')}_{platform.machine()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        del version, build_data, artifact_path
        if self.place is not None:
            shutil.rmtree(self.place)


def make(place: Path, mpis: Mapping[str, Path], cc: str) -> None:
    """Writes ready/ABI/PROGRAM into ``place``, by the compiler command ``cc``. Raises InputError where that fails."""
    from colltune.machine.compile import ENTRY, Compilation, compile_source, library_sources
    from colltune.machine.prebuilt import CORE, DIRECTORY_PLACE, LIBRARY_PLACE, OF_OBJECT, asked_of_mpi, read_symbols

    stub = place / "stub.so"
    compilers = {}
    for abi, there in mpis.items():
        compiler, before = place / f"{abi}-cc", place / abi
        before.mkdir()
        (before / "mpi.h").write_text(ABIS[abi])
        headers = f"-I{before} -I{there}"
        compiler.write_text(WRAPPER.format(cc=cc, headers=headers, stub=stub, place=DIRECTORY_PLACE))
        compiler.chmod(0o700)
        compilers[abi] = str(compiler)
    any_one = next(iter(compilers.values()))
    jobs = [(any_one, library_sources(any_one, LIBRARY_PLACE)[1], f"{ENTRY}.so")]
    for folder, compiler in compilers.items():
        (place / "ready" / folder).mkdir(parents=True)
        jobs += [(compiler, Compilation.of(compiler, names), f"{folder}/{'+'.join(names)}") for names in PROGRAMS]
        jobs += [
            (compiler, Compilation.of(compiler, names, "-shared", "-fPIC"), f"{folder}/{'+'.join(names)}.so")
            for names in LIBRARIES
        ]
        jobs.append((compiler, library_sources(compiler, LIBRARY_PLACE)[0], f"{folder}/{CORE}.so"))
    # Of several programs, most are made from sources that another is made from too.
    objects: dict[tuple[str, ...], Path] = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        running = []
        for compiler, source, _ in jobs:
            for key, path in zip(keys(compiler, source), source.sources, strict=True):
                if key not in objects:
                    objects[key] = place / f"{len(objects)}.o"
                    command = [compiler, *source.flags, "-c", str(path)]
                    running.append(pool.submit(compile_source, command, path.stem, objects[key]))
        for compiling in running:
            compiling.result()
    # In place of an MPI's library: each name is there, whatever it is of. Most linkers take nothing for granted.
    names = {name for path in objects.values() for name in asked_of_mpi(read_symbols(path.read_bytes(), OF_OBJECT))}
    text = "".join(f"void {name}(void) {{}}\n" for name in sorted(names))
    command = [*shlex.split(cc), "-shared", "-fPIC", f"-Wl,-soname,{LIBRARY_PLACE}", "-xc", "-", "-o", str(stub)]
    subprocess.run(command, check=True, input=text.encode())
    for compiler, source, name in jobs:
        parts = [str(objects[key]) for key in keys(compiler, source)]
        compile_source([compiler, *source.flags, *parts], name, place / "ready" / name)


def keys(compiler: str, source: Any) -> list[tuple[str, ...]]:
    """Of its objects: what decides them. A source finds its headers wherever those of others are looked for too."""
    flags = [flag for flag in source.flags if not flag.startswith(("-I", "-shared", "-fPIC"))]
    return [(compiler, *flags, str(path)) for path in source.sources]


def glibc_of(directory: Path) -> int:
    """The minor version of the oldest glibc 2 that has all which the programs in ``directory`` ask for."""
    programs = [path.read_bytes() for path in directory.rglob("*") if path.is_file()]
    return max(OLDEST_GLIBC, *(int(minor) for data in programs for minor in re.findall(rb"\0GLIBC_2\.(\d+)", data)))
