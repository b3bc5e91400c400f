"""Programs on the first node of a cluster of network namespaces, where a job's script would run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "mpi")]

from namespaces import NamespaceCluster, namespace_cluster, why_not  # noqa: E402

__all__ = ["NamespaceCluster", "namespace_cluster", "on_first_node", "require_namespaces", "run_inside", "why_not"]


def require_namespaces() -> None:
    """Ends with the reason where there can be no such cluster."""
    if (reason := why_not()) is not None:
        sys.exit(f"no cluster of namespaces here: {reason}")


def on_first_node(cluster: NamespaceCluster, *arguments: str) -> str:
    """Runs Python with ``arguments``; what it prints is shown and returned. Ends where it fails."""
    return run_inside(cluster, [sys.executable, "-u", *arguments], codes=(0, 1))


def run_inside(
    cluster: NamespaceCluster,
    command: Sequence[str],
    *,
    codes: Collection[int] = (0,),
    more: Mapping[str, str] | None = None,
    to: TextIO | None = sys.stdout,
) -> str:
    """What ``command`` prints on the first node, shown in ``to`` as it comes. Ends where its exit code is none of
    ``codes``. ``more``: of its environment."""
    own = {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    environment = {**os.environ, **cluster.environment, **own, **(more or {})}
    lines = []
    with subprocess.Popen(cluster.inside(*command), env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if to is not None:
                print(line, end="", flush=True, file=to)
            lines.append(line)
    if process.returncode not in codes:
        sys.exit(f"{' '.join(command[:6])} failed with {process.returncode}")
    return "".join(lines)
