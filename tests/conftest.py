"""What all tests share: an MPI where there is one, and a cache of compiled programs for the session."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from hypothesis import HealthCheck

from colltune.core import disturbance
from colltune.core.errors import InputError
from colltune.machine import compile as compile_module
from colltune.machine.compile import build
from colltune.mpi.detect import find_mpi
from colltune.mpi.installation import Installation, Library
from colltune.site.store import SiteStore
from compiled import keeping, tidy
from examples import MANY
from leftovers import MARK, Session

# Tests start a thousand interpreters: what the first of them compiles, the others read.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# For what was asked to end to be gone.
_PATIENCE_S = 60.0
# No test depends on how fast time passes.
PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much]}
hypothesis.settings.register_profile("any machine", max_examples=30, **PATIENT)
hypothesis.settings.register_profile(MANY, max_examples=1000, **PATIENT)
hypothesis.settings.load_profile("any machine")
pytest.register_assert_rewrite("bench_laws", "packer_laws", "source_laws")


_BEGUN_S = time.monotonic()
# Of the tests with an MPI, those that `make test` runs.
SLICE = Path(__file__).parent / "mpi" / "slice.txt"
# Files whose tests take the longest: they begin first, so that at the end no worker waits for another.
LONGEST = ("test_whole_tune.py", "test_tune.py", "test_run_measure.py", "test_alltoallv_forms.py")


# In pytest's cache: the tests that the last runs skipped.
SKIPPED = "colltune/skipped"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--minutes", type=float, help="tests that have not begun after this time are skipped")
    parser.addoption("--skipped", action="store_true", help="only tests that were skipped when they last ran")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    minutes = item.config.getoption("minutes")
    if minutes is not None and time.monotonic() > _BEGUN_S + 60 * minutes:
        pytest.skip(f"the {minutes:g} minutes of --minutes are over")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Gives what is in tests/mpi and what slice.txt names their marks, and begins with what takes the longest."""
    lines = dict(line.partition(" # ")[::2] for line in SLICE.read_text().splitlines() if not line.startswith("#"))
    for item in items:
        if item.path.parent == SLICE.parent:
            item.add_marker("mpi")
        case = f"{item.path.name}::{item.name}"
        for name in lines.keys() & {item.path.name, case.partition("[")[0], case}:
            item.add_marker("slice")
            if lines[name]:
                item.add_marker(lines[name])
    if config.getoption("skipped"):
        skipped = set(config.cache.get(SKIPPED, [])) if hasattr(config, "cache") else set()
        items[:] = [item for item in items if skipped & {item.nodeid, item.nodeid.partition("::")[0]}]
    items.sort(key=lambda item: item.path.name not in LONGEST)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Remembers what was skipped for want of a program, which may be installed later: see ``--skipped``."""
    stats, cache = terminalreporter.stats, getattr(terminalreporter.config, "cache", None)
    if cache:
        ran = {report.nodeid for name in ("passed", "failed", "error") for report in stats.get(name, [])}
        skipped = {report.nodeid for report in stats.get("skipped", [])}
        cache.set(SKIPPED, sorted(set(cache.get(SKIPPED, [])) - ran | skipped))


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No process and no network namespace of this session outlives it. Set up first, so taken down last."""
    session = Session(tmp_path_factory.getbasetemp())
    os.environ[MARK] = session.name
    yield
    left = session.left_after(_PATIENCE_S)
    session.clean()
    assert not left, "\n".join(["these outlived the tests:", *left])


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, nothing_is_left: None) -> Iterator[Path]:
    """Where this session's compiled programs are, for all its workers; never the user's own cache."""
    base = tmp_path_factory.getbasetemp()
    directory = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"
    directory.mkdir(mode=0o700, exist_ok=True)
    tidy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLLTUNE_CACHE", str(directory))
        # Tests run beside others, and most are of something else than that; those of it take this back.
        patch.setenv(disturbance.VARIABLE, disturbance.ACCEPT)
        patch.setattr(compile_module, "compile_source", keeping(compile_module.compile_source, directory))
        yield directory


@pytest.fixture
def store(tmp_path: Path) -> SiteStore:
    return SiteStore.made(tmp_path / "store")


def _found(named: str | None, library: Library) -> Installation:
    """The one of that mpiexec, or beside this Python; skips the test where there is none of ``library``."""
    try:
        found = find_mpi(named, os.environ, python_bin=Path(sys.executable).parent)
    except InputError as error:
        pytest.skip(f"no {library}: {error}")
    if found.library is not library:
        pytest.skip(f"{found.mpiexec} is not of {library}")
    return found


@pytest.fixture(scope="session")
def mpi() -> Installation:
    """The MPICH of COLLTUNE_TEST_MPIEXEC, or the one beside this Python."""
    return _found(os.environ.get("COLLTUNE_TEST_MPIEXEC"), Library.MPICH)


@pytest.fixture(scope="session")
def openmpi() -> Installation:
    """The Open MPI of COLLTUNE_TEST_OPENMPI, or the one that `make test` puts beside this checkout."""
    beside = Path(__file__).parents[1] / ".venv-openmpi" / "bin" / "mpiexec"
    return _found(os.environ.get("COLLTUNE_TEST_OPENMPI", str(beside)), Library.OPENMPI)


@pytest.fixture
def intelmpi(monkeypatch: pytest.MonkeyPatch) -> Installation:
    """The Intel MPI of COLLTUNE_TEST_INTELMPI, or of `make .venv-intelmpi/.ready`, for ranks that share cores."""
    beside = Path(__file__).parents[1] / ".venv-intelmpi" / "bin" / "mpiexec"
    mpiexec = os.environ.get("COLLTUNE_TEST_INTELMPI", str(beside))
    if not Path(mpiexec).with_name("mpicc").is_file():
        pytest.skip("no Intel MPI with its compiler wrapper")
    for name, value in (("FABRICS", "shm"), ("THREAD_YIELD", "2"), ("WAIT_MODE", "0"), ("SPIN_COUNT", "1")):
        monkeypatch.setenv(f"I_MPI_{name}", value)
    return find_mpi(mpiexec, os.environ)


@pytest.fixture(scope="module", params=["mpi", "openmpi"])
def either(request: pytest.FixtureRequest) -> Installation:
    """A test that asks for it is run on each."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def agent(mpi: Installation, cache: Path) -> Path:
    """The measuring agent, compiled for ``mpi``."""
    return build(mpi.mpicc, "agent", cache)
