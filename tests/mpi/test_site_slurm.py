"""A store under jobs of several users in a real Slurm: kills, a full disk, a corrupt entry, releases that change.

A slice of it is part of every run of the tests; the whole, which also fills the disk, is slow.
"""

import contextlib
import os
import pwd
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from slurm_cluster import slurm_cluster, why_not
from unix_users import GROUP, Python, python_for, unix_users

from colltune.core.errors import InputError
from colltune.mpi.installation import Installation
from colltune.session.site.publish import publish_here
from colltune.session.site.state import status as status_of
from colltune.site.index import open_index
from colltune.site.release import ACTIVE, RELEASES, activate, active, read_release, rollback
from colltune.site.store import INBOX, SiteStore

SHAPES = ((1, 2), (2, 1), (2, 2))
FULL_S = 8.0
# For a job to end, or to begin, on a machine that does other things.
PATIENCE_S = 600.0


@dataclass(frozen=True)
class Plan:
    """So many ``jobs`` of so many ``users``, and what happens at which of them, by their numbers from 1.

    ``waiting``: jobs that run or wait beside the newest. ``killed``: at a random second within ``kill_s`` of the start.
    ``full``: the disk is full for a while; None: never. ``corrupted``: an entry is. ``released``: a release is made and
    activated.
    """

    users: int
    jobs: int
    waiting: int
    killed: tuple[int, ...]
    kill_s: tuple[float, float]
    full: int | None
    corrupted: int
    released: tuple[int, ...]


SLICE = Plan(users=2, jobs=4, waiting=1, killed=(3,), kill_s=(2.0, 5.0), full=None, corrupted=3, released=(3, 4))
WHOLE = Plan(
    users=3,
    jobs=20,
    waiting=3,
    killed=(5, 11, 16),
    kill_s=(3.0, 15.0),
    full=8,
    corrupted=10,
    released=(6, 9, 12, 15, 18),
)


def _why_not() -> str | None:
    if (why := why_not()) is not None:
        return why
    missing = [name for name in ("useradd", "userdel", "pkill", "mount") if shutil.which(name) is None]
    return f"no {', '.join(missing)}" if missing else None


pytestmark = pytest.mark.skipif(_why_not() is not None, reason=_why_not() or "")

# A user's program under the active release: says which it has, waits for a file, and looks whether the release changed.
HOLDS = """
import os, sys, time
from pathlib import Path
active = Path(sys.argv[1]).resolve()
before = {path: path.read_bytes() for path in active.rglob("*") if path.is_file()}
print(active.name, flush=True)
while not Path(sys.argv[2]).exists():
    time.sleep(0.05)
assert before and all(path.read_bytes() == data for path, data in before.items())
print("kept")
"""


# Three minutes on two cores that do nothing else; a machine under load has taken more than fifteen.
_LONG = (pytest.mark.slow, pytest.mark.timeout(3600))


