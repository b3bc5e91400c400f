"""Programs in which the preloaded library is a guest."""

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from jobs import ON_EITHER, crowded, for_ranks
from live_jobs import live as live_kit
from test_alltoallv_use import table
from test_live_nonblocking import prefer as prefer_nonblocking
from test_live_selector import prefer

from colltune.bench.workbench import Workbench
from colltune.core.rules import RuleSet
from colltune.emit.live_rules import LIVE_FILE, live_basis
from colltune.mpi.installation import Installation, Library
from commands import run_to_end
from compiled import program

MODULES = ("profile", "measure", "select", "alltoallv")
_WAIT_S = 60


@dataclass(frozen=True)
class Guest:
    """Programs of one MPI, and what is preloaded into them."""

    bench: Workbench
    library: Path
    program: str
    variables: dict[str, str]
    profile: Path
    mpiexec: Path | None = None  # in place of the installation's

    @property
    def openmpi(self) -> bool:
        return self.bench.installation.library is Library.OPENMPI

    def told(self, *modules: str) -> dict[str, str]:
        """The variables that put ``modules`` at work."""
        names = {module: f"COLLTUNE_{module.upper()}" for module in MODULES}
        return {"LD_PRELOAD": str(self.library), **{names[one]: self.variables[names[one]] for one in modules}}

    def without_profile(self) -> "Guest":
        """Itself, once what an earlier launch wrote is gone."""
        for file in self.profile.parent.glob(self.profile.name + ".*"):
            file.unlink()
        return self

    def launch(
        self, arguments: Sequence[str], told: dict[str, str], wait_s: float = _WAIT_S
    ) -> subprocess.CompletedProcess[str]:
        mpi = self.bench.installation
        environment = {**os.environ, **ON_EITHER, "OMPI_MCA_mpi_yield_when_idle": "1"}
        command = [str(self.mpiexec or mpi.mpiexec), *crowded(mpi), *for_ranks(mpi, told), *arguments]
        return run_to_end(command, env=environment, timeout=wait_s)

    def ends_well(self, arguments: Sequence[str], told: dict[str, str], ranks: int) -> str:
        """Standard error of a launch in which all ranks found all bytes right."""
        done = self.launch(arguments, told)
        assert done.returncode == 0, done.stdout + done.stderr
        assert sorted(done.stdout.splitlines()) == [f"rank={rank} wrong=0" for rank in range(ranks)], done.stderr
        return done.stderr


def guest_in(installation: Installation, directory: Path, source: str, *, every: bool = False) -> Guest:
    """The program made from tests/native/``source``, with something for every module to do.

    ``every``: with rules for the calls of every collective that has any, not for broadcasts alone.
    """
    kit = live_kit(installation, directory)
    bench = kit.bench
    choice = next(one for one in bench.catalogue.choices("bcast") if one.algorithm in ("binomial", "pipeline"))
    broadcasts = RuleSet.always("bcast", live_basis(bench.catalogue, "bcast"), choice)
    rules = [*prefer(kit, 1), *prefer_nonblocking(kit, 1)] if every else [broadcasts]
    file = directory / LIVE_FILE
    file.write_bytes(kit.emit(*rules))
    variables = {
        "COLLTUNE_PROFILE": str(directory / "profile.json"),
        "COLLTUNE_MEASURE": str(directory / "measure"),
        "COLLTUNE_SELECT": str(file),
        "COLLTUNE_ALLTOALLV": str(table(directory / "table.rules", (0, 99999, "parata", 2))),
    }
    return Guest(bench, kit.preload, program(installation.mpicc, source), variables, directory / "profile.json")


def guest_fixtures(source: str, *, every: bool = False) -> tuple[Callable[..., Guest], Callable[..., Guest]]:
    """Two fixtures for a module: ``built`` on MPICH and on Open MPI, and ``guest``: that without an earlier profile."""

    @pytest.fixture(scope="module")
    def built(either: Installation, tmp_path_factory: pytest.TempPathFactory) -> Guest:
        return guest_in(either, tmp_path_factory.mktemp("guest"), source, every=every)

    @pytest.fixture
    def guest(built: Guest) -> Guest:
        return built.without_profile()

    return built, guest
