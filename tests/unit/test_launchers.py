from pathlib import Path

import pytest

from colltune.machine.preload import preload_variables
from colltune.mpi.installation import Launcher
from colltune.mpi.launchers import is_launcher, is_of_mpi, scheduler_launcher


@pytest.mark.parametrize(
    "name", ["mpiexec", "mpirun", "prterun", "orterun", "/opt/x/bin/mpiexec.hydra", "mpirun.openmpi", "mpiexec-mpich"]
)
def test_launchers_of_an_mpi_are_known_by_name_in_any_directory(name: str) -> None:
    assert is_launcher(name)
    assert scheduler_launcher(Path(name)) is None


@pytest.mark.parametrize("name", ["srun", "/usr/bin/flux", "jsrun"])
def test_launchers_of_a_scheduler_are_of_no_mpi(name: str) -> None:
    assert not is_launcher(name)
    launcher = scheduler_launcher(Path(name))
    assert launcher is not None
    assert not is_of_mpi(launcher)


def test_a_launcher_that_only_starts_ranks_does_not_say_its_mpi() -> None:
    assert not is_of_mpi(Launcher.GENERIC)
    assert all(is_of_mpi(one) for one in (Launcher.HYDRA, Launcher.PRRTE, Launcher.ORTE))


@pytest.mark.parametrize("name", ["mpiexecutor", "mpicc", "app", "xmpirun", "sruns"])
def test_other_programs_are_no_launchers(name: str) -> None:
    assert not is_launcher(name)
    assert scheduler_launcher(Path(name)) is None


@pytest.mark.parametrize(
    ("already", "wanted"),
    [
        ("", "/l.so"),
        ("/a.so:/b.so", "/a.so:/b.so:/l.so"),
        ("/a.so:/l.so", "/a.so:/l.so"),
        ("/a.so /opt/libmpi.so.12", "/a.so:/l.so:/opt/libmpi.so.12"),
        ("/opt/libmpi.so:/a.so", "/l.so:/opt/libmpi.so:/a.so"),
        ("/opt/libmpiP.so:/opt/libmpi_abi.so.1", "/opt/libmpiP.so:/l.so:/opt/libmpi_abi.so.1"),
    ],
)
def test_a_library_is_preloaded_once_and_what_is_there_stays(already: str, wanted: str) -> None:
    assert preload_variables(Path("/l.so"), {"LD_PRELOAD": already}) == {"LD_PRELOAD": wanted}
    assert preload_variables("/l.so", {}) == {"LD_PRELOAD": "/l.so"}
