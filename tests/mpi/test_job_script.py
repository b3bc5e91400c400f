"""The job script of the README in a real Slurm: ended before it is done, submitted again, and done."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from slurm_cluster import slurm_cluster, why_not

from colltune.core.sample import Status
from colltune.measure.contract import Effort
from colltune.mpi.installation import Installation
from colltune.store.journal import read_journal
from colltune.store.tuning import JOURNAL, load_tuning
from commands import comes_true, run_to_end, shell_script
from compiled import program

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
ROOT = Path(__file__).parents[2]
# All nodes of this Slurm are one machine; MPICH is told to take its two ranks for two nodes.
TWO_NODES = {"MPIR_CVAR_NUM_CLIQUES": "2", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo"}


def readme_script() -> str:
    """The Slurm script that the README shows."""
    text = (ROOT / "README.md").read_text()
    block = re.search(r"Slurm:\n\n```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return block.group(1)


@pytest.fixture
def slurm(mpi: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mapping[str, str]]:
    """Two nodes of one core, and `colltune` and the application where a job finds them."""
    commands = tmp_path / "bin"
    commands.mkdir()
    shell_script(commands / "colltune", f'exec {sys.executable} -u -m colltune "$@"')
    (tmp_path / "app").symlink_to(program(mpi.mpicc, "one_sum.c"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("MPIR_CVAR_ENABLE_HEAVY_YIELD", "1")
    for name, value in TWO_NODES.items():
        monkeypatch.setenv(name, value)
    with slurm_cluster(tmp_path / "slurm", nodes=2, cores=1) as environment:
        yield {**environment, "PATH": f"{commands}:{mpi.mpiexec.parent}:{environment['PATH']}"}


def submit(slurm: Mapping[str, str], place: Path, script: str, *changes: tuple[str, str]) -> str:
    """The number of a job of ``script``, cut to two nodes of one rank."""
    sizes = (("--nodes=16", "--nodes=2"), ("--ntasks-per-node=32", "--ntasks-per-node=1"))
    for old, new in (*sizes, *changes):
        assert old in script, script
        script = script.replace(old, new)
    (place / "job.sh").write_text(script)
    command = ["sbatch", "--parsable", "--output=job-%j.out", "job.sh"]
    return run_to_end(command, cwd=place, env=slurm, check=True).stdout.strip()


def state(slurm: Mapping[str, str], job: str) -> str:
    answer = run_to_end(["scontrol", "show", "job", job], env=slurm).stdout
    found = re.search(r"JobState=(\w+)", answer)
    return found.group(1) if found else "GONE"


def ended(slurm: Mapping[str, str], job: str) -> bool:
    return state(slurm, job) not in ("PENDING", "RUNNING", "COMPLETING")


@pytest.mark.parametrize(
    "end", ["cancelled", *(pytest.param(end, marks=pytest.mark.slow) for end in ("killed", "timed out"))]
)
def test_a_job_that_is_ended_leaves_a_usable_result_and_the_next_one_goes_on(
    slurm: Mapping[str, str], tmp_path: Path, end: str
) -> None:
    script, tuned = readme_script(), tmp_path / "tuned"
    # A minute is the shortest limit that Slurm knows; the campaign is made to last longer.
    limit = [("--time=01:00:00", "--time=00:01:00"), ("--budget 5m", "--budget 30m --max-size 128MiB")]
    job = submit(slurm, tmp_path, script, *(limit if end == "timed out" else []))

    def said() -> str:
        return (tmp_path / f"job-{job}.out").read_text() if (tmp_path / f"job-{job}.out").exists() else "nothing"

    journal = tuned / JOURNAL
    assert comes_true(lambda: journal.exists() and journal.read_bytes().count(b'"sample"') > 20), said()
    if end == "cancelled":
        subprocess.run(["scancel", job], env=slurm, check=True)
    elif end == "killed":
        subprocess.run(["scancel", "--signal=KILL", "--full", job], env=slurm, check=True)
    assert comes_true(lambda: ended(slurm, job)), said()
    assert state(slurm, job) in {"cancelled": ("CANCELLED",), "timed out": ("TIMEOUT",)}.get(
        end, ("FAILED", "CANCELLED")
    )
    first = read_journal(journal).samples
    assert len(first) > 20
    if end != "killed":  # nobody could write a tuning then, and what was measured is there all the same
        partial = load_tuning(tuned)
        assert set(partial.rule_sets) == {"bcast", "allreduce"}
        assert partial.summary.interrupted is True
        assert list((tuned / "mpich").glob("*.json"))

    again = [
        ("--out tuned/", "--out tuned/ --resume"),
        ("--budget 5m", "--budget 15s --max-size 64"),
        ("./app", str(tmp_path / "app")),
    ]
    job = submit(slurm, tmp_path, script, *again)
    assert comes_true(lambda: ended(slurm, job)), said()
    assert state(slurm, job) == "COMPLETED", said()
    assert "sum 1" in said()
    samples = read_journal(journal).samples
    assert samples[: len(first)] == first
    assert {(s.scenario.nodes, s.scenario.ppn) for s in samples} == {(2, 1)}
    taken = [sample for sample in samples if sample.status is Status.OK]
    # What only had a first look, of few repetitions, may be measured in full, once.
    in_full = Counter((s.scenario, s.choice) for s in taken if len(s.times_s) >= Effort().fewest)
    assert set(in_full.values()) == {1}
    assert max(Counter((s.scenario, s.choice) for s in taken).values()) <= 2
    assert load_tuning(tuned).summary.interrupted is False
