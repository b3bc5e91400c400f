"""Which job this is, by recorded environments of each scheduler, and lists of its hosts."""

import gzip
import os
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colltune.core.errors import InputError
from colltune.core.hostlist import compress_hostlist, expand_hostlist, parse_counts
from colltune.mpi.job import Job, Node, Scheduler, find_job

RECORDED = Path(__file__).parents[1] / "recorded" / "jobs"
CORES = len(os.sched_getaffinity(0))


def recorded(name: str) -> dict[str, str]:
    text = (RECORDED / f"{name}.env").read_text().replace("@HERE@", str(RECORDED))
    return dict(line.split("=", 1) for line in text.splitlines())


def nodes(*pairs: tuple[str, int]) -> tuple[Node, ...]:
    return tuple(Node(name, slots) for name, slots in pairs)


POLARIS, AURORA = ".hsn.cm.polaris.alcf.anl.gov", ".hsn.cm.aurora.alcf.anl.gov"


@pytest.mark.parametrize(
    ("name", "scheduler", "expected"),
    [
        ("slurm-batch", "slurm", nodes(*((f"nid00{n}", 16) for n in (1002, 1003, 1004, 1010)))),
        ("slurm-22.05-salloc", "slurm", nodes(("n1", 2), ("n2", 2))),
        ("slurm-22.05-salloc-tasks", "slurm", nodes(("n1", 4), ("n2", 1))),
        ("slurm-22.05-sbatch-exclusive", "slurm", nodes(("n1", 4), ("n2", 4))),
        ("slurm-uneven", "slurm", nodes(("r1n09", 2), ("r1n10", 2), ("r2n09", 2), ("r2n10", 1))),
        ("slurm-3x5", "slurm", nodes(("c11", 5), ("c12", 5), ("c13", 5))),
        ("slurm-two-kinds-of-nodes", "slurm", nodes(("big1", 128), ("big2", 128), ("old7", 48), ("smt1", 256))),
        ("slurm-exclusive", "slurm", nodes(("c7", 16), ("c9", 16))),
        ("slurm-ntasks", "slurm", nodes(("login", 3), ("n1", 3), ("n2", 2))),
        ("pbs", "pbs", nodes(("x3006c0s13b1n0" + POLARIS, 4), ("x3006c0s19b0n0" + POLARIS, 4))),
        ("pbs-one-line", "pbs", nodes(("x4407c5s4b0n0" + AURORA, 1), ("x4407c5s5b0n0" + AURORA, 1))),
        ("lsf", "lsf", nodes(("hosta", 2), ("hostb", 2))),
        ("lsf-launch-node", "lsf", nodes(("h41n04", 42), ("h41n05", 42))),
        ("laptop", "none", nodes(("localhost", CORES))),
        ("flux", "none", nodes(("localhost", CORES))),  # without Flux's own answer
    ],
)
def test_recorded_environments(name: str, scheduler: str, expected: tuple[Node, ...]) -> None:
    job = find_job(recorded(name))
    assert job == Job(Scheduler(scheduler), expected)
    assert job.ppn == min(node.slots for node in expected)


def test_of_a_job_of_several_components_the_first_is_taken_and_named_as_a_part(tmp_path: Path) -> None:
    of_component = {"SLURM_JOB_NODELIST_HET_GROUP_0": "n[1-2]", "SLURM_JOB_NODELIST_HET_GROUP_1": "big1"}
    of_component |= {"SLURM_TASKS_PER_NODE_HET_GROUP_0": "4,3", "SLURM_TASKS_PER_NODE_HET_GROUP_1": "96"}
    environment = {**recorded("slurm-batch"), "SLURM_HET_SIZE": "2", **of_component}
    job = find_job(environment)
    assert job.nodes == nodes(("n1", 4), ("n2", 3))
    assert "the first of the 2 components" in job.part
    del environment["SLURM_JOB_NODELIST_HET_GROUP_0"]
    with pytest.raises(InputError, match="host list"):
        find_job(environment)
    hosts = tmp_path / "hosts"
    hosts.write_text("n1\nn2\n")
    assert find_job(environment, host_file=hosts).names == ("n1", "n2")


def test_flux_names_its_hosts_by_its_own_answer() -> None:
    job = find_job(recorded("flux"), flux_resources=(RECORDED / "flux.resources").read_text())
    assert job == Job(Scheduler.FLUX, nodes(*((f"tuolumne{n}", 96) for n in range(1005, 1009))))
    two_kinds = "big[1-2],old7,big3 rank[0-1,3]/core[0-63],gpu[0-7] rank2/core[0-15,32-47]\n"
    assert find_job({}, flux_resources=two_kinds).nodes == nodes(("big1", 64), ("big2", 64), ("old7", 32), ("big3", 64))
    for text in ("n[1-2] rank0/core0", "n1 core0/rank0", "n1", "8 n[1-2]"):
        with pytest.raises(InputError, match=r"Flux's resources|host list"):
            find_job({}, flux_resources=text)


