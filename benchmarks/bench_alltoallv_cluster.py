"""The non-uniform all-to-all and path-finding on clusters of network namespaces: bench/alltoallv_cluster.json."""

from __future__ import annotations

import json
from pathlib import Path

from alltoallv_on_cluster import main

if __name__ == "__main__":
    found = main()
    Path("bench").mkdir(exist_ok=True)
    Path("bench/alltoallv_cluster.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
