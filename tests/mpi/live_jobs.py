"""The live selector in front of a program, on either library; plain, or under sanitizers."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from jobs import ON_EITHER

from colltune.bench.workbench import MachineOptions, Workbench, open_workbench
from colltune.core.rules import RuleSet
from colltune.emit.live_rules import LIVE_FILE, LiveEmitter
from colltune.machine.compile import build, cache_directory
from colltune.machine.prebuilt import build_library
from colltune.mpi.installation import Installation
from colltune.mpi.programs import library_for
from colltune.prove.replay.conformance import PROGRAM
from commands import run_to_end
from compiled import C_FLAGS, wrapper


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

    def replay(
        self, ranks: int, rules: bytes, arguments: Sequence[str], beside: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """The legal calls of the replay, of which all give the right results."""
        done = self.run(
            ranks, [str(build(self.bench.installation.mpicc, PROGRAM)), *arguments], rules, beside, **variables
        )
        failed = "".join(line for line in done.stdout.splitlines(keepends=True) if line.startswith("FAIL"))
        assert done.returncode == 0, failed[:1500] + done.stdout[-500:] + done.stderr[-1500:]
        assert "failures=0" in done.stdout
        return done

    def emit(self, *rule_sets: RuleSet) -> bytes:
        return LiveEmitter(self.bench.catalogue, self.bench.settings).emit(rule_sets)[LIVE_FILE]


def live(installation: Installation, directory: Path) -> Live:
    bench = open_workbench(MachineOptions(mpiexec=str(installation.mpiexec), ppn=4), {**os.environ, **ON_EITHER})
    return Live(bench, library_for(installation, cache_directory(os.environ)), directory)


def sanitized(mpi: Live) -> Live:
    """The same with the library compiled such that a byte beyond a buffer, or what C leaves undefined, ends the job."""
    sanitizer = run_to_end(["cc", "-print-file-name=libasan.so"], check=True)
    asan = sanitizer.stdout.strip()
    if not Path(asan).is_file():
        pytest.skip("no AddressSanitizer beside the C compiler")
    flags = ["-g", *C_FLAGS, "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    installation = mpi.bench.installation
    target = build_library(wrapper(installation.mpicc, *flags), installation.libmpi, cache_directory(os.environ))
    return Live(mpi.bench, Path(f"{asan}:{target}"), mpi.directory)
