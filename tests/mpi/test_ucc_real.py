"""A build of UCC reads files and TUNE strings as lint says. COLLTUNE_TEST_UCC names its prefix; no MPI takes part."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from jobs import C_FLAGS

from colltune.emit.next.lint_ucc import ALGORITHMS
from commands import run_to_end
from ucc_files import FOLLOWED, NOT_FOLLOWED

pytestmark = pytest.mark.mpi
SOURCE = Path(__file__).parents[1] / "native" / "ucc_sends.c"
RING = {1024: 36, 4096: 36}  # messages of an allreduce on 4 ranks


@pytest.fixture(scope="module")
def prefix() -> Path:
    named = os.environ.get("COLLTUNE_TEST_UCC")
    if named is None:
        pytest.skip("COLLTUNE_TEST_UCC names no build of UCC")
    return Path(named)


@pytest.fixture(scope="module")
def program(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("ucc") / "ucc_sends"
    library = prefix / "lib"
    linked = [f"-L{library}", "-Wl,--no-as-needed", "-lucc", "-lucp", "-ldl", "-rdynamic", f"-Wl,-rpath,{library}"]
    command = ["gcc", *C_FLAGS, f"-I{prefix / 'include'}", str(SOURCE), "-o", str(made), *linked]
    subprocess.run(command, check=True, timeout=120)
    return made


def sent(program: Path, **variables: str) -> dict[int, int]:
    """Messages of an allreduce by its bytes; empty where UCC does not begin."""
    environment = {**os.environ, "UCX_TLS": "tcp,self", **variables}
    done = run_to_end([str(program), "4", "allreduce", "1024", "4096"], env=environment)
    return {int(size): int(count) for size, count in re.findall(r"^(\d+) (\d+)$", done.stdout, re.MULTILINE)}


@pytest.mark.parametrize("name", [*FOLLOWED, *NOT_FOLLOWED])
def test_a_file_is_followed_where_lint_has_no_error(program: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "ucc.conf"
    path.write_text({**FOLLOWED, **NOT_FOLLOWED}[name], newline="")
    assert (sent(program, UCC_CONFIG_FILE=str(path)) == RING) == (name in FOLLOWED)


def test_a_string_decides_by_size_and_its_upper_end_is_open(program: Path) -> None:
    found = sent(program, UCC_TL_UCP_TUNE="allreduce:0-4k:@knomial#allreduce:4k-inf:@ring")
    assert found == {1024: 12, 4096: 36}
    assert sent(program, UCC_TL_UCP_TUNE="allreduce:0-4k:@ring#allreduce:4k-inf:@knomial") == {1024: 36, 4096: 12}


def test_the_environment_goes_before_the_file(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "ucc.conf"
    path.write_text(FOLLOWED["without a section"])
    both = {"UCC_CONFIG_FILE": str(path), "UCC_TL_UCP_TUNE": "allreduce:@knomial"}
    assert sent(program, **both) == {1024: 12, 4096: 12}


def test_it_has_the_algorithms_that_lint_knows(prefix: Path) -> None:
    done = run_to_end([str(prefix / "bin" / "ucc_info"), "-A"], check=True)
    section = done.stdout.partition("tl/ucp algorithms:")[2]
    found = {}
    for name, rows in re.findall(r"^  (\w+)\n((?: +\d+ : .*\n)+)", section, re.MULTILINE):
        numbered = re.findall(r"^ +(\d+) : +(\w+) :", rows, re.MULTILINE)
        assert [int(number) for number, _ in numbered] == list(range(len(numbered)))
        found[name.lower()] = tuple(key for _, key in numbered)
    assert found == ALGORITHMS
