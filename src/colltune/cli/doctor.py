"""`colltune doctor`: what is here, what can be tuned, and what cannot, with the reason."""

from __future__ import annotations

import os

from colltune.cli.console import echo
from colltune.cli.options import HostFile, Mpiexec, Nodes, Ppn, ThreadLevel


def doctor(
    mpiexec: Mpiexec = None,
    hostfile: HostFile = None,
    nodes: Nodes = None,
    ppn: Ppn = None,
    thread_level: ThreadLevel = "single",
) -> None:
    """Say which MPI, launcher and job are found, and what can be tuned here."""
    from colltune.bench.workbench import MachineOptions, open_workbench
    from colltune.core.choice import format_choices
    from colltune.core.scenario import COLLECTIVES, Scenario

    bench = open_workbench(MachineOptions(mpiexec, hostfile, nodes, ppn, thread_level), os.environ)
    found = bench.installation
    lines = [
        ("MPI", f"{found.library} {found.version}, {found.libmpi}"),
        ("launcher", f"{found.mpiexec} ({found.launcher})"),
        ("compiler", f"{found.mpicc}"),
        ("agent", f"{bench.agent}"),
        (
            "job",
            f"{bench.job.scheduler}: {bench.nodes} nodes x {bench.ppn} ranks"
            if len(bench.job.nodes) > 1
            else f"{bench.job.nodes[0].name}: {bench.ppn} ranks on {bench.job.nodes[0].slots} cores",
        ),
        ("thread level", bench.thread_level),
        ("machine", bench.environment.machine),
    ]
    for name, text in lines:
        echo(f"{name:<14} {text}")
    for text in bench.warnings:
        echo(f"{'warning':<14} {text}")
    takers, outranking = bench.backend.takers(bench.said_under)
    for text in takers:
        echo(f"{'in force':<14} {text}")
    for text in dict.fromkeys([*bench.backend.obstacles(os.environ), *outranking]):
        echo(f"{'warning':<14} {text}")
    ready = bench.launch(seed=1)
    try:
        said = ready.start()
    finally:
        ready.close()
    echo(f"{'test launch':<14} {said['ranks']} ranks on {said['nodes']}")
    for collective in COLLECTIVES:
        reason = bench.catalogue.collective(collective).nothing_to_tune
        choices = bench.legal(Scenario(collective, bench.nodes, bench.ppn, 0 if collective == "barrier" else 1 << 16))
        echo(f"{collective:<22} {reason or format_choices(choices)}")
