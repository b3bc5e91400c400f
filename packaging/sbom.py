"""The bill of materials of an installation, as CycloneDX 1.6: python packaging/sbom.py dist/colltune-*.whl > sbom.json

The packages are those that requirements-demo.txt pins: what `make demo` installs. Those that a plain installation asks
for itself have the scope "required". Names the wheel's version and checksum.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def bill(wheel: Path) -> dict[str, object]:
    """Of the wheel at ``wheel``. Raises OSError where there is none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    plain = {re.split(r"[>=]", requirement)[0] for requirement in project["dependencies"]}
    pins = (ROOT / "requirements-demo.txt").read_text(encoding="utf-8").splitlines()
    parts = [line.split(";")[0].strip().split("==") for line in pins if "==" in line and not line.startswith("#")]
    version = wheel.name.split("-")[1]
    product = {
        **component("colltune", version),
        "licenses": [{"license": {"id": project["license"]}}],
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}],
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": product},
        "components": [
            {**component(name, pinned), "scope": "required" if name.lower() in plain else "optional"}
            for name, pinned in parts
        ],
        "dependencies": [
            {
                "ref": product["bom-ref"],
                "dependsOn": [component(name, pinned)["bom-ref"] for name, pinned in parts if name.lower() in plain],
            }
        ],
    }


def component(name: str, version: str) -> dict[str, str]:
    purl = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_file():
        sys.exit(f"usage: {sys.argv[0]} WHEEL")
    print(json.dumps(bill(Path(sys.argv[1])), indent=1))
