"""The preloaded library in a program whose threads call MPI at once, under ThreadSanitizer: no race in it.

The sanitizer sees what it compiled: the library and the program. The MPI library is not compiled with it. Its locks are
ignored, since they would order all calls, and hide the races beside them.
"""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from guests import Guest, guest_fixtures

from colltune.machine.compile import cache_directory
from colltune.machine.prebuilt import build_library
from commands import run_to_end
from compiled import compiled, wrapper

pytestmark = pytest.mark.slow
built, guest = guest_fixtures("guest_process.c")
_RACY = 66  # the exit code of a program with a race
_FLAGS = ("-std=c11", "-g", "-O1", "-fsanitize=thread", "-pthread")
# Of the C library and the compiler: their locks are those of the program.
_OWN = ("libc.", "libm.", "libgcc_s.", "libdl.", "libpthread.", "librt.", "libutil.", "libstdc++.", "libtsan.", "ld-")


def runtime(directory: Path) -> Path:
    """ThreadSanitizer's library. Skips where there is none, or it cannot run: with very random addresses, say."""
    named = run_to_end(["cc", "-print-file-name=libtsan.so"], check=True)
    found = Path(named.stdout.strip())
    if not found.is_file():
        pytest.skip("no ThreadSanitizer beside the C compiler")
    (directory / "empty.c").write_text("int main(void) { return 0; }\n")
    empty = directory / "empty"
    subprocess.run(["cc", "-fsanitize=thread", f"{empty}.c", "-o", str(empty)], check=True)
    done = run_to_end([str(empty)])
    if done.returncode != 0:
        pytest.skip(f"ThreadSanitizer does not run here: {done.stderr.strip()[:200]}")
    return found


def foreign_libraries(program: Path) -> list[str]:
    listed = run_to_end(["ldd", str(program)], check=True).stdout
    names = [line.split()[0] for line in listed.splitlines() if "=>" in line]
    return [name for name in names if not name.startswith(_OWN)]


@pytest.fixture
def watched(guest: Guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Guest, dict[str, str]]:
    """The guest with program and library compiled for the sanitizer, and the variables of a run."""
    sanitizer = runtime(tmp_path)
    mpicc = str(guest.bench.installation.mpicc)
    program = compiled(mpicc, *_FLAGS, "guest_process.c", "-lm", "-ldl")
    library = build_library(
        wrapper(mpicc, "-g", "-O1", "-fsanitize=thread"), guest.bench.installation.libmpi, cache_directory(os.environ)
    )
    ignored = tmp_path / "ignored"
    ignored.write_text("".join(f"called_from_lib:/{name}$\n" for name in foreign_libraries(program)))
    # PMIx wants one address for its memory in all processes, which the sanitizer has taken.
    monkeypatch.setenv("PMIX_MCA_gds", "hash")
    told = {
        **guest.told("profile", "alltoallv"),
        "LD_PRELOAD": f"{sanitizer}:{library}",
        "TSAN_OPTIONS": f"exitcode={_RACY} suppressions={ignored} ignore_noninstrumented_modules=1",
        "UCX_MEM_MMAP_HOOK_MODE": "none",  # UCX calls the sanitizer from threads that have ended
    }
    return replace(guest, program=str(program)), told


def test_threads_that_call_at_once_meet_no_race(watched: tuple[Guest, dict[str, str]]) -> None:
    guest, told = watched
    command = ["-n", "3", guest.program, "threads_at_once"]
    without = guest.launch(command, {**told, "LD_PRELOAD": told["LD_PRELOAD"].partition(":")[0]})
    done = guest.launch(command, told)
    assert done.returncode == without.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(without.stdout.splitlines())
    assert "data race" not in done.stderr, done.stderr


def test_a_race_would_be_found(watched: tuple[Guest, dict[str, str]]) -> None:
    guest, told = watched
    done = guest.launch(["-n", "2", guest.program, "threads_that_race"], told)
    assert done.returncode != 0
    assert "data race" in done.stderr, done.stdout + done.stderr
