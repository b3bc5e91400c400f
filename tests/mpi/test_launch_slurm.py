"""Inside a real Slurm allocation: job and topology are found, and Hydra and srun start ranks where they should."""

import json
import sys
import textwrap
from pathlib import Path

import pytest
from slurm_cluster import slurm_cluster, why_not

from colltune.mpi.installation import Installation
from commands import run_to_end, shell_script
from compiled import program

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


SWITCHES = "SwitchName=s0 Nodes=n1\nSwitchName=s1 Nodes=n2\nSwitchName=top Switches=s[0-1]\n"

# What runs inside the allocation, as colltune itself would: it finds the job and starts the program on a part of it.
INSIDE = """
    import json, os, shutil, subprocess, sys
    from colltune.mpi.detect import find_mpi
    from colltune.mpi.job import find_job
    from colltune.mpi.launch import LaunchRequest, launch
    from colltune.schedule.topology_sources import find_topology

    program, shapes, launchers = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:]
    job = find_job(os.environ)
    print(json.dumps([job.scheduler, [[node.name, node.slots] for node in job.nodes]]))
    site_file = os.path.join(os.path.dirname(os.environ["SLURM_CONF"]), "topology.conf")
    lines = [find_topology(job.names, os.environ, "slurm")[1]]
    os.remove(site_file)  # as where only the controller has it
    lines.append(find_topology(job.names, os.environ, "slurm")[1])
    # As a batch script has it, where scontrol is not.
    os.mkdir("alone")
    for name in ("srun", "printenv"):
        os.symlink(shutil.which(name), f"alone/{name}")
    alone = {"PATH": os.path.abspath("alone"), "SLURM_TOPOLOGY_ADDR_PATTERN": "switch.switch.node"}
    lines.append(find_topology(job.names, {**os.environ, **alone}, "slurm")[1])
    print(json.dumps([line.replace(site_file, "topology.conf") for line in lines]))
    for launcher in launchers:
        installation = find_mpi(launcher, os.environ)
        for nodes, ppn in shapes:
            command = launch(installation, job, LaunchRequest([program], nodes, ppn, {"COLLTUNE_TEST": "a, b=c"}))
            whole = {**os.environ, **command.environment}
            run = subprocess.run(command.argv, env=whole, input="word", capture_output=True, text=True, timeout=60)
            print(json.dumps([run.returncode, sorted(run.stdout.splitlines()), run.stderr]))
"""


def test_inside_an_allocation(mpi: Installation, tmp_path: Path) -> None:
    made = program(mpi.mpicc, "who_and_where.c")
    shapes = [(2, 2), (1, 2), (2, 1)]
    with slurm_cluster(tmp_path / "slurm", nodes=2, cores=2, topology=SWITCHES) as environment:
        source = str(Path(__file__).parents[2] / "src")
        search = f"{mpi.mpiexec.parent}:{environment['PATH']}"
        run = run_to_end(
            [
                *("salloc", "-N2", "--ntasks-per-node=2", sys.executable, "-c", textwrap.dedent(INSIDE)),
                *(made, json.dumps(shapes), str(mpi.mpiexec), "srun"),
            ],
            env={**environment, "PYTHONPATH": source, "PATH": search},
            check=True,
            cwd=tmp_path,
        )
    job, topologies, *answers = (json.loads(line) for line in run.stdout.splitlines())
    assert job == ["slurm", [["n1", 2], ["n2", 2]]]
    sources = ("topology.conf", "scontrol show topology", "SLURM_TOPOLOGY_ADDR of all nodes")
    assert topologies == [f"topology: {source} (2 parts, shared above them)" for source in sources]
    assert len(answers) == 2 * len(shapes)
    for (nodes, ppn), (code, printed, complaint) in zip(shapes * 2, answers, strict=True):
        expected = [
            f"{rank} of {nodes * ppn} on {rank // ppn} [{'word' if rank == 0 else ''}] [a, b=c]"
            for rank in range(nodes * ppn)
        ]
        assert (code, printed) == (0, expected), complaint


@pytest.mark.slow
def test_tune_and_run_by_the_users_own_srun(mpi: Installation, tmp_path: Path) -> None:
    """With two switches, options of srun and a wrapper, from an allocation to the tuned program."""
    made, tuned = program(mpi.mpicc, "who_and_where.c"), tmp_path / "tuned"
    wrapper = shell_script(tmp_path / "wrapper.sh", 'echo "$SLURM_PROCID $1" >> "$0.log"\nexec "$@"')
    line = f"srun --mpi=pmi2 --nodes=2 --ntasks=2 --cpu-bind=none {wrapper}"
    command = f"{sys.executable} -m colltune"
    steps = [
        f"{command} tune bcast --sizes 8 --budget 40s --out {tuned} -- {line} {made}",
        f"echo word | {command} run {tuned} -- {line} {made}",
        f"echo word | {command} run {tuned} -- {line.replace('none', 'cores')} {made}",
    ]
    # All nodes of this Slurm are one machine; MPICH is told to take its two ranks for two nodes.
    two = {"MPIR_CVAR_NUM_CLIQUES": "2", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo"}
    with slurm_cluster(tmp_path / "slurm", nodes=2, cores=1, topology=SWITCHES) as environment:
        search = f"{mpi.mpiexec.parent}:{environment['PATH']}"
        source = str(Path(__file__).parents[2] / "src")
        run = run_to_end(
            ["salloc", "-N2", "--ntasks-per-node=1", "sh", "-ec", "\n".join(steps)],
            env={**environment, **two, "PYTHONPATH": source, "PATH": search, "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"},
            check=True,
        )
    assert "topology.conf (2 parts, shared above them)" in " ".join(run.stdout.split())
    assert "every launch is made by: srun --mpi=pmi2" in " ".join(run.stdout.split())
    ran = sorted(text for text in run.stdout.splitlines() if " of 2 on " in text)
    assert ran == ["0 of 2 on 0 [word] [-]"] * 2 + ["1 of 2 on 1 [] [-]"] * 2
    warned = [text for text in run.stderr.splitlines() if "around the program" in text]
    assert len(warned) == 1
    assert "--cpu-bind=cores" in warned[0]
    ranks_of = [text.split()[0] for text in Path(f"{wrapper}.log").read_text().splitlines() if "/agent" in text]
    assert ranks_of
    assert ranks_of.count("0") == ranks_of.count("1")