@pytest.fixture(params=[pytest.param(SLICE, id="slice"), pytest.param(WHOLE, id="whole", marks=_LONG)])
def plan(request: pytest.FixtureRequest) -> Plan:
    """How many jobs of whom, and what happens meanwhile."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def users(plan: Plan) -> Iterator[Sequence[str]]:
    """As many as ``plan`` has, in one group."""
    with unix_users(plan.users) as made:
        yield made


@pytest.fixture
def python(users: Sequence[str]) -> Iterator[Python]:
    """What their jobs run."""
    with python_for(users[0]) as made:
        yield made


@pytest.fixture
def place(users: Sequence[str]) -> Iterator[Path]:
    """A directory that all users may enter, with a home for each. pytest closes its own to all but its user."""
    made = Path(tempfile.mkdtemp(prefix="colltune-site-"))
    made.chmod(0o755)
    for user in users:
        (made / user).mkdir()
        shutil.chown(made / user, user, GROUP)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def site(place: Path, plan: Plan) -> Iterator[SiteStore]:
    """A store; on a file system of its own where that is to be filled."""
    disk = place / "disk"
    disk.mkdir()
    if plan.full is not None:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=0755", "tmpfs", str(disk)], check=True)
    try:
        store = SiteStore.made(disk / "store")
        for path in (store.directory, *store.directory.iterdir()):
            shutil.chown(path, group=GROUP)
            if path.is_dir():
                path.chmod({"inbox": 0o3770, "quarantine": 0o3770}.get(path.name, 0o755))
        yield store
    finally:
        if plan.full is not None:
            subprocess.run(["umount", "-l", str(disk)], check=True)


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
    python: Python,
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
        *("salloc", f"-N{shape[0]}", f"--ntasks-per-node={shape[1]}", str(python.path), "-m", "colltune"),
        *("tune", "bcast", "--max-size", "1KiB", "--budget", "8s", "--store", str(store.directory), "--out", str(out)),
    ]
    return subprocess.Popen(
        command,
        env={
            **environment,
            **python.variables,
            "PATH": f"{mpi.mpiexec.parent}:{environment['PATH']}",
            "HOME": str(home),
            "COLLTUNE_CACHE": str(home / ".cache"),
            "COLLTUNE_STORE_COMMANDS": "1",  # by the directories it is known which jobs added what
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


def test_jobs_of_several_users(
    mpi: Installation, place: Path, plan: Plan, users: Sequence[str], python: Python, site: SiteStore
) -> None:
    """Nothing that a finished job added is lost, and the active release is whole at each moment."""
    draw = random.Random(7)
    reader = Reader(site)
    reader.start()
    with slurm_cluster(place / "slurm", nodes=2, cores=2) as environment:
        jobs: dict[int, subprocess.Popen[str]] = {}
        for number in range(1, plan.jobs + 1):
            user, shape = users[number % len(users)], draw.choice(SHAPES)
            jobs[number] = _tune(environment, python, mpi, site, user, number, shape, place)
            if number in plan.killed:
                threading.Timer(draw.uniform(*plan.kill_s), _kill, [jobs[number]]).start()
            _disturb(site, plan, number, users)
            for other in sorted(jobs)[: max(len(jobs) - plan.waiting, 0)]:
                jobs[other].wait(timeout=PATIENCE_S)
        codes = {number: job.wait(timeout=PATIENCE_S) for number, job in jobs.items()}
        _release(site, users)
        assert active(site)
        _check_rollback(environment, python, site, users, place)
    reader.stop.set()
    reader.join()
    said = {
        n: (place / f"job{n}.out").read_text()[-600:] for n, code in codes.items() if code != 0 and n not in plan.killed
    }
    assert not said
    assert not reader.wrong
    assert reader.looks > 10
    finished = {number for number, code in codes.items() if code == 0}
    assert len(finished) >= plan.jobs - len(plan.killed)
    _check_nothing_is_lost(site, place, finished, users)


def _disturb(site: SiteStore, plan: Plan, number: int, users: Sequence[str]) -> None:
    """What an administrator, a broken disk, and a user who fills it do meanwhile."""
    if number in plan.released:
        _release(site, users)
    if number == plan.corrupted:
        (key,) = site.names()
        path = site.directory / INBOX / f"{key}-{'0' * 64}.jsonl.gz"
        path.write_bytes(b"not what its name says")
        path.chmod(0o444)
    if number == plan.full:
        filler = site.directory.parent / "filler"
        _fill(filler)
        time.sleep(FULL_S)
        filler.unlink()


def _check_nothing_is_lost(site: SiteStore, homes: Path, finished: set[int], users: Sequence[str]) -> None:
    """What was finished is in the store, or beside its tuning where the disk was full."""
    (key,) = site.names()
    beside = {int(path.parts[-3][3:]) for path in homes.glob("*/job*/pending/*")}
    added = {int(Path(name).name[3:]) for name in _outs_of(site, key)}
    assert finished <= added | beside
    assert [reason for _, reason in status_of(site).quarantined] == ["its bytes are not those that its name says"]
    assert {one.uid for one in open_index(site, key).entries} == set(_numbers(users))


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


def _numbers(users: Sequence[str]) -> list[int]:
    return [pwd.getpwnam(user).pw_uid for user in users]


def _release(store: SiteStore, users: Sequence[str]) -> None:
    """As soon as there is a tuning to release."""
    with contextlib.suppress(InputError):
        activate(store, publish_here(store, _numbers(users)).name)


def _check_rollback(
    environment: Mapping[str, str], python: Python, store: SiteStore, users: Sequence[str], place: Path
) -> None:
    """Under a running job the release changes twice; the job keeps its own, and does not fail."""
    user = users[0]
    first = publish_here(store, _numbers(users)).name
    activate(store, first)
    program = place / "holds.py"
    program.write_text(HOLDS)
    program.chmod(0o644)
    account = pwd.getpwnam(user)
    end = place / "end"
    job = subprocess.Popen(
        ["salloc", "-N1", str(python.path), str(program), str(store.outbox / ACTIVE), str(end)],
        env={**environment, **python.variables},
        cwd=place / user,
        user=user,
        group=account.pw_gid,
        extra_groups=[],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    begins_with = job.stdout.readline().strip()
    second = publish_here(store, _numbers(users)).name
    activate(store, second)
    rolled = rollback(store).name
    end.touch()
    answer, _ = job.communicate(timeout=PATIENCE_S)
    assert job.returncode == 0
    assert (begins_with, answer.strip()) == (first, "kept")
    assert rolled == first != second
    assert active(store) == first
