"""A store under jobs of several users in a real Slurm: kills, a full disk, a corrupt entry, releases that change."""

from __future__ import annotations

import contextlib
import os
import pwd
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from slurm_cluster import slurm_cluster, why_not

from colltune.core.errors import InputError
from colltune.mpi.installation import Installation
from colltune.session.site import publish_here
from colltune.session.site import status as status_of
from colltune.site.index import open_index
from colltune.site.release import ACTIVE, RELEASES, activate, active, read_release, rollback
from colltune.site.store import INBOX, SiteStore

USERS = ("ctune1", "ctune2", "ctune3")
GROUP = "ctunesite"
SHAPES = ((1, 2), (2, 1), (2, 2))
# Jobs by their numbers; so many wait or run at once.
JOBS, AT_ONCE = 20, 3
KILLED, FULL, CORRUPTED, RELEASES_AFTER = (5, 11, 16), 8, 10, (6, 9, 12, 15, 18)
FULL_S = 8.0
SOURCE = Path(__file__).parents[2] / "src"


def _why_not() -> str | None:
    if (why := why_not()) is not None:
        return why
    missing = [name for name in ("useradd", "userdel", "mount") if shutil.which(name) is None]
    return f"no {', '.join(missing)}" if missing else None


pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.skipif(_why_not() is not None, reason=_why_not() or "")]

# A user's program that runs for a while under the module of the active release: which release it has at both ends.
HOLDS = """
import os, sys, time
from pathlib import Path
active = Path(sys.argv[1]).resolve()
before = {path: path.read_bytes() for path in active.rglob("*") if path.is_file()}
time.sleep(float(sys.argv[2]))
assert before and all(path.read_bytes() == data for path, data in before.items())
print(active.name)
"""


