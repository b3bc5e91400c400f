"""Who takes a collective of Open MPI, by what the library says of itself."""

from pathlib import Path

import pytest

from colltune.bench.backends.openmpi import find_obstacles
from colltune.bench.backends.openmpi_components import describe_takers, find_outranking, parse_selected, taker

# As 5.0.11 writes it on two nodes, shortened; two processes write at once.
TWO_NODES = """\
[node0:03923] mca: base: components_open: opening coll components
[node0:03923] coll:base:comm_select: new communicator: MPI_COMM_WORLD (cid 0)
[node0:03923] coll:base:comm_select: component available: adapt, priority: 0
[node0:03923] coll:base:comm_select: component not available: sm
[node0:03923] coll:base:comm_select: selecting       adapt, priority   0, Disabled
[node0:03923] coll:base:comm_select: selecting       basic, priority  10, Enabled
[node1:03941] coll:base:comm_select: new communicator: MPI_COMM_WORLD (cid 0)
[node1:03941] coll:base:comm_select: selecting       basic, priority  10, Enabled
[node0:03923] coll:base:comm_select: selecting      libnbc, priority  10, Enabled
[node0:03923] coll:base:comm_select: selecting       tuned, priority  30, Enabled
[node0:03923] coll:base:comm_select: selecting         han, priority  35, Enabled
[node0:03923] coll:base:comm_select: new communicator: MPI_COMM_SELF (cid 1)
[node0:03923] coll:base:comm_select: selecting        self, priority  75, Enabled
"""


def test_the_components_of_the_world_are_read_from_one_process() -> None:
    selected = parse_selected(TWO_NODES)
    assert selected == [("basic", 10), ("libnbc", 10), ("tuned", 30), ("han", 35)]
    assert taker("bcast", selected) == "han"
    assert taker("alltoall", selected) == "tuned"
    assert find_outranking(selected) == []
    assert describe_takers(selected)[0] == (
        "coll/han (priority 35): allgather, allreduce, barrier, bcast, gather, reduce, scatter"
    )
    assert parse_selected("nothing of that\n") == []


@pytest.mark.parametrize(
    ("selected", "found"),
    [
        ([("basic", 10), ("tuned", 30)], []),
        ([("tuned", 30), ("sync", 50), ("han", 35)], []),
        ([("tuned", 30), ("adapt", 90)], ["coll/adapt (priority 90)"]),
        ([("tuned", 30), ("hcoll", 90)], ["set coll_hcoll_enable to 0"]),
        ([("tuned", 30), ("other", 31)], ["does not know it"]),
        ([("basic", 10)], ["coll/tuned, the reader of the rules, is not selected", "coll/basic"]),
    ],
)
def test_what_stands_before_the_rules_is_named(selected: list[tuple[str, int]], found: list[str]) -> None:
    said = find_outranking(selected)
    assert len(said) == len(found)
    assert all(words in text for words, text in zip(found, said, strict=True))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("coll_adapt_priority", "90", "coll/adapt (priority 90) goes before coll/tuned"),
        ("coll_adapt_priority", "20", ""),
        ("coll_han_priority", "90", ""),
        ("coll_tuned_priority", "5", "puts coll/basic before"),
        ("coll_hcoll_enable", "1", "coll/hcoll"),
        ("coll_ucc_enable", "1", "coll/ucc"),
        ("coll_ucc_enable", "0", ""),
        ("coll_libnbc_priority", "99", ""),
    ],
)
def test_parameters_that_keep_the_rules_from_deciding_are_obstacles(name: str, value: str, words: str) -> None:
    for found in (find_obstacles({f"OMPI_MCA_{name}": value}), find_obstacles({}, ["mpiexec", "--mca", name, value])):
        assert len(found) == bool(words)
        assert all(words in text for text in found)


def test_parameters_in_the_files_of_the_user_and_of_the_site_are_obstacles_too(tmp_path: Path) -> None:
    site, own = tmp_path / "prefix/etc/openmpi-mca-params.conf", tmp_path / "home/.openmpi/mca-params.conf"
    (tmp_path / "prefix/bin").mkdir(parents=True)
    (tmp_path / "prefix/bin/mpiexec").touch(mode=0o755)
    environ = {"HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "prefix/bin")}
    assert find_obstacles(environ) == []
    for path, text in (
        (site, "# the site's\ncoll_tuned_bcast_algorithm = 3 # chain\ncoll_tuned_barrier_algorithm=1\n"),
        (own, "coll_tuned_bcast_algorithm = 0\r\nnot a line\ncoll_tuned_reduce_algorithm = 2\n"),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    found = find_obstacles(environ)
    assert sorted(found, reverse=True) == [
        f"coll_tuned_reduce_algorithm is 2, which goes before every rule of reduce ({own} says so)",
        f"coll_tuned_barrier_algorithm is 1, which goes before every rule of barrier ({site} says so)",
    ]
    assert len(find_obstacles({**environ, "OMPI_MCA_coll_tuned_barrier_algorithm": "0"})) == 1
    own.write_bytes(b"\xff\xfe" * 9)
    assert len(find_obstacles(environ)) == 2
