"""The live selector in front of a program, on either library; plain, or under sanitizers."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from jobs import C_FLAGS, OPENMPI, QUIET

from colltune.bench.workbench import MachineOptions, Workbench, open_workbench
from colltune.core.rules import RuleSet
from colltune.emit.live_rules import LIVE_FILE, LiveEmitter
from colltune.machine.compile import build_library
from colltune.mpi.installation import Installation
from commands import run_to_end

NATIVE = Path(__file__).parents[1] / "native"
ON_EITHER = {**OPENMPI, **QUIET}


@dataclass
class Live:
    """A library with the selector compiled for it."""

    bench: Workbench
    preload: Path
    directory: Path

    def run(
        self, ranks: int, command: Sequence[str], rules: bytes, beside: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        (self.directory / LIVE_FILE).write_bytes(rules)
        loaded = f"{self.preload}:{beside}" if beside else str(self.preload)
        inside = {"LD_PRELOAD": loaded, "COLLTUNE_SELECT": str(self.directory / LIVE_FILE), **variables}
        started = self.bench.command(command, inside, ppn=ranks)
        environment = {
            **os.environ,
            **ON_EITHER,
            "MPIR_CVAR_COLLECTIVE_FALLBACK": "error",
            **started.environment,
            **inside,
        }
        return run_to_end(started.argv, env=environment)

    def emit(self, *rule_sets: RuleSet) -> bytes:
        return LiveEmitter(self.bench.catalogue, self.bench.settings).emit(rule_sets)[LIVE_FILE]


def live(installation: Installation, directory: Path) -> Live:
    bench = open_workbench(MachineOptions(mpiexec=str(installation.mpiexec), ppn=4), {**os.environ, **ON_EITHER})
    return Live(bench, build_library(installation.mpicc), directory)


def shared(source: str, target: Path) -> Path:
    compiler = shutil.which("cc") or "gcc"
    command = [compiler, *C_FLAGS, "-shared", "-fPIC", str(NATIVE / source), "-o", str(target), "-ldl"]
    subprocess.run(command, check=True, timeout=60)
    return target


def shared_with_mpi(mpi: Live, source: str) -> Path:
    """A library that calls MPI."""
    target = (mpi.directory / source).with_suffix(".so")
    build = [str(mpi.bench.installation.mpicc), *C_FLAGS, "-shared", "-fPIC", str(NATIVE / source), "-o", str(target)]
    subprocess.run([*build, "-ldl", "-lm"], check=True, timeout=60)
    return target


def program(mpi: Live, source: str) -> str:
    target = mpi.directory / Path(source).stem
    subprocess.run(
        [str(mpi.bench.installation.mpicc), *C_FLAGS, str(NATIVE / source), "-o", str(target), "-lm"], check=True
    )
    return str(target)


def sanitized(mpi: Live) -> Live:
    """The same with the library compiled such that a byte beyond a buffer, or what C leaves undefined, ends the job."""
    sanitizer = run_to_end(["cc", "-print-file-name=libasan.so"], check=True)
    asan = sanitizer.stdout.strip()
    if not Path(asan).is_file():
        pytest.skip("no AddressSanitizer beside the C compiler")
    flags = ["-g", *C_FLAGS, "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    target = build_with(mpi.bench.installation.mpicc, mpi.directory, *flags)
    return Live(mpi.bench, Path(f"{asan}:{target}"), mpi.directory)


def build_with(mpicc: Path | str, directory: Path, *flags: str) -> Path:
    """The library that is preloaded, compiled with more ``flags``."""
    wrapper = directory / "mpicc"
    wrapper.write_text(f'#!/bin/sh\nexec "{mpicc}" {" ".join(flags)} "$@"\n')
    wrapper.chmod(0o700)
    cache = directory / "cache"
    cache.mkdir(mode=0o700, exist_ok=True)
    return build_library(wrapper, cache)
