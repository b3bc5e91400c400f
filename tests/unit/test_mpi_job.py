"""Which job this is, by recorded environments of each scheduler."""

import gzip
import os
from pathlib import Path

import pytest

from colltune.core.errors import InputError
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


def test_flux_names_its_hosts_by_its_own_answer() -> None:
    job = find_job(recorded("flux"), flux_resources=(RECORDED / "flux.resources").read_text())
    assert job == Job(Scheduler.FLUX, nodes(*((f"tuolumne{n}", 96) for n in range(1005, 1009))))


def test_the_users_host_file_goes_before_the_scheduler(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("# mine\na:2\nb slots=3\n\nc 4 # fast\n")
    job = find_job(recorded("slurm-batch"), host_file=path)
    assert job == Job(Scheduler.HOST_FILE, nodes(("a", 2), ("b", 3), ("c", 4)))
    path.write_text("a\nb\n")
    assert find_job({}, host_file=path).nodes == nodes(("a", CORES), ("b", CORES))
    path.write_text("a\nb\na\nb\na\n")
    assert find_job({}, host_file=path).nodes == nodes(("a", 3), ("b", 2))
    path.write_text("a slots=4 max_slots=8\n")
    assert find_job({}, host_file=path).nodes == nodes(("a", 4))


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("node[01-03,07]\n", "node01 node02 node03 node07"),
        ("node[1-2]-ib[0-1]:4 # fast\r\n", "node1-ib0:4 node1-ib1:4 node2-ib0:4 node2-ib1:4"),
        ("SLURM_JOB_NODELIST=n[1-2],login\n", "n1 n2 login"),
        ("SLURM_NODELIST='n[1, 3]'\n", "n1 n3"),
        ("a\nb\nn[1-2]\na\n", "a:2 b:1 n1:1 n2:1"),
        ("\ufeffa slots=4 max-slots=8\r\nb slots = 2\r\n", "a:4 b:2"),
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
        ("collective,nodes,ppn\nbcast,2,4\n", "hosts is a table, and no list of hosts"),
    ],
)
def test_what_is_no_list_of_hosts_is_named_with_what_is_read(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "hosts").write_text(text)
    with pytest.raises(InputError, match=rf"{message}\. Write a host or a list of hosts in each line, for example"):
        find_job({}, host_file=tmp_path / "hosts")


@pytest.mark.parametrize("text", ["", "# nothing\n", "a:b\n", "a b c\n", "a:0\n", "a slots=\n", ":3\n", "n[1-\n"])
def test_a_bad_host_file_names_its_place(tmp_path: Path, text: str) -> None:
    path = tmp_path / "hosts"
    path.write_text(text)
    with pytest.raises(InputError, match="hosts"):
        find_job({}, host_file=path)


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
    ],
)
def test_a_description_that_cannot_be_read_is_one_clear_error(environment: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_job(environment)
