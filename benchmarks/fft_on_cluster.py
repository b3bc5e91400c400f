"""The FFT example on a cluster of 8 nodes (network namespaces, 1 Gbit/s, real TCP): default, and tuned by its profile.

Profiles the example, tunes what it calls, and runs it with and without the tuning, interleaved. Part of
`make bench-profile`; needs root, iproute2 and gcc.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import monotonic

from on_cluster import ROOT, NamespaceCluster, namespace_cluster, run_inside, why_not

NODES = 8
SIZE, STEPS = 64, 400
LAUNCHES = 5
RUNTIME_S = 3600.0  # the run that the tuning is charged to


def measure(launches: int = LAUNCHES) -> dict[str, float]:
    """Figures for bench/profile.json; none where there can be no such cluster, with the reason on stderr."""
    reason = why_not()
    if reason is not None:
        print(f"no FFT figures: {reason}", file=sys.stderr)
        return {}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        mpiexec = Path(sys.executable).parent / "mpiexec"
        program = place / "fft"
        source = ROOT / "examples" / "fft_transpose.c"
        subprocess.run([str(mpiexec.with_name("mpicc")), "-O2", str(source), "-lm", "-o", str(program)], check=True)
        with namespace_cluster(place / "cluster", NODES, realtime=False) as cluster:
            hosts = str(cluster.host_file(1))
            job = [str(mpiexec), "-f", hosts, "-n", str(NODES), str(program), str(SIZE), str(STEPS)]
            started_s = monotonic()
            _colltune(cluster, "profile", "--out", str(place / "app.json"), "--", *job)
            _colltune(cluster, "tune", "--profile", str(place / "app.json"), "--runtime", "1h", "--budget", "90s",
                      "--mpiexec", str(mpiexec), "--hostfile", hosts, "--out", str(place / "tuned"))  # fmt: skip
            tuning_s = monotonic() - started_s
            default, tuned = [], []
            for _ in range(launches):
                default.append(_times(run_inside(cluster, job, to=sys.stderr)))
                tuned.append(_times(_colltune(cluster, "run", str(place / "tuned"), "--", *job)))
    return _figures(default, tuned, tuning_s)


def _figures(default: list[tuple[float, float]], tuned: list[tuple[float, float]], tuning_s: float) -> dict[str, float]:
    steps = [median(step for step, _ in runs) for runs in (default, tuned)]
    parts = [median(part for _, part in runs) for runs in (default, tuned)]
    return {
        "fft_time_ratio": round(steps[1] / steps[0] + tuning_s / RUNTIME_S, 4),
        "fft_run_ratio": round(steps[1] / steps[0], 4),
        "fft_alltoall_ratio": round(parts[1] / parts[0], 4),
        "fft_default_step_ms": round(1e3 * steps[0], 3),
        "fft_tuned_step_ms": round(1e3 * steps[1], 3),
        "fft_tuning_s": round(tuning_s, 1),
        "fft_runtime_s": RUNTIME_S,
    }


def _colltune(cluster: NamespaceCluster, *arguments: str) -> str:
    return run_inside(cluster, [sys.executable, "-m", "colltune", *arguments], to=sys.stderr)


def _times(output: str) -> tuple[float, float]:
    """Seconds of a step and of its MPI_Alltoall."""
    found = re.search(r"step_s (\S+) alltoall_s (\S+)", output)
    assert found is not None, output
    return float(found.group(1)), float(found.group(2))


if __name__ == "__main__":
    print(measure())