def _may_run(user: str) -> bool:
    try:
        subprocess.run([sys.executable, "-c", "import numpy"], user=user, group=GROUP, extra_groups=[], check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


@pytest.fixture
def users() -> Iterator[tuple[str, ...]]:
    """Real users of this machine in one group, for the time of the test."""
    made: list[str] = []
    subprocess.run(["groupadd", GROUP], check=True)
    try:
        for name in USERS:
            subprocess.run(["useradd", "--no-create-home", "--gid", GROUP, name], check=True)
            made.append(name)
        if not _may_run(made[0]):
            pytest.skip(f"other users may not run {Path(sys.executable).resolve()}")
        yield USERS
    finally:
        for name in made:
            subprocess.run(["pkill", "-KILL", "-u", name], check=False)  # what a job that failed has left
            subprocess.run(["userdel", name], check=False)
        subprocess.run(["groupdel", GROUP], check=False)


@pytest.fixture
def site(tmp_path: Path, users: tuple[str, ...]) -> Iterator[SiteStore]:
    """A store on a file system of its own, which can be filled."""
    place = Path("/tmp") / f"colltune-site-{os.getpid()}"
    place.mkdir(mode=0o755)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=0755", "tmpfs", str(place)], check=True)
    try:
        store = SiteStore.made(place / "store")
        for path in (store.directory, *store.directory.iterdir()):
            shutil.chown(path, group=GROUP)
            if path.is_dir():
                path.chmod({"inbox": 0o3775, "quarantine": 0o3775, "cache": 0o2775}.get(path.name, 0o755))
        for user in users:
            (tmp_path / user).mkdir()
            shutil.chown(tmp_path / user, user, GROUP)
        yield store
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
        place.rmdir()


class Reader(threading.Thread):
    """Looks in a loop whether the active release is whole."""

    def __init__(self, store: SiteStore) -> None:
        super().__init__(daemon=True)
        self.store, self.stop, self.looks, self.wrong = store, threading.Event(), 0, list[str]()

    def run(self) -> None:
        while not self.stop.wait(0.01):
            try:
                if name := active(self.store):
                    read_release((self.store.outbox / ACTIVE).resolve())
                    assert (self.store.outbox / RELEASES / name).is_dir()
                    self.looks += 1
            except Exception as error:  # whatever it is, a user would have met it
                self.wrong.append(repr(error))


def _tune(
    environment: Mapping[str, str],
    mpi: Installation,
    store: SiteStore,
    user: str,
    number: int,
    shape: tuple[int, int],
    said: Path,
) -> subprocess.Popen[str]:
    """A job of ``user`` that tunes bcast on ``shape`` (nodes, ranks per node)."""
    home = said / user
    out = home / f"job{number}"
    account = pwd.getpwnam(user)
    command = [
        *("salloc", f"-N{shape[0]}", f"--ntasks-per-node={shape[1]}", sys.executable, "-m", "colltune"),
        *("tune", "bcast", "--max-size", "1KiB", "--budget", "8s", "--store", str(store.directory), "--out", str(out)),
    ]
    return subprocess.Popen(
        command,
        env={
            **environment,
            "PYTHONPATH": str(SOURCE),
            "PATH": f"{mpi.mpiexec.parent}:{environment['PATH']}",
            "HOME": str(home),
            "COLLTUNE_CACHE": str(home / ".cache"),
            "OMP_NUM_THREADS": "1",
            "USER": user,
            "LOGNAME": user,
        },
        cwd=home,
        user=user,
        group=account.pw_gid,
        extra_groups=[],
        stdout=(said / f"job{number}.out").open("w"),
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def test_twenty_jobs_of_three_users(mpi: Installation, tmp_path: Path, users: tuple[str, ...], site: SiteStore) -> None:
    """Nothing that a finished job added is lost, and the active release is whole at each moment."""
    draw = random.Random(7)
    reader = Reader(site)
    reader.start()
    for path in (tmp_path, *tmp_path.parents[:2]):
        path.chmod(0o755)
    with slurm_cluster(tmp_path / "slurm", nodes=2, cores=2) as environment:
        jobs: dict[int, subprocess.Popen[str]] = {}
        for number in range(1, JOBS + 1):
            user, shape = users[number % len(users)], draw.choice(SHAPES)
            jobs[number] = _tune(environment, mpi, site, user, number, shape, tmp_path)
            if number in KILLED:
                threading.Timer(draw.uniform(3.0, 15.0), _kill, [jobs[number]]).start()
            _disturb(site, number)
            for other in sorted(jobs)[: max(len(jobs) - AT_ONCE, 0)]:
                jobs[other].wait(timeout=240)
        codes = {number: job.wait(timeout=240) for number, job in jobs.items()}
        _release(site)
        assert active(site)
        _check_rollback(environment, site, users[0], tmp_path)
    reader.stop.set()
    reader.join()
    said = {
        n: (tmp_path / f"job{n}.out").read_text()[-600:] for n, code in codes.items() if code != 0 and n not in KILLED
    }
    assert not said
    assert not reader.wrong
    assert reader.looks > 10
    _check_nothing_is_lost(site, tmp_path, {number for number, code in codes.items() if code == 0}, users)


def _disturb(site: SiteStore, number: int) -> None:
    """What an administrator, a broken disk, and a user who fills it do meanwhile."""
    if number in RELEASES_AFTER:
        _release(site)
    if number == CORRUPTED:
        (key,) = site.names()
        path = site.directory / INBOX / f"{key}-{'0' * 64}.jsonl.gz"
        path.write_bytes(b"not what its name says")
        path.chmod(0o444)
    if number == FULL:
        filler = site.directory.parent / "filler"
        _fill(filler)
        time.sleep(FULL_S)
        filler.unlink()


def _check_nothing_is_lost(site: SiteStore, homes: Path, finished: set[int], users: tuple[str, ...]) -> None:
    """What was finished is in the store, or beside its tuning where the disk was full."""
    (key,) = site.names()
    beside = {int(path.parts[-3][3:]) for path in homes.glob("*/job*/pending/*")}
    added = {int(Path(name).name[3:]) for name in _outs_of(site, key)}
    assert finished <= added | beside
    assert len(finished) >= JOBS - len(KILLED)
    assert [reason for _, reason in status_of(site).quarantined] == ["its bytes are not those that its name says"]
    assert {one.user for one in open_index(site, key).entries} == set(users)


def _outs_of(store: SiteStore, key: str) -> Iterator[str]:
    for name in store.names()[key]:
        words = store.read(key, name).provenance.command.split()
        yield words[words.index("--out") + 1]


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _fill(path: Path) -> None:
    """The whole file system, by root."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError:
            pass


def _release(store: SiteStore) -> None:
    """As soon as there is a tuning to release."""
    with contextlib.suppress(InputError):
        activate(store, publish_here(store).name)


def _check_rollback(environment: Mapping[str, str], store: SiteStore, user: str, tmp_path: Path) -> None:
    """Under a running job the release changes twice; the job keeps its own, and does not fail."""
    first = publish_here(store).name
    activate(store, first)
    program = tmp_path / "holds.py"
    program.write_text(HOLDS)
    program.chmod(0o644)
    account = pwd.getpwnam(user)
    job = subprocess.Popen(
        ["salloc", "-N1", sys.executable, str(program), str(store.outbox / ACTIVE), "6"],
        env=dict(environment),
        cwd=tmp_path / user,
        user=user,
        group=account.pw_gid,
        extra_groups=[],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    time.sleep(3.0)
    second = publish_here(store).name
    activate(store, second)
    rolled = rollback(store).name
    answer, _ = job.communicate(timeout=60)
    assert job.returncode == 0
    assert answer.strip() == first
    assert rolled == first != second
    assert active(store) == first
