"""Two nodes: real Hydra over a remote shell of our own, each node a host name of its own on this machine."""

import subprocess
from pathlib import Path

import pytest
from jobs import colltune

from colltune.core.sample import DEFAULT
from colltune.mpi.installation import Installation
from colltune.store.journal import read_journal
from colltune.store.tuning import JOURNAL, load_tuning
from commands import shell_script
from leftovers import Session

_REMOTE_SHELL = """while [ $# -gt 0 ]; do case $1 in -[lpoFi]) shift 2;; -*) shift;; *) break;; esac; done
host=$1; shift
echo "$host" >> {log}
if [ -e {gone} ] && [ "$(grep -c beta {log})" -gt "$(cat {gone})" ] && [ "$host" = beta ]; then
    echo "ssh: connect to host beta port 22: No route to host" >&2
    exit 255
fi
exec unshare --uts sh -c "hostname $host; $*"
"""


@pytest.fixture
def two_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with `hosts`; a file `gone` in it holds how many launches node beta still lives through."""
    if subprocess.run(["unshare", "--uts", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("host names of one's own need root (unshare --uts)")
    commands = _REMOTE_SHELL.format(log=tmp_path / "log", gone=tmp_path / "gone")
    shell = shell_script(tmp_path / "remote-shell", commands)
    (tmp_path / "hosts").write_text("alpha:1\nbeta:1\n")
    monkeypatch.setenv("HYDRA_LAUNCHER_EXEC", str(shell))
    return tmp_path


def tune(mpi: Installation, place: Path, *more: str) -> subprocess.CompletedProcess[str]:
    job = ["--mpiexec", mpi.mpiexec, "--hostfile", place / "hosts", "--out", place / "tuned", *more]
    return colltune("tune", "allgather", "--max-size", "64", "--budget", "20s", *job)


def test_a_node_that_goes_before_the_measuring_ends_the_command_and_leaves_nothing_running(
    mpi: Installation, two_nodes: Path
) -> None:
    (two_nodes / "gone").write_text("1")  # the slice of the replay
    done = tune(mpi, two_nodes)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not (two_nodes / "tuned" / "tuning.json").exists()
    # The launcher has given what it started on the other node a session of its own, and leaves it there.
    assert not Session(two_nodes).left_after(10.0)


def test_a_node_that_goes_after_the_measuring_costs_no_measurement(mpi: Installation, two_nodes: Path) -> None:
    (two_nodes / "gone").write_text("2")  # the slice of the replay, and the measuring
    done = tune(mpi, two_nodes)
    measured = read_journal(two_nodes / "tuned" / JOURNAL).samples
    assert measured
    assert done.returncode in (0, 2)  # 0 where no choice was promising enough for a launch more
    assert "Traceback" not in done.stderr
    assert not Session(two_nodes).left_after(10.0)

    (two_nodes / "gone").unlink()
    again = tune(mpi, two_nodes, "--resume")
    assert again.returncode == 0, again.stderr
    assert read_journal(two_nodes / "tuned" / JOURNAL).samples == measured
    rules = load_tuning(two_nodes / "tuned").rule_sets["allgather"]
    assert rules.rules[-1].choice == DEFAULT