@pytest.mark.parametrize(
    ("variables", "hosts"),
    [
        ({"SLURM_JOB_NODELIST": "a,b[1-2]", "SLURM_TASKS_PER_NODE": "4,2(x2)"}, ""),
        ({"PBS_NODEFILE": "HOSTS"}, "a\n" * 4 + "b1\nb1\nb2\nb2\n"),  # select=1:mpiprocs=4+2:mpiprocs=2
        ({"PBS_NODEFILE": "HOSTS"}, "a\nb1\nb2\n" * 2 + "a\na\n"),
        ({"LSB_MCPU_HOSTS": "a 4 b1 2 b2 2"}, ""),
        ({"LSB_HOSTS": "a a a a b1 b1 b2 b2"}, ""),
        ({"LSB_DJOB_HOSTFILE": "HOSTS", "LSB_MCPU_HOSTS": "x 1"}, "a\n" * 4 + "b1\nb1\nb2\nb2\n"),
        ({"LSB_DJOB_HOSTFILE": "/out/of/sight", "LSB_MCPU_HOSTS": "a 4 b1 2 b2 2"}, ""),
        ({"FLUX": "a,b[1-2] rank0/core[0-3],gpu0 rank[1-2]/core[0-1]"}, ""),
    ],
)
def test_ranks_that_differ_by_node(variables: dict[str, str], hosts: str, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text(hosts)
    environment = {name: value.replace("HOSTS", str(tmp_path / "hosts")) for name, value in variables.items()}
    job = find_job(environment, flux_resources=environment.pop("FLUX", None))
    assert (job.nodes, job.ppn) == (nodes(("a", 4), ("b1", 2), ("b2", 2)), 2)


def test_the_users_host_file_goes_before_the_scheduler(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("# mine\na:2\nb slots=3\n\nc 4 # fast\n")
    job = find_job(recorded("slurm-batch"), host_file=path)
    assert job == Job(Scheduler.HOST_FILE, nodes(("a", 2), ("b", 3), ("c", 4)))
    path.write_text("a\nb\na\nb\na\n")
    assert find_job({}, host_file=path).nodes == nodes(("a", 3), ("b", 2))


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("node[01-03,07]\n", "node01 node02 node03 node07"),
        ("node[1-2]-ib[0-1]:4 # fast\r\n", "node1-ib0:4 node1-ib1:4 node2-ib0:4 node2-ib1:4"),
        ("SLURM_JOB_NODELIST=n[1-2],login\n", "n1 n2 login"),
        ("SLURM_NODELIST='n[1, 3]'\n", "n1 n3"),
        ("a\nb\nn[1-2]\na\n", "a:2 b:1 n1:1 n2:1"),
        ("\ufeffa slots=4 max-slots=8\r\nb slots = 2 max_slots=8\r\n", "a:4 b:2"),
        ("n[1-2] 8\nn1:2\n", "n1:10 n2:8"),
        ("n[1-2],m\nn[3,5],k\n", "n1 n2 m n3 n5 k"),
        ("10.0.0.1:2\n10.0.0.2 2\n", "10.0.0.1:2 10.0.0.2:2"),
    ],
)
def test_hosts_are_read_as_schedulers_and_launchers_write_them(tmp_path: Path, text: str, hosts: str) -> None:
    path = tmp_path / "hosts"
    slots = tuple((name, int(count or 1)) for name, _, count in (host.partition(":") for host in hosts.split()))
    for data in (text.encode(), text.encode("utf-16"), gzip.compress(text.encode())):
        path.write_bytes(data)
        assert find_job({"PBS_NODEFILE": str(path)}).nodes == nodes(*slots)
    if ":" not in hosts:
        assert find_job({}, host_file=path).nodes == nodes(*((name, CORES) for name, _ in slots))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\nn[1-1000000000]\n", r"hosts, line 2: the host list 'n\[1-1000000000\]' names more than 1048576 hosts"),
        ("a[1-1000][1-1000]\n" * 2, "hosts, line 2: more than 1048576 hosts up to here"),
        ("a\nn[2-1]\n", "hosts, line 2: cannot read the host list 'n.2-1.': the range 2-1 runs backwards"),
        ("a\nb\nc slots=0\nd\n", "hosts, line 3: cannot read 'c slots=0'"),
        ("rank 0=node01 slot=0\nrank 1=node02 slot=0\n", "hosts is a rankfile of Open MPI, and no list of hosts"),
        ("1\n7\n1\n2\n1\n0 6 0 0\n", "hosts is rules of Open MPI's coll/tuned, and no list of hosts"),
        ("#!/bin/sh\nmpiexec -n 4 app\n", "hosts is a script, and no list of hosts"),
        *((text, "hosts.*") for text in ("", "# none\n", "a:b\n", "a b c\n", "a:0\n", "a slots=\n", ":3\n", "n[1-\n")),
    ],
)
def test_what_is_no_list_of_hosts_is_named_with_what_is_read(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "hosts").write_text(text)
    with pytest.raises(InputError, match=rf"{message}\. Write a host or a list of hosts in each line, for example"):
        find_job({}, host_file=tmp_path / "hosts")


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"SLURM_JOB_NODELIST": "n[1-"}, "host list"),
        ({"SLURM_JOB_NODELIST": ""}, "host list"),
        ({"SLURM_JOB_NODELIST": "n[1-3]", "SLURM_TASKS_PER_NODE": "2(x2)"}, "names 3 nodes but 2 counts"),
        ({"SLURM_JOB_NODELIST": "n1", "SLURM_NTASKS": "many"}, "SLURM_NTASKS='many'"),
        ({"PBS_NODEFILE": "/nonexistent/nodes"}, "/nonexistent/nodes"),
        ({"LSB_MCPU_HOSTS": "a b"}, "LSB_MCPU_HOSTS"),
        ({"LSB_HOSTS": " "}, "LSB_HOSTS"),
        ({"LSB_DJOB_HOSTFILE": "/out/of/sight"}, "/out/of/sight"),
    ],
)
def test_a_description_that_cannot_be_read_is_one_clear_error(environment: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_job(environment)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("localhost", ["localhost"]),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("n[8-11]", ["n8", "n9", "n10", "n11"]),
        ("n[098-101,7]", ["n098", "n099", "n100", "n101", "n7"]),
        ("a[1,3]b[1-2]", ["a1b1", "a1b2", "a3b1", "a3b2"]),
        ("r[1-2]n[09-10]-ib,login", ["r1n09-ib", "r1n10-ib", "r2n09-ib", "r2n10-ib", "login"]),
        (" n[ 1 - 2 ] , m ", ["n1", "n2", "m"]),
        ("[1-2]", ["1", "2"]),
    ],
)
def test_expand(text: str, hosts: list[str]) -> None:
    assert expand_hostlist(text) == hosts


