"""Signals of the program, with the preloaded library in it: who handles them, and what happens then."""

import re
import signal

import pytest
from guests import MODULES, Guest, guest_fixtures

from colltune.profile.parts import part_files, read_parts

built, guest = guest_fixtures("guest_signals.c")


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_signal_that_the_program_handles_changes_nothing(guest: Guest, when: str) -> None:
    """A checkpoint on SIGTERM at one rank, in the midst of collectives, with all modules at work."""
    guest.ends_well(["-n", "3", guest.program, f"handled-{when}"], guest.told(*MODULES), 3)
    assert [file.name for file in part_files(guest.profile)] == ["profile.json.all"]
    assert read_parts(part_files(guest.profile)).ended == ""


@pytest.mark.parametrize("mode", ["chained-after", "asked"])
def test_a_program_is_told_that_nobody_had_the_signal_before(guest: Guest, mode: str) -> None:
    guest.ends_well(["-n", "3", guest.program, mode], guest.told(*MODULES), 3)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_program_that_serves_its_own_page_faults_goes_on(guest: Guest, when: str) -> None:
    """As Julia, the JVM and the Boehm collector do: the handler asks at which address the fault was."""
    guest.ends_well(["-n", "3", guest.program, f"barrier-{when}"], guest.told("profile"), 3)


def test_a_forked_process_neither_writes_nor_outlives_its_signal(guest: Guest) -> None:
    guest.ends_well(["-n", "3", guest.program, "fork"], guest.told("profile"), 3)
    assert not (guest.profile.with_name("profile.json.1")).exists()


def test_without_a_profile_no_signal_is_taken(guest: Guest) -> None:
    shown = guest.launch(["-n", "3", guest.program, "shown"], guest.told("measure", "select", "alltoallv"))
    plain = guest.launch(["-n", "3", guest.program, "shown"], {})
    assert shown.returncode == 0, shown.stderr
    assert sorted(shown.stdout.splitlines()) == sorted(plain.stdout.splitlines())
    assert "caught=" in plain.stdout


def test_a_crash_still_leaves_a_profile_and_its_signal(guest: Guest) -> None:
    done = guest.launch(["-n", "3", guest.program, "crash"], guest.told("profile"))
    assert done.returncode != 0
    assert re.search(r"Segmentation fault|signal 11|SIGSEGV", done.stdout + done.stderr), done.stderr
    if not guest.openmpi:  # Open MPI handles this signal itself
        assert done.returncode in (signal.SIGSEGV, 128 + signal.SIGSEGV)
        assert "ended SIGSEGV" in guest.profile.with_name("profile.json.1").read_text()
