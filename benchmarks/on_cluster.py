"""Programs on the first node of a cluster of network namespaces, where a job's script would run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "mpi"))

from namespaces import NamespaceCluster, namespace_cluster, why_not  # noqa: E402

__all__ = ["NamespaceCluster", "namespace_cluster", "on_first_node", "require_namespaces"]


def require_namespaces() -> None:
    """Ends with the reason where there can be no such cluster."""
    if (reason := why_not()) is not None:
        sys.exit(f"no cluster of namespaces here: {reason}")


def on_first_node(cluster: NamespaceCluster, *arguments: str) -> str:
    """Runs Python with ``arguments``; what it prints is shown and returned. Ends where it fails."""
    environment = {**os.environ, **cluster.environment, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    command = cluster.inside(sys.executable, "-u", *arguments)
    lines = []
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode not in (0, 1):
        sys.exit(f"python {' '.join(arguments[:3])} failed with {process.returncode}")
    return "".join(lines)