NO_LIST = ["", ",", "n[", "n]", "n[]", "n[1-]", "n[3-1]", "n[a-b]", "n[1-2", "n[[1]]", "a,,b", "n[1,]", "a b"]
# These would fill the memory.
NO_LIST += ["n[0-999999999999]", "a[1-99999]b[1-99999]c[1-99999]", "n[" + "1" * 5000 + "-2]"]
NO_COUNTS = ["", "x", "2(x)", "2x3", "-1", "1(x9999999),1(x9999999)"]


@pytest.mark.parametrize(("parse", "texts"), [(expand_hostlist, NO_LIST), (parse_counts, NO_COUNTS)])
def test_what_is_no_list_of_hosts_or_counts_is_refused(parse: Callable[[str], object], texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(InputError):
            parse(text)
    with pytest.raises(InputError):
        compress_hostlist(["n1", "a,b"])
    assert [parse_counts(one) for one in ("4", "2(x3),1", "16(x2), 8")] == [[4], [2, 2, 2, 1], [16, 16, 8]]


def test_compression_is_short() -> None:
    assert compress_hostlist([f"nid{n:05}" for n in range(8, 12)]) == "nid[00008-00011]"
    assert compress_hostlist(["n1", "n2", "n4", "login", "n5"]) == "n[1-2,4],login,n5"
    assert compress_hostlist([]) == ""
    hosts = [f"x{n:04}" for n in range(10_000)]
    assert compress_hostlist(hosts) == "x[0000-9999]"


names = st.from_regex(r"[a-z0-9.\-]{1,3}[0-9]{0,3}[a-z.\-]{0,2}[0-9]{0,20}", fullmatch=True)
runs = st.builds(
    lambda stem, first, count, width: [f"{stem}{n:0{width}}" for n in range(first, first + count)],
    st.text("ab1-", min_size=1, max_size=3),
    st.integers(0, 1200),
    st.integers(1, 40),
    st.integers(0, 6),
)


@given(st.lists(names.map(lambda name: [name]) | runs, min_size=1, max_size=5).map(lambda lists: list(chain(*lists))))
def test_expanding_what_was_compressed_gives_the_same_hosts(hosts: list[str]) -> None:
    assert expand_hostlist(compress_hostlist(hosts)) == hosts
