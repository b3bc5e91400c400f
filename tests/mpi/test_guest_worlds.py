"""Ranks without the preloaded library beside ranks with it, and ranks with very many communicators."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from guests import MODULES, Guest, guest_fixtures

from colltune.profile.parts import part_files, read_parts
from commands import shell_script

built, guest = guest_fixtures("guest_worlds.c")


def test_ranks_that_were_spawned_without_the_library_are_not_waited_for(guest: Guest) -> None:
    guest.ends_well(["-n", "2", guest.program, "spawn"], guest.told(*MODULES), 2)


@pytest.mark.parametrize("module", MODULES)
def test_a_launch_of_which_a_part_has_the_library_runs_without_it(guest: Guest, module: str) -> None:
    told = [f"{name}={value}" for name, value in guest.told(module).items()]
    mine = ["-n", "2", "env", *told, guest.program, "plain"]
    said = guest.ends_well([*mine, ":", "-n", "2", guest.program, "plain"], {}, 4)
    assert said.count("a part of this program's ranks runs without libcolltune.so") == 1


def test_one_rank_without_the_library_is_found(guest: Guest, tmp_path: Path) -> None:
    """As where a wrapper script starts one rank in another way."""
    wrapper = shell_script(tmp_path / "wrapper", '[ "${PMI_RANK:-$PMIX_RANK}" = 2 ] && unset LD_PRELOAD\n"$@"')
    said = guest.ends_well(["-n", "3", str(wrapper), guest.program, "plain"], guest.told(*MODULES), 3)
    assert said.count("a part of this program's ranks") == 1
    assert part_files(guest.profile) == []


def test_what_others_may_write_to_is_not_looked_into(guest: Guest, tmp_path: Path) -> None:
    """Where ranks count themselves in shared memory, under a name that anybody can make."""
    if guest.openmpi:
        pytest.skip("its name has a part that is known in the ranks alone")
    started = "$(cut -d' ' -f22 /proc/$PPID/stat)"
    file = f"/dev/shm/colltune-$PPID-{started}-cbf29ce484222325"
    commands = f'echo >> {file}\nchmod 666 {file}\necho {file} >> {tmp_path}/made\nexec "$@"'
    wrapper = shell_script(tmp_path / "wrapper", commands)
    told = [f"{name}={value}" for name, value in guest.told("profile", "alltoallv").items()]
    said = guest.ends_well(["-n", "2", str(wrapper), "env", *told, guest.program, "plain"], {}, 2)
    (made,) = {Path(line) for line in (tmp_path / "made").read_text().splitlines()}
    made.unlink()
    assert said.count(f"{made} cannot be made, or others may write to it") == 1
    assert part_files(guest.profile) == []


def _with(guest: Guest, modules: Iterable[str], **other: str) -> list[str]:
    """Two ranks for which the library has ``modules`` to do, with ``other`` variables."""
    variables = {**guest.told(*modules), **other}
    return ["-n", "2", "env", *(f"{name}={value}" for name, value in variables.items()), guest.program, "plain"]


@pytest.mark.parametrize("without", MODULES)
def test_parts_may_have_other_modules(guest: Guest, without: str) -> None:
    """Starting a module is collective: where a part does not ask for it none has it, and all have the others."""
    whole, part = _with(guest, MODULES), _with(guest, {*MODULES} - {without})
    for first, second in ((whole, part), (part, whole)):
        said = guest.without_profile().ends_well([*first, ":", *second], {}, 4)
        assert "colltune" not in said
        files = part_files(guest.profile)
        assert files == [] if without == "profile" else read_parts(files).ranks == 4


@pytest.mark.parametrize("module", MODULES)
def test_parts_may_name_other_files(guest: Guest, module: str, tmp_path: Path) -> None:
    """What the first rank is told counts for all."""
    other = {f"COLLTUNE_{module.upper()}": str(tmp_path / "other")}
    said = guest.ends_well([*_with(guest, MODULES), ":", *_with(guest, MODULES, **other)], {}, 4)
    assert "colltune" not in said
    assert read_parts(part_files(guest.profile)).ranks == 4
    assert list(tmp_path.iterdir()) == []


def test_a_rank_with_thousands_of_communicators_does_as_the_others(guest: Guest) -> None:
    """MPICH has no more than about 2,000; Open MPI has no such bound."""
    count = "3000" if guest.openmpi else "1900"
    guest.ends_well(["-n", "3", guest.program, "many", count], guest.told("measure", "select", "alltoallv"), 3)
