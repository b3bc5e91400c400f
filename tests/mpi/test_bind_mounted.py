"""The MPI that counts is the one that is bound into a container: what lies at its path there, whatever the host has."""

import hashlib
import json
import os
import sys
import textwrap
from pathlib import Path

import pytest

import compiled
from colltune.mpi.installation import Installation
from commands import run_to_end


def _why_not() -> str:
    """What keeps this process from a mount of its own, as a container has it; "" for nothing."""
    if os.geteuid() != 0:
        return "a bind mount needs root"
    command = ["unshare", "-m", "--propagation", "private", "sh", "-c", "mount -t tmpfs none /mnt"]
    try:
        done = run_to_end(command)
    except OSError as error:
        return str(error)
    return done.stderr.strip() if done.returncode else ""


pytestmark = pytest.mark.skipif(_why_not() != "", reason=_why_not())

INSIDE = """
    import json, os, sys
    from colltune.core.errors import InputError
    from colltune.core.sample import Environment
    from colltune.mpi.detect import find_mpi
    from colltune.mpi.same import TunedMpi

    mpiexec, build, program = sys.argv[1:]
    found = find_mpi(mpiexec, os.environ)
    facts = {"libmpi": str(found.libmpi), "mpiexec": mpiexec}
    made = Environment(found.library.value, found.version, build, "a node", 1, 2, "single", facts)
    try:
        said = TunedMpi("tuned", made, {}, os.environ, {}).check_command([mpiexec, "-n", "2", program])
    except InputError as error:
        said = error.what
    print(json.dumps([found.build, said]))
"""


def inside(mpi: Installation, build: str, program: Path, bound: Path | None) -> tuple[str, str]:
    """The build that is found, and what stands against a tuning of ``build``, with ``bound`` in the library's place."""
    code = [sys.executable, "-c", textwrap.dedent(INSIDE), str(mpi.mpiexec), build, str(program)]
    bind = 'mount --bind "$0" "$1" && shift && exec "$@"' if bound is not None else 'shift && exec "$@"'
    command = ["unshare", "-m", "--propagation", "private", "sh", "-c", bind, str(bound), str(mpi.libmpi), *code]
    done = run_to_end(command, check=True)
    found, said = json.loads(done.stdout)
    return found, said


def test_a_library_that_is_bound_in_is_the_one_that_counts(mpi: Installation, tmp_path: Path) -> None:
    other = tmp_path / "libmpi.so"
    other.write_bytes(mpi.libmpi.read_bytes() + b"another build")  # what follows the sections is not loaded
    program = Path(compiled.program(mpi.mpicc, "one_sum.c"))
    host, container = (hashlib.sha256(path.read_bytes()).hexdigest() for path in (mpi.libmpi, other))
    assert inside(mpi, host, program, None) == (host, "")
    found, said = inside(mpi, host, program, other)
    assert found == container
    assert "tuned" in said  # a tuning of the host's library is refused
    assert inside(mpi, container, program, other) == (container, "")
    assert inside(mpi, container, program, None)[1] != ""
